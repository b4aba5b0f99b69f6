//! Chapter 9's tests: one program, linked once. The contract judges its kernels with the library's
//! engines.

mod kernels;
