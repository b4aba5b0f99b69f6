//! Runs a chained scan with a planted mistake on the emulator and says what is found; without a
//! name, lists them.
//!
//! ```text
//! cargo run --release -p ch12-one-long-sequence --example broken
//! cargo run --release -p ch12-one-long-sequence --example broken -- epoch_before_state
//! ```

use std::process::ExitCode;

use ch12_one_long_sequence::suspect;

fn main() -> ExitCode {
    lesson::broken::main(&[suspect::TWIN], suspect::examine)
}
