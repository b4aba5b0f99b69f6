//! Copies the rows that the page shows from the output of the bundle for GPU hosts (`cargo xtask
//! bundle`).
//!
//! ```text
//! cargo run --release -p ch09-loads-and-stores --example excerpt -- \
//!     OUT chapters/09-loads-and-stores/results/h200
//! cargo xtask pack chapters/09-loads-and-stores/results/h200
//! ```

use std::process::ExitCode;

use bench::Excerpt;

/// The compared engines: the ways of one configuration, the ways of another, and the fast ones.
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

fn excerpt(excerpt: &Excerpt) -> lesson::Result {
    excerpt.take("origin.csv", |_| true)?;
    let of_f32 = |cell: &str| cell.starts_with("pipe-") && cell.contains("-f32/");
    excerpt.take("accesses.csv", |cells| of_f32(cells[0]))?;
    excerpt.take("counters.csv", |cells| of_f32(cells[0]))?;
    excerpt.take("speed.csv", |cells| ENGINES.contains(&cells[4]))
}
