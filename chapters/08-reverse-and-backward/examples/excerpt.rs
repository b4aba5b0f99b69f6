//! Copies the rows that the page shows from the output of the bundle for GPU hosts (`cargo xtask
//! bundle`).
//!
//! ```text
//! cargo run --release -p ch08-reverse-and-backward --example excerpt -- \
//!     OUT chapters/08-reverse-and-backward/results/h200
//! cargo xtask pack chapters/08-reverse-and-backward/results/h200
//! ```
//!
//! The bundle does not make `passes.csv`: chapter 9's `traffic times OUT` adds it.

use std::process::ExitCode;

use bench::Excerpt;

fn main() -> ExitCode {
    Excerpt::main(excerpt)
}

fn excerpt(excerpt: &Excerpt) -> lesson::Result {
    excerpt.take("origin.csv", |_| true)?;
    // Both passes of a recurrence in reverse, and every backward pass.
    excerpt.take("bits.csv", |cells| {
        !cells[1].starts_with("ref:") && (cells[3] == "backward" || cells[4] == "reverse")
    })?;
    excerpt.take("mistakes.csv", |cells| cells[0] == "unshifted_in_scan")?;
    excerpt.take("passes.csv", |_| true)
}
