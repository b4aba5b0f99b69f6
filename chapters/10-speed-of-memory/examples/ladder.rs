//! Measures every step of the ladder, in several sizes, beside the roof and the pipe kernel, on a
//! GPU:
//!
//! ```text
//! cargo run --release -p ch10-speed-of-memory --example ladder -- --csv chapters/10-speed-of-memory/results/h200/ladder.csv
//! cargo xtask pack chapters/10-speed-of-memory/results/h200
//! ```
//!
//! First each is held to the contract. Then, at every length, all take turns, each after the caches
//! have been overwritten; every run is a line of the record. Steps are compiled when they are
//! needed, so it wants NVRTC.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use bench::Row;
use bench::ladder::{self, Step};
use ch10_speed_of_memory::kernel::Kernel;
use ch10_speed_of_memory::rung::{Idea, Rung};
use clap::Parser;
use lesson::output::{self, println};
use linrec::contract::{self, Domain};
use linrec::device::Device;

/// Measures every step of the ladder beside the roof and the pipe kernel.
#[derive(Parser)]
struct Cli {
    /// Steps by the names of their files; all of them if none is given
    #[arg(long, value_delimiter = ',')]
    ideas: Vec<String>,
    /// Lengths of the sequences, multiples of 4
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "64,256,512,1024,4096,8192,16384,32768,65536"
    )]
    lengths: Vec<usize>,
    /// How many sequences; 100 for each SM if not given
    #[arg(long)]
    num_seqs: Option<usize>,
    /// Measurements of each, at least
    #[arg(long, default_value_t = 9)]
    runs: usize,
    /// Compiles and checks, and measures nothing
    #[arg(long)]
    check_only: bool,
    /// Writes every measurement to this file
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
        // Where the steps begin, and where they lead.
        families: vec!["pipe", "rows", "wide"],
        lengths: cli.lengths.clone(),
        num_seqs: cli.num_seqs.unwrap_or(100 * device.attributes().multiprocessors as usize),
        runs: cli.runs,
    };
    let steps: Vec<Step> = kernels.into_iter().map(step).collect();
    let rows = ladder::measure(&device, &steps, &settings)?;
    if let Some(path) = &cli.csv {
        bench::write(path, &Row::to_csv(&rows)?)?;
    }
    Ok(())
}

/// The sizes that a step is measured in: vectors for each thread, threads.
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

/// Whether its results keep to the bound.
fn check(kernel: &Kernel) -> lesson::Result {
    // The addition is no recurrence.
    if kernel.rung().idea == Idea::Walk {
        return Ok(());
    }
    let report = contract::run::<f32>(kernel, &Domain { max_len: 4096, ..kernel.domain() });
    if report.passed() { Ok(()) } else { Err(report.to_string().into()) }
}

/// A step as it is measured.
fn step(kernel: Kernel) -> Step {
    let tile = kernel.rung().tile() as usize;
    Step { kernel: Arc::new(kernel), tile }
}
