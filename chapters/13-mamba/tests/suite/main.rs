//! The tests of chapter 13: one program, linked once.

mod block;
mod on_device;
mod options;
mod problems;
mod scan;
