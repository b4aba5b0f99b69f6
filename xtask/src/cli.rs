//! `cargo xtask`: the command line of the project's tools.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand};
use lesson::output::{self, eprintln, println};

use crate::{
    book, bundle, chapters, dependencies, lab, live, ptx, record, rules, wheel, workspace,
};

/// The project's own tools.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build the book from chapters/ into target/book
    Book {
        /// Open the book in the browser
        #[arg(long)]
        open: bool,
        /// Serve the book to this machine alone, and rebuild when a page has changed
        #[arg(long, conflicts_with = "check")]
        serve: bool,
        /// The port to serve on (0: any free one)
        #[arg(long, default_value_t = 8000, requires = "serve")]
        port: u16,
        /// Check the built book as well: links, anchors, images, code, exercises, nothing remote
        #[arg(long)]
        check: bool,
    },
    /// Write the chapters of chapters/SUMMARY.md into whatever else names all of them
    Chapters {
        /// Change nothing: compare
        #[arg(long)]
        check: bool,
        /// Only name the packages whose library needs no device, as arguments of cargo
        #[arg(long, conflicts_with = "check")]
        without_device: bool,
    },
    /// Check the rules that keep the project light: budgets, comments, idioms, circles and more
    Rules {
        /// The commit before the change, instead of where this branch left origin/main
        #[arg(long, value_name = "REV")]
        since: Option<String>,
        /// Only write the present numbers, rounded up, into the budget of each Cargo.toml
        #[arg(long, conflicts_with = "since")]
        set: bool,
    },
    /// Check the licences and sources of all crates by deny.toml
    Deny,
    /// Open the notebooks in JupyterLab; what that needs is installed into target/lab first
    Lab {
        /// Install and compile what is missing, and stop there
        #[arg(long, conflicts_with_all = ["no_open", "port"])]
        prepare: bool,
        /// Start JupyterLab, but no browser
        #[arg(long)]
        no_open: bool,
        /// The port, or the next one that is free
        #[arg(long, default_value_t = 8888)]
        port: u16,
    },
    /// Run notebooks from a clean state and keep their outputs
    Notebooks {
        /// The notebooks' numbers, or names where they have none; all of them if there is none
        #[arg(value_name = "NN")]
        notebooks: Vec<String>,
        /// Change nothing: compare the outputs with the committed ones
        #[arg(long)]
        check: bool,
    },
    /// Run chapters and keep what they wrote in their results/, which the pages quote
    Record {
        /// The chapters' numbers, or the folder's name where it has none; with --check all of them
        /// if there is none
        #[arg(required_unless_present = "check", value_name = "NN")]
        chapters: Vec<String>,
        /// Change nothing: compare a run with the recorded results, timings left out
        #[arg(long)]
        check: bool,
    },
    /// Keep the CSV files in a folder of results/: together in its tables.json, and long ones
    /// compressed
    Pack {
        /// The folders, such as chapters/09-loads-and-stores/results/h200
        #[arg(required = true, value_name = "FOLDER")]
        folders: Vec<PathBuf>,
    },
    /// Compile the kernels, the planted mistakes and the puzzles' answers to PTX, or print a module
    Ptx {
        /// Change nothing: fail if a compiled file differs from the committed one
        #[arg(long)]
        check: bool,
        /// Install the CUDA compiler into target/nvrtc, and stop there
        #[arg(long, conflicts_with = "check")]
        prepare: bool,
        /// Print a module (`ref-f32`, `01-guard/solution`), or the source of a kernel
        /// (`broken/lost_carry.cu`)
        #[arg(long, value_name = "NAME", conflicts_with_all = ["check", "prepare"])]
        show: Option<String>,
    },
    /// Compile what runs inside the book's pages to wasm32, into crates/live/module
    Live {
        /// Compile nothing: fail if the sources have changed since it was compiled
        #[arg(long)]
        check: bool,
    },
    /// Put all that a machine with an NVIDIA GPU needs to run the GPU tests into one folder
    Bundle {
        /// The folder, instead of target/bundle
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// Build the Python package as a wheel, into target/wheels
    Wheel {
        /// Install the wheel beside PyTorch, and run its tests
        #[arg(long)]
        check: bool,
        /// Install what the tests need, and stop there
        #[arg(long, conflicts_with = "check")]
        prepare: bool,
    },
}

