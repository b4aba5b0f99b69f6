#![doc = include_str!("../README.md")]

pub mod book;
mod bundle;
mod chapters;
pub mod cli;
mod failure;
pub mod lab;
pub mod live;
pub mod notebooks;
mod numbers;
mod ptx;
mod puzzles;
mod python;
pub mod record;
pub mod results;
mod rules;
mod wheel;
mod workspace;
