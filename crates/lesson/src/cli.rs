//! The command line of every chapter's binary.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use super::story::Place;
use super::{Chapter, output, run};

/// The settings of a chapter's run.
#[derive(Debug, Clone, clap::Args)]
pub struct Settings {
    /// Use the blog post's sizes instead of sizes that suit a laptop.
    #[arg(long)]
    pub full: bool,

    /// Wait for Enter between the steps.
    #[arg(long)]
    pub step: bool,

    /// Write figures, tables and records to this folder; every chapter creates a subfolder in it.
    #[arg(long, value_name = "FOLDER", default_value = "target/tour")]
    pub out: PathBuf,
}

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    settings: Settings,
}

/// Runs a chapter as the `main` function of its binary. The exit code is 0 if every check passed, 1
/// if a check failed, and 2 if the chapter could not finish.
pub fn main(chapter: &'static Chapter) -> ExitCode {
    let command = <Cli as clap::CommandFactory>::command().about(format!(
        "{}: {}",
        Place::of(chapter.number, chapter.slug).name(),
        chapter.title
    ));
    let cli = match command
        .try_get_matches()
        .and_then(|m| <Cli as clap::FromArgMatches>::from_arg_matches(&m))
    {
        Ok(cli) => cli,
        Err(error) => output::refuse(&error),
    };
    let code = |passed| if passed { ExitCode::SUCCESS } else { ExitCode::from(1) };
    output::finish(run(chapter, &cli.settings).map(|record| code(record.passed())))
}
