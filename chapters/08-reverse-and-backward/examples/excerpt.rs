//! Takes what the page shows from what the bundle for GPU hosts wrote (`cargo xtask bundle`).
//!
//! ```text
//! cargo run --release -p ch08-reverse-and-backward --example excerpt -- OUT chapters/08-reverse-and-backward/results/h200
//! ```

use std::io;
use std::process::ExitCode;

use linrec::lesson::Excerpt;

/// What is compared: the ways of one configuration, those of another, and what is fast.
const ENGINES: [&str; 9] = [
    "roof",
    "pipe:8x64:0",
    "pipe:8x64:1",
    "pipe:8x64:2",
    "pipe:4x256:0",
    "pipe:4x256:2",
    "pipe:4x64:0",
    "pipe:4x128:0",
    "pipe:16x64:0",
];

fn main() -> ExitCode {
    Excerpt::main(excerpt)
}

fn excerpt(excerpt: &Excerpt) -> io::Result<()> {
    excerpt.take("origin.csv", |_| true)?;
    // Either pass of a recurrence in reverse, and the backward pass of any.
    excerpt.take("bits.csv", |cells| {
        cells[1] != "ref" && (cells[3] == "backward" || cells[4] == "reverse")
    })?;
    excerpt.take("accesses.csv", |cells| cells[0].starts_with("linrec_pipe-f32"))?;
    excerpt.take("counters.csv", |cells| cells[0].starts_with("linrec_pipe-f32"))?;
    excerpt.take("modules.csv", |cells| cells[0].starts_with("linrec_pipe"))?;
    excerpt.take("mistakes.csv", |cells| cells[0] == "unshifted_in_scan")?;
    excerpt.take("speed.csv", |cells| ENGINES.contains(&cells[4]))
}
