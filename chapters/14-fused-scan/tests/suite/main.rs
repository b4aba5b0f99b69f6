//! Chapter 14's tests: one program, linked once.

mod gradients;
mod ladder;
mod suspects;
mod training;
