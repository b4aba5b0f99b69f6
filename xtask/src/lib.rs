#![doc = include_str!("../README.md")]

pub mod book;
pub mod bundle;
pub mod failure;
pub mod ptx;
pub mod record;
pub mod results;
pub mod workspace;
