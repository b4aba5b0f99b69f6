//! Races kernels against the element-wise roof over several lengths:
//!
//! ```text
//! cargo run --release -p bench --example race -- \
//!     --kernels pipe:8x64:0,pipe:4x256:0 --lengths 16,1024,65536
//! ```
//!
//! At every length the kernels take turns for `--runs` rounds, and caches are overwritten before
//! each run. The program prints medians and writes every run to `--csv`. It does not check the
//! results; the test contract does.

use std::path::PathBuf;
use std::process::ExitCode;

use bench::field::{Field, Roof, Runner};
use bench::row::{Baseline, HEADER, Measured};
use bench::{Row, Runs, csv};
use clap::Parser;
use lesson::output::{self, println};
use linrec::device::Device;
use linrec::kernels::{ElementType, KernelChoice, Pass};

/// Races kernels against the element-wise roof over lengths.
#[derive(Parser)]
struct Cli {
    /// Kernels: ref:64, pipe:8x64:0, rows:16x2x32:w, wide:2x512:a2:w, as the library writes them
    #[arg(long, value_delimiter = ',', default_value = "pipe:8x64:0")]
    kernels: Vec<KernelChoice>,
    /// Lengths of the sequences
    #[arg(long, value_delimiter = ',', default_value = "16,64,256,1024,4096")]
    lengths: Vec<usize>,
    /// Number of sequences; by default 100 for each SM
    #[arg(long)]
    num_seqs: Option<usize>,
    /// Passes: forward or backward
    #[arg(long, value_delimiter = ',', default_value = "forward,backward")]
    passes: Vec<Pass>,
    /// Number of measurements of each kernel
    #[arg(long, default_value_t = 9)]
    runs: usize,
    /// Write every measurement to this file
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

fn main() -> ExitCode {
    output::finish(race(&output::parse()))
}

fn race(cli: &Cli) -> lesson::Result {
    let device = Device::auto()?;
    let num_seqs = cli.num_seqs.unwrap_or(100 * device.attributes().multiprocessors as usize);
    let longest = cli.lengths.iter().copied().max().unwrap_or(0);
    println!("{}, {num_seqs} sequences, medians of {} runs", device.name(), cli.runs);
    let mut field = Field::<f32>::new(&device, num_seqs * longest)?;
    let kernels = cli.kernels.iter().map(|&kernel| Runner::kernel(&device, kernel));
    let kernels = kernels.collect::<Result<Vec<_>, _>>()?;
    let mut rows = Vec::new();
    for &pass in &cli.passes {
        for &seq_len in &cli.lengths {
            let takes = |kernel: &KernelChoice| kernel.takes(ElementType::F32, seq_len as u64);
            let here = cli.kernels.iter().zip(&kernels).filter(|(kernel, _)| takes(kernel));
            let roof = Runner::Roof(Roof::Vectors);
            let runners: Vec<_> =
                [roof].into_iter().chain(here.map(|(_, runner)| runner.clone())).collect();
            let measured = Measured {
                machine: device.name(),
                element: ElementType::F32,
                pass,
                shape: (num_seqs, seq_len),
            };
            let here = field.race(&measured, &runners, cli.runs, Baseline::Median)?;
            print(&measured, &runners, &here);
            rows.extend(here);
        }
    }
    if let Some(file) = &cli.csv {
        bench::write(file, &csv::write(HEADER, &rows)?)?;
    }
    Ok(())
}

/// Prints the medians of a race as a line.
fn print(measured: &Measured, runners: &[Runner<f32>], rows: &[Row]) {
    let (runs, seq_len) = (rows.iter().collect::<Runs>(), measured.shape.1);
    let roof = runs.median("roof", seq_len).map_or(f64::NAN, |run| run.ms);
    let mut line = format!("{:8} {seq_len:6}", measured.pass);
    for name in runners.iter().map(Runner::name) {
        let Some(run) = runs.median(&name, seq_len) else { continue };
        line += &format!("  {name} {:.0} ({:.3})", run.gb_per_s, roof / run.ms);
    }
    println!("{line}");
}
