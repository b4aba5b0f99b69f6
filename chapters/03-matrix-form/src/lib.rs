//! Chapter 03: The matrix form.
//!
//! The recurrence unrolled into `y = C̃ᵀ x`:
//!
//! - [`mixing`] builds `C̃` and multiplies by it,
//! - [`Matrix`] is the matrix form as an engine,
//! - [`convolution`] is the special case of a shared coefficient: a Toeplitz matrix, multiplied by
//!   the fast Fourier transform.
//!
//! ```
//! use ch03_matrix_form::mixing::{mix, mixing_matrix};
//! use ndarray::array;
//!
//! let matrix = mixing_matrix(array![7.0, 2.0, 3.0].view())?;
//! assert_eq!(matrix, array![[1.0, 2.0, 6.0], [0.0, 1.0, 3.0], [0.0, 0.0, 1.0]]);
//! assert_eq!(mix(matrix.view(), array![1.0, 1.0, 1.0].view())?, array![1.0, 3.0, 10.0]);
//! # Ok::<(), linrec::Error>(())
//! ```

pub mod convolution;
pub mod exercises;
pub mod mixing;

mod engine;

#[cfg(feature = "story")]
#[path = "../story/mod.rs"]
mod story;

pub use engine::Matrix;

/// The chapter, as the tour runs it.
#[cfg(feature = "story")]
pub const CHAPTER: lesson::Chapter = lesson::chapter!(story::run);
