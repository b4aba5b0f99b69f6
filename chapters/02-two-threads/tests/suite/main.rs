//! Chapter 2's tests: one program, linked once.

mod contract;
mod parts;
