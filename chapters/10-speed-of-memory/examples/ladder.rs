//! Measures every step of the ladder, in several sizes, against the roof and kernels of the
//! library, on a GPU:
//!
//! ```text
//! cargo run --release -p ch10-speed-of-memory --example ladder -- \
//!     --csv chapters/10-speed-of-memory/results/h200/ladder.csv
//! cargo xtask pack chapters/10-speed-of-memory/results/h200
//! ```
//!
//! First, every step must keep to its error bound. Then, at every length, all of them take turns,
//! and the caches are overwritten before each run; every run is a line of the record. Steps are
//! compiled on demand, which needs NVRTC.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use bench::csv;
use bench::field::Runner;
use bench::ladder::{self, Step};
use ch10_speed_of_memory::kernel::Kernel;
use ch10_speed_of_memory::rung::{Idea, Rung};
use clap::Parser;
use lesson::output::{self, println};
use linrec::contract::{self, Domain};
use linrec::device::{Copying, Device};

/// Measures every step of the ladder against the roof and the pipe kernel.
#[derive(Parser)]
struct Cli {
    /// Steps by the names of their files; all by default
    #[arg(long, value_delimiter = ',')]
    ideas: Vec<String>,
    /// Lengths of the sequences, multiples of 4
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "64,256,512,1024,4096,8192,16384,32768,65536"
    )]
    lengths: Vec<usize>,
    /// Number of sequences; by default 100 for each SM
    #[arg(long)]
    num_seqs: Option<usize>,
    /// Smallest number of measurements of each step
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
    if let Some(name) = cli.ideas.iter().find(|name| sizes(name).is_empty()) {
        return Err(format!("there is no step `{name}`; look into kernels/ladder").into());
    }
    let wanted =
        |rung: &Rung| cli.ideas.is_empty() || cli.ideas.iter().any(|name| name == rung.idea.name());
    let mut kernels = Vec::new();
    for rung in Idea::ALL.iter().flat_map(|idea| sizes(idea.name())).filter(wanted) {
        let kernel = Kernel::new(&device, rung)?;
        check(&kernel)?;
        kernels.push(kernel);
    }
    println!("{}: {} kernels are right", device.name(), kernels.len());
    if cli.check_only {
        return Ok(());
    }
    let settings = ladder::Settings {
        // The beginning and the end of the ladder.
        families: vec!["pipe", "rows", "wide"],
        lengths: cli.lengths.clone(),
        num_seqs: cli.num_seqs.unwrap_or(100 * device.attributes().multiprocessors as usize),
        runs: cli.runs,
    };
    let steps: Vec<Step> = kernels.into_iter().map(step).collect();
    let rows = ladder::measure(&device, &steps, &settings)?;
    if let Some(path) = &cli.csv {
        bench::write(path, &csv::write(bench::row::HEADER, &rows)?)?;
    }
    Ok(())
}

/// Returns the sizes in which a step is measured: vectors per thread, threads per block.
fn sizes(name: &str) -> Vec<Rung> {
    let of = |idea: Idea, sizes: &[(u32, u32)]| -> Vec<Rung> {
        sizes.iter().map(|&(vectors, threads)| Rung { idea, vectors, threads }).collect()
    };
    match name {
        "vectors" => of(Idea::Vectors, &[(1, 32), (1, 64), (1, 128), (1, 256), (1, 512)]),
        "blocked" => of(Idea::Blocked, &[(2, 32), (2, 64), (2, 128), (2, 256), (4, 128)]),
        "pieces" => {
            let small = [(2, 32), (2, 64), (4, 32), (2, 128), (4, 64), (2, 256), (4, 128)];
            let large = [(2, 512), (4, 256), (4, 512), (4, 1024)];
            [of(Idea::Pieces, &small), of(Idea::Pieces, &large)].concat()
        }
        "early" => of(Idea::Early, &[(1, 256), (1, 512), (2, 256), (2, 512), (4, 256), (4, 512)]),
        "ring" => {
            let of = |ahead| {
                of(Idea::Ring { ahead }, &[(2, 128), (2, 256), (2, 512), (4, 256), (4, 512)])
            };
            [of(1), of(2)].concat()
        }
        "persistent" => of(Idea::Persistent, &[(2, 64), (2, 128), (2, 256), (2, 512), (4, 512)]),
        "hints" => {
            let hints = [(true, true), (true, false), (false, true)];
            let of = |(loads, stores)| {
                of(Idea::Hints { loads, stores }, &[(2, 64), (2, 128), (2, 256), (4, 512)])
            };
            hints.into_iter().flat_map(of).collect()
        }
        "walk" => of(Idea::Walk, &[(1, 256), (2, 128), (2, 256), (4, 256), (4, 512), (4, 1024)]),
        _ => Vec::new(),
    }
}

/// Checks that the step's results keep to the error bound.
fn check(kernel: &Kernel) -> lesson::Result {
    // The addition is not a recurrence.
    if kernel.rung().idea == Idea::Walk {
        return Ok(());
    }
    let report = contract::run::<f32>(
        &Copying::from(kernel.clone()),
        &Domain { max_len: 4096, ..kernel.domain() },
    );
    if report.passed() { Ok(()) } else { Err(report.to_string().into()) }
}

/// Wraps a step for the measurement.
fn step(kernel: Kernel) -> Step {
    let tile = kernel.rung().tile() as usize;
    Step { kernel: Runner::Kernel(Arc::new(kernel)), tile }
}
