//! Measures what a launch costs and how much of it a graph saves: see [`bench::graphs`].
//!
//! ```text
//! cargo run --release -p bench --example graphs -- --csv graphs.csv
//! ```

use std::path::PathBuf;
use std::process::ExitCode;

use bench::{csv, graphs};
use clap::Parser;
use lesson::output::{self, println};
use linrec::device::Device;

/// Measures what a launch costs and how much of it a graph saves.
#[derive(Parser)]
struct Cli {
    /// Numbers of sequences
    #[arg(long, value_delimiter = ',', default_value = "1,16,132")]
    num_seqs: Vec<usize>,
    /// Lengths of the sequences
    #[arg(long, value_delimiter = ',', default_value = "64,256,1024,4096")]
    lengths: Vec<usize>,
    /// Number of measurements of each way
    #[arg(long, default_value_t = 31)]
    runs: usize,
    /// Write every measurement to this file
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

fn main() -> ExitCode {
    output::finish(measure(&output::parse()))
}

fn measure(cli: &Cli) -> lesson::Result {
    let device = Device::auto()?;
    if device.is_simt() && cli.csv.is_some() {
        return Err("times need a GPU, and so does --csv".into());
    }
    let Cli { num_seqs, lengths, runs, csv: file } = cli;
    let settings =
        graphs::Settings { num_seqs: num_seqs.clone(), lengths: lengths.clone(), runs: *runs };
    let calls = graphs::measure(&device, &settings)?;
    match file {
        Some(file) => bench::write(file, &csv::write(graphs::HEADER, &calls)?)?,
        None if device.is_simt() => {
            println!("\nThe emulator has the same results both ways; times need a GPU.");
        }
        None => {}
    }
    Ok(())
}