/// Runs the command that the arguments of this program name.
pub fn main() -> ExitCode {
    let Cli { command } = output::parse();
    let code = match run(command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    };
    output::end(code)
}

fn run(command: Command) -> Result<()> {
    let root = &workspace::root()?;
    match command {
        Command::Book { serve: true, port, open, .. } => book::serve::serve(root, port, open),
        Command::Book { open, check, .. } => {
            let book = if check { book::check(root)? } else { book::build(root)? };
            let index = book.output.join("index.html");
            let done = if check { "built and checked" } else { "built" };
            println!("{done} {} pages: {}", book.pages.len(), index.display());
            if open {
                opener::open(&index).context("no browser could be opened")?;
            }
            Ok(())
        }
        Command::Chapters { without_device: true, .. } => {
            for package in chapters::without_device(root)? {
                println!("--package={package}");
            }
            Ok(())
        }
        Command::Chapters { check: true, .. } => say(chapters::check(root)),
        Command::Chapters { .. } => say(chapters::write(root)),
        Command::Rules { set: true, .. } => say(rules::set(root)),
        Command::Rules { since, .. } => say(rules::check(root, since.as_deref())),
        Command::Deny => say(dependencies::check(root)),
        Command::Lab { prepare, no_open, port } => {
            let lab = lab::prepare(root)?;
            if prepare {
                println!("the lab is ready: `cargo lab` opens it");
                return Ok(());
            }
            lab::serve(&lab, port, !no_open)
        }
        Command::Notebooks { notebooks, check } => {
            lab::run(&lab::prepare(root)?, &notebooks, check)
        }
        Command::Record { chapters, check } => run_record(root, chapters, check),
        Command::Pack { folders } => {
            folders.iter().try_for_each(|folder| say(record::pack::pack(folder)))
        }
        Command::Ptx { prepare: true, .. } => {
            println!("the CUDA compiler is in {}", ptx::install(root)?.display());
            Ok(())
        }
        Command::Ptx { show: Some(name), .. } => say(ptx::show(&name)),
        Command::Ptx { check: true, .. } => say(ptx::check(root)),
        Command::Ptx { .. } => say(ptx::generate(root)),
        Command::Live { check: true } => say(live::check(root)),
        Command::Live { .. } => say(live::generate(root)),
        Command::Bundle { out } => {
            say(bundle::bundle(root, &out.unwrap_or_else(|| root.join("target/bundle"))))
        }
        Command::Wheel { prepare: true, .. } => wheel::prepare(root).map(drop),
        Command::Wheel { check: true, .. } => say(wheel::check(root)),
        Command::Wheel { .. } => {
            say(wheel::build(root).map(|wheel| format!("built {}", wheel.display())))
        }
    }
}

fn say(sentence: Result<String>) -> Result<()> {
    println!("{}", sentence?);
    Ok(())
}

fn run_record(root: &Path, mut chapters: Vec<String>, check: bool) -> Result<()> {
    if chapters.is_empty() {
        chapters = chapters::recorded(root)?;
    }
    let mut failed = Vec::new();
    for name in &chapters {
        let result = if check { record::check(root, name) } else { record::record(root, name) };
        // The other chapters run all the same: one message at the end names all that failed.
        if let Err(error) = result {
            eprintln!("chapter {name}: {error:#}");
            failed.push(name.as_str());
        }
    }
    ensure!(failed.is_empty(), "failed: chapter {}", failed.join(", "));
    Ok(())
}
