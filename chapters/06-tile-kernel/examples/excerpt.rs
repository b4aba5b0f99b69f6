//! Takes what the page shows from what the bundle for GPU hosts wrote (`cargo xtask bundle`).
//!
//! ```text
//! cargo run --release -p ch06-tile-kernel --example excerpt -- OUT chapters/06-tile-kernel/results/h200
//! ```

use std::io;
use std::path::Path;
use std::process::ExitCode;

use ch06_tile_kernel::suspect;

/// The longest sequences that are one tile.
const MAX_LEN: usize = 1024;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [from, to] = arguments.as_slice() else {
        eprintln!("usage: excerpt FOLDER_OF_THE_BUNDLES_OUTPUT FOLDER");
        return ExitCode::from(2);
    };
    match excerpt(Path::new(from), Path::new(to)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn excerpt(from: &Path, to: &Path) -> io::Result<()> {
    let take = |file: &str, wanted: &dyn Fn(&[&str]) -> bool| -> io::Result<()> {
        let text = std::fs::read_to_string(from.join(file))?;
        let mut lines = text.lines();
        let header = lines.next().unwrap_or_default();
        let kept = lines.filter(|line| wanted(&line.split(',').collect::<Vec<_>>()));
        let kept: String =
            [header].into_iter().chain(kept).map(|line| format!("{line}\n")).collect();
        std::fs::write(to.join(file), kept)
    };
    take("origin.csv", &|_| true)?;
    take("bits.csv", &|cells| cells[1] == "tile")?;
    take("counters.csv", &|cells| cells[0].starts_with("linrec_tile"))?;
    take("modules.csv", &|cells| cells[0].starts_with("linrec_tile"))?;
    take("mistakes.csv", &|cells| suspect::names().any(|name| name == cells[0]))?;
    take("speed.csv", &|cells| {
        let engine = ["roof", "ref:64", "tile:4x256:0"].contains(&cells[4]);
        engine && cells[3] == "forward" && cells[6].parse().is_ok_and(|len: usize| len <= MAX_LEN)
    })
}
