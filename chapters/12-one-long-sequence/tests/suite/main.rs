//! Chapter 12's tests: one program, linked once.

mod contract;
mod shared_out;
mod suspects;
