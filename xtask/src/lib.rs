#![doc = include_str!("../README.md")]

pub mod book;
pub mod bundle;
pub mod chapters;
pub mod failure;
pub mod lab;
pub mod live;
pub mod notebooks;
pub mod numbers;
pub mod ptx;
pub mod puzzles;
pub mod python;
pub mod record;
pub mod results;
pub mod rules;
pub mod wheel;
pub mod workspace;
