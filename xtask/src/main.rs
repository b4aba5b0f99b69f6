//! `cargo xtask`: the project's own tools. See the crate's documentation.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Args, Parser, Subcommand};
use lesson::output::{self, eprintln, println};
use xtask::lab::{self, Lab};
use xtask::{book, bundle, chapters, live, notebooks, ptx, record, rules, wheel, workspace};

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
    Book(BookArgs),
    /// Write the chapters of chapters/SUMMARY.md into whatever else names all of them
    Chapters(ChaptersArgs),
    /// Check the rules that keep the project light: budgets, wide comments, what is made, circles
    Rules(RulesArgs),
    /// Open the notebooks in JupyterLab; what that needs is installed into target/lab first
    Lab(LabArgs),
    /// Run notebooks from a clean state and keep their outputs
    Notebooks(NotebooksArgs),
    /// Run chapters and keep what they wrote in their results/, which the pages quote
    Record(RecordArgs),
    /// Keep the CSV files in a folder of results/: together in its tables.json, and long ones
    /// compressed
    Pack(PackArgs),
    /// Compile the kernels, the planted mistakes and the puzzles' answers to PTX, or print a module
    Ptx(PtxArgs),
    /// Compile what runs inside the book's pages to wasm32, into crates/live/module
    Live(LiveArgs),
    /// Put all that a machine with an NVIDIA GPU needs to run the GPU tests into one folder
    Bundle(BundleArgs),
    /// Build the Python package as a wheel, into target/wheels
    Wheel(WheelArgs),
}

#[derive(Args)]
struct BookArgs {
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
}

#[derive(Args)]
struct ChaptersArgs {
    /// Change nothing: compare
    #[arg(long)]
    check: bool,
    /// Only name the packages whose library needs no device, as arguments of cargo
    #[arg(long, conflicts_with = "check")]
    without_device: bool,
}

#[derive(Args)]
struct RulesArgs {
    /// The commit before the change, instead of where this branch left origin/main
    #[arg(long, value_name = "REV")]
    since: Option<String>,
    /// Only write budgets of what there is now, rounded up, into each Cargo.toml
    #[arg(long, conflicts_with = "since")]
    set: bool,
}

#[derive(Args)]
struct LabArgs {
    /// Install and compile what is missing, and stop there
    #[arg(long, conflicts_with_all = ["no_open", "port"])]
    prepare: bool,
    /// Start JupyterLab, but no browser
    #[arg(long)]
    no_open: bool,
    /// The port, or the next one that is free
    #[arg(long, default_value_t = 8888)]
    port: u16,
}

#[derive(Args)]
struct NotebooksArgs {
    /// The notebooks' numbers, or names where they have none; all of them if there is none
    #[arg(value_name = "NN")]
    notebooks: Vec<String>,
    /// Change nothing: compare the outputs with the committed ones
    #[arg(long)]
    check: bool,
}

#[derive(Args)]
struct RecordArgs {
    /// The chapters' numbers, or the folder's name where it has none; with --check all of them if
    /// there is none
    #[arg(required_unless_present = "check", value_name = "NN")]
    chapters: Vec<String>,
    /// Change nothing: compare a run with the recorded results, timings left out
    #[arg(long)]
    check: bool,
}

#[derive(Args)]
struct PackArgs {
    /// The folders, such as chapters/09-loads-and-stores/results/h200
    #[arg(required = true, value_name = "FOLDER")]
    folders: Vec<PathBuf>,
}

#[derive(Args)]
struct PtxArgs {
    /// Change nothing: fail if what is there differs from what would be compiled
    #[arg(long)]
    check: bool,
    /// Install the CUDA compiler into target/nvrtc, and stop there
    #[arg(long, conflicts_with = "check")]
    prepare: bool,
    /// Print a module (`ref-f32`, `01-guard/solution`), or the source of a kernel
    /// (`broken/lost_carry.cu`)
    #[arg(long, value_name = "NAME", conflicts_with_all = ["check", "prepare"])]
    show: Option<String>,
}

#[derive(Args)]
struct LiveArgs {
    /// Compile nothing: fail if the sources have changed since it was compiled
    #[arg(long)]
    check: bool,
}

