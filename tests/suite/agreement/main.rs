//! Runs random programs on a GPU and in the emulator, and prints those that differ in any bit:
//!
//! ```text
//! cargo run --release -p linrec-suite --example agreement -- --programs 100000 --seed 1
//! ```
//!
//! Program `n` has the seed `n`, whatever the options; its input is drawn for the module that
//! contains it. A program on which the two disagree is shortened as far as possible and printed
//! with the first word that differs. The exit code is 0 if all agree, 1 if some do not, and 2 if a
//! module cannot be run.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use clap::Parser;
use linrec::Error;
use linrec::device::{Buffer, Device, Function};
use num_complex::Complex;
use rayon::prelude::*;
use simt_fuzz::programs::{self, BLOCKS, Program, THREADS, WORDS, Way, Writing, word_name};

/// Runs random programs on a GPU and in the emulator, and compares every bit.
#[derive(Parser)]
struct Cli {
    /// Number of programs
    #[arg(long, default_value_t = 100_000)]
    programs: u64,
    /// Seed of the first program; the others follow
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of programs compiled at a time, as one module
    #[arg(long, default_value_t = 64)]
    per_module: u64,
    /// cuda, cuda:1, or simt to try the comparison itself
    #[arg(long, default_value = "cuda")]
    device: String,
    /// Number of disagreeing programs that are shortened and printed
    #[arg(long, default_value_t = 10)]
    shown: u64,
}

type Given = (Vec<u32>, [u64; 2]);

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn open(name: &str) -> Result<Device, Error> {
    match name.strip_prefix("cuda") {
        Some(number) => Device::cuda(number.trim_start_matches(':').parse().unwrap_or(0)),
        None => Ok(Device::simt()),
    }
}

/// Returns the number of programs on which the two disagree.
fn run(cli: &Cli) -> Result<u64, Error> {
    let device = open(&cli.device)?;
    let begin = Instant::now();
    let (different, done) = (AtomicU64::new(0), AtomicU64::new(0));
    let firsts: Vec<u64> = (0..cli.programs).step_by(cli.per_module.max(1) as usize).collect();
    firsts.par_iter().try_for_each(|&first| {
        let count = cli.per_module.min(cli.programs - first);
        let seed = cli.seed + first;
        let found = compare(&device, seed, count).inspect_err(|_| {
            eprintln!("in the module of the programs {seed} to {}", seed + count - 1);
        })?;
        for (program, given, word) in found {
            let what = format!("program {}: {}", program.seed(), word_name(word));
            if different.fetch_add(1, Relaxed) < cli.shown {
                let short = shortened(&device, &program, &given)?;
                println!("{what}\n{short}\n");
            } else {
                println!("{what}");
            }
        }
        let before = done.fetch_add(count, Relaxed);
        if (before + count) / 10_000 != before / 10_000 {
            let seconds = begin.elapsed().as_secs();
            eprintln!("{} programs in {seconds} s", before + count);
        }
        Ok::<(), Error>(())
    })?;
    let (different, seconds) = (different.into_inner(), begin.elapsed().as_secs_f64());
    println!(
        "{} programs from seed {} on {} and in the emulator: {different} differ ({seconds:.0} s)",
        cli.programs,
        cli.seed,
        device.name()
    );
    Ok(different)
}

/// Returns the disagreeing programs of a module, each with the first word that differs.
fn compare(device: &Device, seed: u64, count: u64) -> Result<Vec<(Program, Given, usize)>, Error> {
    let given = programs::inputs(seed);
    let programs: Vec<Program> = (seed..seed + count).map(Program::new).collect();
    let none = BTreeSet::new();
    let kernels: Vec<String> = programs
        .iter()
        .map(|program| program.kernel(&name(program), &none, Writing::default()))
        .collect();
    let source = programs::module(&kernels);
    let found = on_device(device, &source, programs.iter().map(name), &given)?;
    let wanted = emulated(&source, programs.iter().map(name), &given)?;
    let words = found.chunks(WORDS).zip(&wanted);
    Ok(programs
        .into_iter()
        .zip(words)
        .filter_map(|(program, (found, wanted))| {
            let word = (0..WORDS).find(|&word| found[word] != wanted[word])?;
            Some((program, given.clone(), word))
        })
        .collect())
}

fn name(program: &Program) -> String {
    format!("program_{}", program.seed())
}

/// Returns what the programs of a source write on a device, one after the other.
fn on_device(
    device: &Device,
    source: &str,
    names: impl Iterator<Item = String>,
    (words, last): &Given,
) -> Result<Vec<u32>, Error> {
    let functions: Vec<Function> = device.module(source)?.functions().collect();
    let inputs = device.upload(words)?;
    let results: Buffer<u32> = device.zeros(functions.len() * WORDS)?;
    let stream = device.stream();
    let last = Complex::new(f64::from_bits(last[0]), f64::from_bits(last[1]));
    for (number, name) in names.enumerate() {
        let function = functions.iter().find(|function| function.name() == name);
        let function = function.ok_or_else(|| Error::Device {
            device: device.label().to_owned(),
            message: format!("there is no kernel {name} in a module of them"),
        })?;
        let mut results = results.slice(number * WORDS..(number + 1) * WORDS)?;
        let launch = function.launch(BLOCKS as u32, THREADS as u32);
        launch.arg(&inputs).arg(&mut results).arg(last).run(&stream)?;
    }
    results.download()
}

/// Returns what the programs of a source write in the emulator, one list for each.
fn emulated(
    source: &str,
    names: impl Iterator<Item = String>,
    given: &Given,
) -> Result<Vec<Vec<u32>>, Error> {
    let failed = |message: String| Error::Device { device: "emulator".to_owned(), message };
    let module = simt::Module::parse(source).map_err(|error| failed(error.to_string()))?;
    names
        .map(|name| {
            let kernel = module.kernel(&name).ok_or_else(|| {
                let refusal = module.refusal(&name).map(ToString::to_string);
                failed(format!("{name}: {}", refusal.unwrap_or_default()))
            })?;
            programs::results(kernel, given, Way::InOrder).map_err(Error::Kernel)
        })
        .collect()
}

/// Returns the shortest form of a program that still disagrees, and the difference.
fn shortened(device: &Device, program: &Program, given: &Given) -> Result<String, Error> {
    let difference = |omitted: &BTreeSet<u32>| -> Result<Option<String>, Error> {
        let source = programs::module(&[program.kernel("short", omitted, Writing::default())]);
        let names = || ["short".to_owned()].into_iter();
        let found = on_device(device, &source, names(), given)?;
        let wanted = &emulated(&source, names(), given)?[0];
        let word = (0..WORDS).find(|&word| found[word] != wanted[word]);
        Ok(word.map(|word| {
            let (found, wanted) = (found[word], wanted[word]);
            let what = word_name(word);
            format!("{what}: {found:#010x} on {}, {wanted:#010x} in the emulator", device.label())
        }))
    };
    let omitted = program.superfluous(|omitted| matches!(difference(omitted), Ok(Some(_))));
    let what = difference(&omitted)?.unwrap_or_else(|| "not when run again".to_owned());
    Ok(format!("{}{what}", program.text(&omitted, Writing::default())))
}
