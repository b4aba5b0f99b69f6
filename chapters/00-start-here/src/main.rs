//! The tour: runs the chapters, looks at this machine, and measures the library on it.
//!
//! `cargo run --release` at the workspace's root runs this program.

mod bench;
mod catalogue;
mod cli;
mod doctor;
mod tour;

use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}
