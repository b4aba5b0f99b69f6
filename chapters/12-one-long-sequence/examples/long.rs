//! Measures every way to compute one long sequence against the roof, on a GPU:
//!
//! ```text
//! cargo run --release -p ch12-one-long-sequence --example long -- \
//!     --csv chapters/12-one-long-sequence/results/h200/long.csv
//! cargo xtask pack chapters/12-one-long-sequence/results/h200
//! ```
//!
//! First, every way must pass the test contract. Then, at every length, all of them take turns, and
//! the caches are overwritten before each run; every run is a line of the record. The ways of the
//! chapter are compiled for tiles of 8192 steps, which needs NVRTC.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use bench::csv;
use bench::field::Runner;
use bench::long::{self, Settings};
use ch12_one_long_sequence::kernel::{Kernel, Raced, Size, Way};
use clap::Parser;
use lesson::output::{self, println};
use linrec::contract::{self, Domain};
use linrec::device::{Device, KernelEngine};
use linrec::kernels::{KernelChoice, Pass};
use linrec::reference::{self, Rounding};
use linrec::{Engine, Options};

/// The library's kernels: two sizes of waves, a size of once, and the best kernel with a block for
/// each row.
const FORWARD: [&str; 4] = ["waves:4x288", "waves:4x352:a4", "once:4x512", "wide:4x512:a2:w"];
const BACKWARD: [&str; 4] = ["waves:4x288", "waves:4x352:a4", "once:4x512", "wide:4x512:a1:w"];
/// Tiles of 8192 steps, in registers.
const SIZE: Size = Size { vectors: 4, threads: 512 };

/// Measures every way to compute one long sequence against the roof.
#[derive(Parser)]
struct Cli {
    /// Kernels of the library, forward
    #[arg(long, value_delimiter = ',', default_values_t = FORWARD.map(String::from))]
    forward: Vec<String>,
    /// Kernels of the library, backward
    #[arg(long, value_delimiter = ',', default_values_t = BACKWARD.map(String::from))]
    backward: Vec<String>,
    /// Lengths of the sequence, as powers of two
    #[arg(long, value_delimiter = ',', default_value = "16,18,20,22,24,26,28,30")]
    powers: Vec<u32>,
    /// Smallest number of measurements of each way
    #[arg(long, default_value_t = 9)]
    runs: usize,
    /// Compile and check, but measure nothing
    #[arg(long)]
    check_only: bool,
    /// Write every measurement to this file
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

fn main() -> ExitCode {
    output::finish(run(&output::parse()))
}

fn run(cli: &Cli) -> lesson::Result {
    let device = Device::auto()?;
    if device.is_simt() {
        return Err("there is no GPU here, and the emulator has no clock".into());
    }
    let lengths: Vec<usize> = cli.powers.iter().map(|&power| 1 << power).collect();
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let mut others: Vec<Runner<f32>> = Vec::new();
    for way in Way::ALL {
        let kernel = Kernel::new(&device, way, SIZE)?;
        let max_len = SIZE.steps() + 100;
        check(contract::run::<f32>(&kernel, &Domain { max_len, ..kernel.domain() }))?;
        many_tiles(&kernel)?;
        others.push(Runner::Kernel(Arc::new(Raced::new(kernel, longest)?)));
    }
    let mut choices = Vec::new();
    for (pass, names) in [(Pass::Forward, &cli.forward), (Pass::Backward, &cli.backward)] {
        for name in names {
            let choice: KernelChoice = name.parse()?;
            let engine = KernelEngine::<f32>::new(&device, choice)?;
            let domain = engine.domain();
            let max_len = domain.max_len.min(SIZE.steps() + 100);
            check(contract::run::<f32>(&engine, &Domain { max_len, ..domain }))?;
            choices.push((pass, choice));
        }
    }
    println!("{}: {} kernels are right", device.name(), others.len() + choices.len());
    if cli.check_only {
        return Ok(());
    }
    let settings = Settings { choices, lengths, runs: cli.runs };
    let rows = long::measure(&device, &others, &settings)?;
    if let Some(path) = &cli.csv {
        bench::write(path, &csv::write(bench::row::HEADER, &rows)?)?;
    }
    Ok(())
}

/// Checks a sequence of hundreds of tiles in several launches in a row.
fn many_tiles(kernel: &Kernel) -> lesson::Result {
    let seq_len = 300 * SIZE.steps() + 77;
    let (inputs, coeffs) = bench::draw::near_one((1, seq_len), 12);
    let (x, c, options) = (inputs.view(), coeffs.view(), Options::default());
    let rounding = Rounding { levels: Domain::tree_levels(seq_len), exp_ulps: 0.0 };
    let exact = reference::forward(x, c, &options)?.outputs;
    let bound = reference::forward_bound(x, c, &options, rounding)?.outputs;
    for _ in 0..5 {
        let outputs = kernel.forward(x, c, &options)?.outputs;
        let mut errors = outputs.iter().zip(&exact).zip(&bound);
        let wrong = errors.position(|((&y, exact), bound)| {
            // This comparison makes NaN wrong.
            let right = (f64::from(y) - exact).abs() <= *bound;
            !right
        });
        if let Some(l) = wrong {
            let (name, is, right) = (kernel.label(), outputs[[0, l]], exact[[0, l]]);
            return Err(format!("{name}: outputs[{l}] is {is} instead of {right}").into());
        }
    }
    Ok(())
}

/// Turns a report with failures into an error.
fn check(report: contract::Report) -> lesson::Result {
    if report.passed() { Ok(()) } else { Err(report.to_string().into()) }
}