#[derive(Args)]
struct BundleArgs {
    /// The folder, instead of target/bundle
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

#[derive(Args)]
struct WheelArgs {
    /// Install the wheel beside PyTorch, and run its tests
    #[arg(long)]
    check: bool,
    /// Install what the tests need, and stop there
    #[arg(long, conflicts_with = "check")]
    prepare: bool,
}

fn main() -> ExitCode {
    let code = match run(&output::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    };
    output::end(code)
}

fn run(cli: &Cli) -> Result<()> {
    let root = workspace::root()?;
    match &cli.command {
        Command::Book(args) => run_book(&root, args),
        Command::Chapters(ChaptersArgs { without_device: true, .. }) => {
            for package in chapters::without_device(&root)? {
                println!("--package={package}");
            }
            Ok(())
        }
        Command::Chapters(args) => {
            let write = if args.check { chapters::check } else { chapters::write };
            println!("{}", write(&root)?);
            Ok(())
        }
        Command::Rules(RulesArgs { since, set }) => {
            let since = since.as_deref();
            println!("{}", if *set { rules::set(&root)? } else { rules::check(&root, since)? });
            Ok(())
        }
        Command::Lab(args) => run_lab(&root, args),
        Command::Notebooks(args) => {
            notebooks::run(&Lab::prepare(&root)?, &args.notebooks, args.check)
        }
        Command::Record(args) => run_record(&root, args),
        Command::Pack(args) => args.folders.iter().try_for_each(|folder| {
            println!("{}", record::pack::pack(folder)?);
            Ok(())
        }),
        Command::Ptx(args) => run_ptx(&root, args),
        Command::Live(args) => {
            println!("{}", if args.check { live::check(&root)? } else { live::generate(&root)? });
            Ok(())
        }
        Command::Bundle(args) => {
            let out = args.out.clone().unwrap_or_else(|| root.join("target/bundle"));
            println!("{}", bundle::bundle(&root, &out)?);
            Ok(())
        }
        Command::Wheel(args) => run_wheel(&root, args),
    }
}

fn run_book(root: &Path, args: &BookArgs) -> Result<()> {
    if args.serve {
        return book::serve::serve(root, args.port, args.open);
    }
    let book = if args.check { book::check(root)? } else { book::build(root)? };
    let index = book.output.join("index.html");
    let done = if args.check { "built and checked" } else { "built" };
    println!("{done} {} pages: {}", book.pages.count(), index.display());
    if args.open {
        opener::open(&index).context("no browser could be opened")?;
    }
    Ok(())
}

fn run_lab(root: &Path, args: &LabArgs) -> Result<()> {
    let lab = Lab::prepare(root)?;
    if args.prepare {
        println!("the lab is ready: `cargo lab` opens it");
        return Ok(());
    }
    lab::serve(&lab, args.port, !args.no_open)
}

fn run_ptx(root: &Path, args: &PtxArgs) -> Result<()> {
    if args.prepare {
        println!("the CUDA compiler is in {}", ptx::install(root)?.display());
    } else if let Some(name) = &args.show {
        println!("{}", ptx::show(name)?);
    } else {
        println!("{}", if args.check { ptx::check(root)? } else { ptx::generate(root)? });
    }
    Ok(())
}

fn run_wheel(root: &Path, args: &WheelArgs) -> Result<()> {
    if args.prepare {
        return wheel::prepare(root).map(drop);
    }
    if args.check {
        println!("{}", wheel::check(root)?);
    } else {
        println!("built {}", wheel::build(root)?.display());
    }
    Ok(())
}

fn run_record(root: &Path, args: &RecordArgs) -> Result<()> {
    let mut failed = Vec::new();
    let all = if args.chapters.is_empty() { chapters::recorded(root)? } else { Vec::new() };
    for name in args.chapters.iter().chain(&all) {
        let result =
            if args.check { record::check(root, name) } else { record::record(root, name) };
        // Go on with the other chapters: one message at the end names all that failed.
        if let Err(error) = result {
            eprintln!("chapter {name}: {error:#}");
            failed.push(name.as_str());
        }
    }
    if !failed.is_empty() {
        bail!("failed: chapter {}", failed.join(", "));
    }
    Ok(())
}
