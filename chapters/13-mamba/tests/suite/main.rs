//! Chapter 13's tests: one program, linked once.

mod block;
mod scan;
