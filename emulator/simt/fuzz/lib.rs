//! Fuzzing what a user hands over: sources to the parser, and kernels to the machine; and programs
//! that are right, to be run in two ways that have to come to the same.

pub mod execution;
pub mod parser;
pub mod programs;
