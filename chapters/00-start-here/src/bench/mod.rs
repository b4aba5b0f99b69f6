//! `tour bench`: the library's CPU engine beside the plain loop and the roof, all in one run.
//!
//! The roof is an element-wise kernel that moves the same bytes: an add of two arrays into a third for
//! the forward pass (12 bytes per f32 element), three arrays combined into two for the backward pass
//! (20 bytes). No recurrence can be faster, and one that is as fast costs nothing beyond its memory.
//!
//! Arrays beyond the caches are measured on all cores, arrays inside them on one. The engines take
//! turns, so that a disturbance meets all of them, and every run is kept.

mod buffers;
mod output;
mod plain;
mod round;

use std::path::PathBuf;

use linrec::lesson;

use buffers::{Direction, Problem};
use output::{CsvFile, Summary};

/// What to measure.
#[derive(Debug, clap::Args)]
pub struct Settings {
    /// Write every single run to this file as CSV.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Replace the CSV file if there is one.
    #[arg(long, requires = "csv")]
    overwrite: bool,

    /// How many runs of each engine.
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,

    /// How much memory the arrays take together, in MiB, where they are to be larger than the caches.
    #[arg(long, value_name = "MIB", default_value_t = 480, value_parser = clap::value_parser!(u32).range(1..=65536))]
    memory: u32,

    /// How much memory they take, in KiB, where they are to stay inside a core's own cache.
    #[arg(long, value_name = "KIB", default_value_t = 384, value_parser = clap::value_parser!(u32).range(1..=65536))]
    cache: u32,
}

/// The sequence lengths, 16 to 65536.
const LENGTHS: std::ops::RangeInclusive<u32> = 4..=16;

/// Measures everything and prints the tables.
///
/// # Errors
///
/// If the CSV file cannot be written; that is found out before anything is measured.
pub fn run(settings: &Settings) -> lesson::Result {
    let mut csv = settings.csv.as_deref().map(|path| CsvFile::create(path, settings.overwrite));
    let mut csv = csv.take().transpose()?;

    let all_cores = rayon::current_num_threads();
    println!("{}, f32, medians of {} runs", output::machine(all_cores), settings.runs);
    for direction in [Direction::Forward, Direction::Backward] {
        let elements = settings.memory as usize * (1 << 20) / direction.bytes_per_element();
        let mut problems: Vec<_> = lengths().map(|len| Problem::new(elements, len, all_cores)).collect();
        problems.push(Problem::new(elements, elements, all_cores));
        let title = format!("{direction}, arrays of {} MiB together", settings.memory);
        measure(&title, direction, &problems, settings.runs, csv.as_mut())?;

        let elements = settings.cache as usize * (1 << 10) / direction.bytes_per_element();
        let fits = lengths().filter(|&len| len <= elements);
        let problems: Vec<_> = fits.map(|len| Problem::new(elements, len, 1)).collect();
        let title = format!("{direction}, arrays of {} KiB together", settings.cache);
        measure(&title, direction, &problems, settings.runs, csv.as_mut())?;
    }
    if let Some(csv) = csv {
        println!("\nEvery run is in {}.", csv.path().display());
    }
    Ok(())
}

fn lengths() -> impl Iterator<Item = usize> {
    LENGTHS.map(|power| 1 << power)
}

/// Measures problems of one kind and prints their table.
fn measure(
    title: &str,
    direction: Direction,
    problems: &[Problem],
    runs: u32,
    mut csv: Option<&mut CsvFile>,
) -> lesson::Result {
    let threads = problems.first().map_or(1, |problem| problem.threads);
    let largest = problems.iter().map(|problem| problem.elements()).max().unwrap_or(0);
    let mut buffers = buffers::Buffers::new(direction, largest)?;
    let mut summary = Summary::new();
    let progress = output::progress(problems.len(), title);
    for problem in problems {
        let rounds = round::rounds(problem, &mut buffers, runs)?;
        if let Some(csv) = csv.as_deref_mut() {
            csv.write(direction, problem, &rounds)?;
        }
        summary.add(direction, problem, &rounds);
        progress.inc(1);
    }
    progress.finish_and_clear();
    let plural = if threads == 1 { "" } else { "s" };
    println!("\n{title}, {threads} thread{plural}, GB/s:\n\n{}", summary.text());
    Ok(())
}
