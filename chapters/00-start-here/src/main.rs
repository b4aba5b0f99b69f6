//! The tour: runs the chapters, examines this machine, and measures the library on it.
//!
//! `cargo run --release` at the workspace's root runs this program.

mod catalogue;
mod cli;
mod doctor;
mod puzzles;
mod tour;

use std::process::ExitCode;

use lesson::output;

fn main() -> ExitCode {
    output::finish(cli::run())
}
