//! Fuzzing of everything that a user passes to the emulator: sources to the parser, kernels to the
//! machine, and correct programs, which must give the same results in every way of running them.

pub mod execution;
pub mod parser;
pub mod programs;
