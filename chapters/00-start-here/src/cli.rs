//! The command line of the tour.

use std::process::ExitCode;

use bench::{attrs, command, tune};
use ch11_tuning::record;
use clap::{Parser, Subcommand};
use lesson::Settings;
use lesson::output::{self, println};

use crate::{catalogue, doctor, puzzles, tour};

/// Linear recurrences at the speed of memory: the tour.
///
/// Without arguments it runs every chapter in order. Each chapter explains what it computes, checks
/// itself, and writes its figures to target/tour.
#[derive(Parser)]
#[command(name = "tour", version, args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples (at the root of the workspace):
  cargo run --release                      all chapters
  cargo run --release -- 3 --step          chapter 3, waiting for Enter between its steps
  cargo run --release -- puzzle            the next puzzle: a kernel for you to write
  cargo run --release -- bench             how close this machine comes to the speed of memory
  cargo run --release -- tune pipe         the fastest configurations of the pipe kernel, on a GPU")]
struct Cli {
    /// The chapters to run, by number; all by default.
    #[arg(value_name = "CHAPTER")]
    chapters: Vec<String>,

    #[command(flatten)]
    settings: Settings,

    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// List the chapters.
    List,
    /// Fill the hole in each of several kernels, and see at once what is wrong with it.
    ///
    /// Without arguments it shows the next open puzzle, copies its kernel into my-puzzles and tries
    /// it whenever you save the file: on the emulator, which explains mistakes, and on a GPU if
    /// there is one.
    Puzzle(puzzles::Settings),
    /// Report what this machine offers, and whether the library works on it.
    Doctor,
    /// Measure the library on this machine's GPU, or else its CPU, against the roof.
    Bench(command::Settings),
    /// Report the resources of each configuration of the kernels: registers, shared memory,
    /// occupancy.
    Attrs(attrs::Settings),
    /// Measure the configurations of a kernel, and report the fastest one at each length.
    Tune(tune::Settings),
}

/// Runs the command that the command line names.
///
/// # Errors
///
/// Returns an error if the command line names something that does not exist, or a file cannot be
/// read or written.
pub fn run() -> lesson::Result<ExitCode> {
    let cli: Cli = output::parse();
    match cli.command {
        None => tour::run(&catalogue::select(&cli.chapters)?, &cli.settings),
        Some(Command::List) => {
            list();
            Ok(ExitCode::SUCCESS)
        }
        Some(Command::Puzzle(settings)) => puzzles::run(&settings),
        Some(Command::Doctor) => doctor::run(),
        // Both commands receive records: speeds of other implementations to compare with, and an
        // H200's attributes for machines without a GPU.
        Some(Command::Bench(settings)) => command::run(&settings, &record::peers()?).map(code),
        Some(Command::Attrs(settings)) => {
            attrs::run(&settings, &record::attrs()?).map(|()| ExitCode::SUCCESS)
        }
        Some(Command::Tune(settings)) => tune::run(&settings).map(code),
    }
}

fn code(right: bool) -> ExitCode {
    if right { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn list() {
    for chapter in catalogue::CHAPTERS {
        println!("{:>2}  {:<28}  chapters/{}", chapter.number, chapter.title, chapter.slug);
    }
}
