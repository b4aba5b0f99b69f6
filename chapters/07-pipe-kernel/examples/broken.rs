//! Runs a pipe kernel with a planted mistake on the emulator and prints what is found; without a
//! name, lists these kernels.
//!
//! ```text
//! cargo run --release -p ch07-pipe-kernel --example broken
//! cargo run --release -p ch07-pipe-kernel --example broken -- forgotten_between_tiles
//! ```

use std::process::ExitCode;

use ch07_pipe_kernel::PIPE;
use linrec::contract::suspect;

fn main() -> ExitCode {
    lesson::broken::main(&["linrec_pipe.cu"], |name| {
        let (engine, domain) = suspect::load(&format!("broken/{name}"), PIPE)?;
        Ok(suspect::examine(&engine, &domain))
    })
}
