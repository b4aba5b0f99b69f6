//! Chapter 14's tests: one program, linked once.

mod chunks;
mod gradients;
mod ladder;
mod suspects;
mod training;
