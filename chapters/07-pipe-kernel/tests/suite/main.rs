//! Chapter 7's tests: one program, linked once.

mod contract;
mod pipe;
