//! Makes the rule that the library picks by from the record of `tour tune`, as `tour tune` itself does: after kernels have
//! been added to those that are shipped, the same measurements have other finalists.
//!
//! ```text
//! cargo run --release -p ch09-tuning --example rule -- OUT/tune/runs.csv src/kernels/tuned.csv
//! ```

use std::process::ExitCode;

use ch09_tuning::{log, rule};
use linrec::lesson;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [runs, tuned] = arguments.as_slice() else {
        eprintln!("usage: rule RUNS.csv TUNED.csv");
        return ExitCode::from(2);
    };
    match make(runs, tuned) {
        Ok(finalists) => {
            println!("{tuned}: {finalists} finalists");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn make(runs: &str, tuned: &str) -> lesson::Result<usize> {
    let text = std::fs::read_to_string(runs).map_err(|error| format!("{runs}: {error}"))?;
    let rule = rule::finalists(&log::read(&text)?);
    std::fs::write(tuned, rule::to_csv(&rule)).map_err(|error| format!("{tuned}: {error}"))?;
    Ok(rule.len())
}
