//! Races kernels against the element-wise roof over lengths, by the project's protocol:
//!
//! ```text
//! cargo run --release -p linrec --example race -- --kernels pipe:8x64:0,pipe:4x256:0 --lengths 16,1024,65536
//! ```
//!
//! For every length all kernels run in turns, each with caches that hold nothing of use, `--runs` times; what is
//! printed are medians, what goes into `--csv` is every run. Results are not looked at here: that is the contract's work.

mod kernels;
mod rows;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use linrec::device::Device;
use rows::Rows;

/// Races kernels against the element-wise roof over lengths.
#[derive(Parser)]
struct Cli {
    /// Kernels: ref:64, or tile or pipe with elements per thread x threads per block : memcode
    #[arg(long, value_delimiter = ',', default_value = "pipe:8x64:0")]
    kernels: Vec<String>,
    /// Lengths of the sequences
    #[arg(long, value_delimiter = ',', default_value = "16,64,256,1024,4096")]
    lengths: Vec<usize>,
    /// How many sequences; 100 for each multiprocessor if not given
    #[arg(long)]
    num_seqs: Option<usize>,
    /// forward or backward
    #[arg(long, value_delimiter = ',', default_value = "forward,backward")]
    passes: Vec<String>,
    /// Measurements of each
    #[arg(long, default_value_t = 9)]
    runs: usize,
    /// Writes every measurement to this file
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

fn main() -> ExitCode {
    match race(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn race(cli: &Cli) -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::auto()?;
    let num_seqs = cli.num_seqs.unwrap_or(100 * device.attributes().multiprocessors as usize);
    let longest = cli.lengths.iter().copied().max().unwrap_or(0);
    println!("{}, {num_seqs} sequences, medians of {} runs", device.name(), cli.runs);
    let mut track = kernels::Track::new(&device, num_seqs, longest)?;
    let choices =
        cli.kernels.iter().map(|name| kernels::parse(name)).collect::<Result<Vec<_>, _>>()?;
    let runners = choices
        .iter()
        .zip(&cli.kernels)
        .map(|(choice, name)| kernels::Runner::new(&device, *choice, name))
        .collect::<Result<Vec<_>, _>>()?;
    let mut rows = Rows::new(&device, num_seqs);
    for pass in &cli.passes {
        for &seq_len in &cli.lengths {
            track.race(pass, seq_len, &runners, cli.runs, &mut rows)?;
            rows.print_last();
        }
    }
    if let Some(file) = &cli.csv {
        rows.write(file)?;
    }
    Ok(())
}
