//! Chapter 15's tests: one program, linked once.

mod atlas;
mod contract;
mod golden;
mod min_gru;
