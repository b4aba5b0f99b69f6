//! The command line.

use std::process::ExitCode;

use bench::{attrs, command, tune};
use ch11_tuning::record;
use clap::{Parser, Subcommand};
use lesson::Settings;
use lesson::output::{self, println};

use crate::{catalogue, doctor, puzzles, tour};

/// Linear recurrences at the speed of memory: the tour.
///
/// Without arguments it runs every chapter in order. Each one says what it computes, checks itself,
/// and leaves its figures in target/tour.
#[derive(Parser)]
#[command(name = "tour", version, args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples (at the root of the workspace):
  cargo run --release                      all chapters
  cargo run --release -- 3 --step          chapter 3, waiting for Enter between its steps
  cargo run --release -- puzzle            the next puzzle: a kernel for you to write
  cargo run --release -- bench             how close this machine comes to the speed of memory
  cargo run --release -- tune pipe         the fastest configurations of the pipe kernel, on a GPU")]
struct Cli {
    /// The chapters to run, by number; all if none is named.
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
    /// Fill in kernels that have a hole each, and see at once what is wrong with them.
    ///
    /// Without arguments it shows the next open puzzle, copies its kernel into my-puzzles and tries
    /// it whenever you save the file: on the emulator, which says what is wrong, and on a GPU if
    /// there is one.
    Puzzle(puzzles::Settings),
    /// Say what this machine offers, and whether the library works on it.
    Doctor,
    /// Measure the library on this machine's GPU, or else its CPU, beside the roof.
    Bench(command::Settings),
    /// Say what each configuration of the kernels takes: registers, shared memory, occupancy.
    Attrs(attrs::Settings),
    /// Try the configurations of a kernel, and say which is the fastest at which length.
    Tune(tune::Settings),
}

/// Does what the command line asks for.
///
/// # Errors
///
/// If it asks for what there is not, or something cannot be read or written.
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
        // Beside a GPU's own speeds, those that others reached; without a GPU, what one took of an
        // H200.
        Some(Command::Bench(settings)) => command::run(&settings, &record::peers()?).map(code),
        Some(Command::Attrs(settings)) => {
            attrs::run(&settings, &record::attrs()?).map(|()| ExitCode::SUCCESS)
        }
        Some(Command::Tune(settings)) => tune::run(&settings).map(code),
    }
}

/// The exit code of what is right, or is not.
fn code(right: bool) -> ExitCode {
    if right { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn list() {
    for chapter in catalogue::CHAPTERS {
        println!("{:>2}  {:<28}  chapters/{}", chapter.number, chapter.title, chapter.slug);
    }
}
