//! Chapter 10's tests: one program, linked once.

mod contract;
