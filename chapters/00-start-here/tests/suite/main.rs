//! The program `tour`, started as a user starts it.

mod cli;
mod doctor;
mod puzzles;
