//! Makes the rule by which the library chooses kernels from the record of `tour tune`, as `tour
//! tune` itself does. After kernels have been added to the shipped ones, the same measurements give
//! other finalists. Lines of the old rule remain if the record lacks their kernel and shape.
//!
//! ```text
//! cargo run --release -p bench --example rule -- OUT/tune/runs.csv src/kernels/tuned.csv
//! ```

use std::path::Path;
use std::process::ExitCode;

use bench::{csv, rule};
use lesson::output::{self, eprintln, println};
use linrec::kernels::Tuned;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [runs, tuned] = arguments.as_slice() else {
        eprintln!("usage: rule RUNS.csv TUNED.csv");
        return ExitCode::from(2);
    };
    let made = make(runs, tuned);
    output::finish(made.map(|finalists| println!("{tuned}: {finalists} finalists")))
}

fn make(runs: &str, tuned: &str) -> lesson::Result<usize> {
    let earlier = match Path::new(tuned).exists() {
        true => Tuned::read(&bench::read(Path::new(tuned))?)?,
        false => Vec::new(),
    };
    let rule = rule::renewed(&earlier, &csv::read(&bench::read(Path::new(runs))?)?);
    bench::write(Path::new(tuned), &rule::to_csv(&rule))?;
    Ok(rule.len())
}
