//! The command `simt`.

mod emulate;
mod fill;
mod list;
mod module;
mod name;
mod number;
mod object;
mod options;
mod output;
mod plan;
mod run;
mod say;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

use options::{Command, Options};

fn main() -> ExitCode {
    let outcome = match Options::parse().command {
        Command::Run(options) => run::run(&options),
        Command::List(options) => list::list(&options),
        Command::Compile(options) => list::compile(&options),
    };
    let outcome = outcome.and_then(|outcome| match say::failure() {
        Some(error) => Err(format!("the standard output cannot be written: {error}")),
        None => Ok(outcome),
    });
    match outcome {
        Ok(code) => code,
        Err(message) => {
            let _ = writeln!(io::stderr(), "simt: {message}");
            ExitCode::from(2)
        }
    }
}
