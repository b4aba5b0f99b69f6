//! Chapter 1's tests: one program, linked once.

mod contract;
mod special_cases;
