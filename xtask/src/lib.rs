#![doc = include_str!("../README.md")]

pub mod book;
mod bundle;
mod chapters;
pub mod cli;
mod dependencies;
mod failure;
pub mod lab;
pub mod live;
mod notebooks;
mod numbers;
mod ptx;
mod puzzles;
mod python;
pub mod record;
pub mod results;
mod rules;
mod wheel;
pub mod workspace;

/// A pattern in the source of this program. The tests try all of them.
fn pattern(pattern: &str) -> regex::Regex {
    regex::Regex::new(pattern).expect("a valid pattern")
}
