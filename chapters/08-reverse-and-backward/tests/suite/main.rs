//! Chapter 8's tests: one program, linked once. The contract judges its kernels with the library's
//! engines.

mod mistakes;
