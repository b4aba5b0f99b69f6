//! Fuzzing what a user hands over: sources to the parser, and kernels to the machine.

pub mod execution;
pub mod parser;
