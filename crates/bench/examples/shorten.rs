//! Shortens the record of `tour tune` for the repository. A line whose runs no picture shows keeps
//! only its smallest, median and largest time.
//!
//! ```text
//! cargo run --release -p bench --example shorten -- \
//!     OUT/tune/runs.csv chapters/11-tuning/results/h200/runs.csv
//! cargo xtask pack chapters/11-tuning/results/h200
//! ```

use std::path::Path;
use std::process::ExitCode;

use bench::csv::{self, Table};
use lesson::output::{self, eprintln};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [from, to] = arguments.as_slice() else {
        eprintln!("usage: shorten RUNS SHORTENED");
        return ExitCode::from(2);
    };
    output::finish(shorten(Path::new(from), Path::new(to)))
}

fn shorten(from: &Path, to: &Path) -> lesson::Result {
    let table = Table::read(&bench::read(from)?)?;
    let mut lines = vec![csv::row(table.header())?];
    for row in table.rows() {
        let mut runs: Vec<&str> = row.text("runs")?.split(' ').collect();
        if (row.text("element")?, row.text("num_seqs")?) != ("f32", "13200") {
            // All numbers have the same number of decimals, so a longer text is a larger number.
            runs.sort_unstable_by_key(|ms| (ms.len(), *ms));
            runs = vec![runs[0], runs[runs.len() / 2], runs[runs.len() - 1]];
        }
        let kept = runs.join(" ");
        let mut cells = row.cells();
        cells.pop();
        lines.push(csv::row(cells.into_iter().chain([kept.as_str()]))?);
    }
    bench::write(to, &(lines.join("\n") + "\n"))
}
