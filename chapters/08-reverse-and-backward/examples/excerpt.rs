//! Takes what the page shows from what the bundle for GPU hosts wrote (`cargo xtask bundle`).
//!
//! ```text
//! cargo run --release -p ch08-reverse-and-backward --example excerpt -- OUT chapters/08-reverse-and-backward/results/h200
//! ```

use std::io;
use std::path::Path;
use std::process::ExitCode;

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
    // Either pass of a recurrence in reverse, and the backward pass of any.
    take("bits.csv", &|cells| {
        cells[1] != "ref" && (cells[3] == "backward" || cells[4] == "reverse")
    })?;
    take("accesses.csv", &|cells| cells[0].starts_with("linrec_pipe-f32"))?;
    take("counters.csv", &|cells| cells[0].starts_with("linrec_pipe-f32"))?;
    take("modules.csv", &|cells| cells[0].starts_with("linrec_pipe"))?;
    take("mistakes.csv", &|cells| cells[0] == "unshifted_in_scan")?;
    take("speed.csv", &|cells| ENGINES.contains(&cells[4]))
}
