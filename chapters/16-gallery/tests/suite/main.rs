//! Chapter 16's tests: one program, linked once.

mod cups;
mod models;
mod newton;
mod sunspots;
