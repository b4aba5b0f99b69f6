//! Chapter 18's tests: one program, linked once.

mod double;
mod exercises;
mod layout;
