//! Chapter 08: Reverse and backward.
//!
//! - [`strides`]: the pipe kernel with the distance between elements in a variable or not.

pub mod strides;
