//! Chapter 3's tests: one program, linked once.

mod contract;
mod convolution;
