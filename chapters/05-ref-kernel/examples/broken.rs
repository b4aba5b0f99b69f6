//! Runs a kernel with a planted mistake on the emulator and prints what is found; without a name,
//! lists these kernels.
//!
//! ```text
//! cargo run --release -p ch05-ref-kernel --example broken
//! cargo run --release -p ch05-ref-kernel --example broken -- lost_carry
//! ```

use std::process::ExitCode;

use ch05_ref_kernel::Suspect;

fn main() -> ExitCode {
    lesson::broken::main(&Suspect::TWINS, |name| Ok(Suspect::new(name)?.examine()))
}
