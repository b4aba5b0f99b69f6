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

use bench::csv;
use bench::row::{Row, WITH_RUNS};
use lesson::output::{self, eprintln};
use linrec::kernels::ElementType;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [from, to] = arguments.as_slice() else {
        eprintln!("usage: shorten RUNS SHORTENED");
        return ExitCode::from(2);
    };
    output::finish(shorten(Path::new(from), Path::new(to)))
}

fn shorten(from: &Path, to: &Path) -> lesson::Result {
    let mut rows: Vec<Row> = csv::read(&bench::read(from)?)?;
    for row in &mut rows {
        if (row.element, row.num_seqs) != (ElementType::F32, 13_200) {
            row.runs.sort_by(f64::total_cmp);
            let last = row.runs.len() - 1;
            row.runs = [0, row.runs.len() / 2, last].map(|place| row.runs[place]).to_vec();
        }
    }
    bench::write(to, &csv::write(WITH_RUNS, &rows)?)
}
