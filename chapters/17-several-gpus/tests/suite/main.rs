//! Chapter 17's tests: one program, linked once.

mod called;
mod contract;
mod processes;
mod scan;
mod suspects;
