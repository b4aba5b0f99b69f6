//! Copies the rows that the page shows from the output of the bundle for GPU hosts (`cargo xtask
//! bundle`).
//!
//! ```text
//! cargo run --release -p ch06-tile-kernel --example excerpt -- \
//!     OUT chapters/06-tile-kernel/results/h200
//! cargo xtask pack chapters/06-tile-kernel/results/h200
//! ```

use std::process::ExitCode;

use bench::Excerpt;
use linrec::contract::suspect;

/// The longest sequences that fit into one tile.
const MAX_LEN: usize = 1024;

fn main() -> ExitCode {
    Excerpt::main(excerpt)
}

fn excerpt(excerpt: &Excerpt) -> lesson::Result {
    excerpt.take("origin.csv", |_| true)?;
    excerpt.take("bits.csv", |cells| cells[1].starts_with("tile:"))?;
    excerpt.take("counters.csv", |cells| cells[0].starts_with("tile-"))?;
    excerpt.take("modules.csv", |cells| cells[0].starts_with("tile-"))?;
    excerpt.take("mistakes.csv", |cells| {
        suspect::names("linrec_tile.cu").any(|name| name == cells[0])
    })?;
    excerpt.take("speed.csv", |cells| {
        let engine = ["roof", "ref:64", "tile:4x256:0"].contains(&cells[4]);
        engine && cells[3] == "forward" && cells[6].parse().is_ok_and(|len: usize| len <= MAX_LEN)
    })
}
