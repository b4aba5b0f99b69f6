//! Chapter 4's tests: one program, linked once.

mod contract;
mod gradient;
