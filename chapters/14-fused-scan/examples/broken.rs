//! Runs a fused scan with a planted mistake on the emulator and prints what is found. Without a
//! name, lists the mistakes.
//!
//! ```text
//! cargo run --release -p ch14-fused-scan --example broken
//! cargo run --release -p ch14-fused-scan --example broken -- walk_before_the_tile
//! ```

use std::process::ExitCode;

use ch14_fused_scan::suspect;

fn main() -> ExitCode {
    lesson::broken::main(&[suspect::TWIN], suspect::examine)
}
