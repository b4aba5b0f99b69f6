//! Chapter 13's tests: one program, linked once.

mod block;
mod on_device;
mod options;
mod problems;
mod scan;
