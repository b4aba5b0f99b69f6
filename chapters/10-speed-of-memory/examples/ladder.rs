//! Measures every step of the ladder, in several sizes, beside the roof and the pipe kernel, on a GPU:
//!
//! ```text
//! cargo run --release -p ch10-speed-of-memory --example ladder -- --csv chapters/10-speed-of-memory/results/h200/ladder.csv
//! ```
//!
//! First each is held to the test contract. Then, at every length, all take turns, each after the caches have been
//! overwritten; every run is a line of the record. Steps are compiled when they are needed, so it wants NVRTC.

use std::path::PathBuf;
use std::process::ExitCode;

use ch09_tuning::field::{self, Field, Roof, Runner};
use ch09_tuning::race::HEADER;
use ch10_speed_of_memory::kernel::{Arrays, Kernel};
use ch10_speed_of_memory::rung::{Idea, Rung};
use clap::Parser;
use linrec::contract::{self, Domain};
use linrec::device::{Device, Recurrence};
use linrec::kernels::{ElementType, KernelChoice, Pass};
use linrec::lesson::{self, machine};

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
    /// How many sequences; 100 for each multiprocessor if not given
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
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
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
    let csv = measure(cli, &device, &kernels)?;
    if let Some(path) = &cli.csv {
        std::fs::write(path, csv).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

/// The sizes that a step is measured in: words for each thread, threads.
fn sizes(name: &str) -> Vec<Rung> {
    let of = |idea: Idea, sizes: &[(u32, u32)]| -> Vec<Rung> {
        sizes.iter().map(|&(words, threads)| Rung { idea, words, threads }).collect()
    };
    match name {
        "words" => of(Idea::Words, &[(1, 32), (1, 64), (1, 128), (1, 256), (1, 512)]),
        "neighbours" => of(Idea::Neighbours, &[(2, 32), (2, 64), (2, 128), (2, 256), (4, 128)]),
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

fn measure(cli: &Cli, device: &Device, kernels: &[Kernel]) -> lesson::Result<String> {
    let num_seqs = cli.num_seqs.unwrap_or(100 * device.attributes().multiprocessors as usize);
    let longest = cli.lengths.iter().copied().max().unwrap_or(0);
    let mut field = Field::<f32>::new(device, num_seqs * longest)?;
    let mut csv = format!("{HEADER}\n");
    let (date, machine) = (machine::date(), device.name().replace(',', " "));
    let progress = lesson::progress(cli.lengths.len(), "measuring");
    for &seq_len in &cli.lengths {
        let shape = (num_seqs, seq_len);
        let elements = num_seqs * seq_len;
        // Beside the steps: where they begin, and where they lead.
        let mut shown = vec![Runner::Roof(Roof::Words)];
        for name in ["pipe", "rows", "wide"] {
            let (num, len) = (num_seqs as u64, seq_len as u64);
            let best =
                KernelChoice::best_named(name, ElementType::F32, Pass::Forward, num, len, true);
            if let Some(choice) = best {
                shown.push(Runner::Kernel(Box::new(Recurrence::new(device, choice)?)));
            }
        }
        // A tile far longer than the row only has more threads with nothing to do.
        let kernels: Vec<&Kernel> = kernels
            .iter()
            .filter(|kernel| kernel.rung().tile() as usize <= (2 * seq_len).max(128))
            .collect();
        let mut line = |name: &str, ms: f64, roof: f64| {
            let speed = 12.0 * elements as f64 / ms / 1e6;
            csv += &format!(
                "{date},{machine},f32,forward,{name},{num_seqs},{seq_len},{ms:.6},{speed:.1},{:.4}\n",
                roof / ms
            );
        };
        for round in 0..=field::runs_of(cli.runs, 12 * elements) {
            let mut roof = f64::NAN;
            for (place, runner) in shown.iter().enumerate() {
                let ms = field.time_ms(runner, Pass::Forward, shape)?;
                if place == 0 {
                    roof = ms;
                }
                // What is loaded late is loaded in the first round, which does not count.
                if round > 0 {
                    line(&runner.name(), ms, roof);
                }
            }
            for kernel in &kernels {
                let ms = field.forward_ms(elements, |x, c, y, stream| {
                    let (initial, final_state) = (None, None);
                    let arrays = Arrays { inputs: x, coeffs: c, outputs: y, initial, final_state };
                    kernel.launch(arrays, shape, stream).map(drop)
                })?;
                if round > 0 {
                    line(&kernel.rung().name(), ms, roof);
                }
            }
        }
        progress.inc(1);
    }
    progress.finish_and_clear();
    Ok(csv)
}
