//! Takes what the page shows from what the bundle for GPU hosts wrote (`cargo xtask bundle`).
//!
//! ```text
//! cargo run --release -p ch08-reverse-and-backward --example excerpt -- OUT chapters/08-reverse-and-backward/results/h200
//! cargo xtask pack chapters/08-reverse-and-backward/results/h200
//! ```
//!
//! `passes.csv` is no table of the bundle: chapter 9's `traffic times OUT` adds it.

use std::process::ExitCode;

use bench::Excerpt;

fn main() -> ExitCode {
    Excerpt::main(excerpt)
}

fn excerpt(excerpt: &Excerpt) -> lesson::Result {
    excerpt.take("origin.csv", |_| true)?;
    // Either pass of a recurrence in reverse, and the backward pass of any.
    excerpt.take("bits.csv", |cells| {
        !cells[1].starts_with("ref:") && (cells[3] == "backward" || cells[4] == "reverse")
    })?;
    excerpt.take("mistakes.csv", |cells| cells[0] == "unshifted_in_scan")?;
    excerpt.take("passes.csv", |_| true)
}
