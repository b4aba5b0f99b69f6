//! Runs a tile kernel with a planted mistake on the emulator and prints what is found; without a
//! name, lists these kernels.
//!
//! ```text
//! cargo run --release -p ch06-tile-kernel --example broken
//! cargo run --release -p ch06-tile-kernel --example broken -- zero_for_missing_coefficients
//! ```

use std::process::ExitCode;

use ch06_tile_kernel::stages::CHOICE;
use linrec::contract::suspect;

fn main() -> ExitCode {
    lesson::broken::main(&["linrec_tile.cu"], |name| {
        let (engine, domain) = suspect::load(&format!("broken/{name}"), CHOICE)?;
        Ok(suspect::examine(&engine, &domain))
    })
}
