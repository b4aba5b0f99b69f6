//! Chapter 6's tests: one program, linked once. The contract judges its kernel with the library's
//! engines.

mod kernel;
