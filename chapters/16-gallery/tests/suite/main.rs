//! The tests of chapter 16: one program, linked once.

mod cups;
mod models;
mod newton;
mod sunspots;
