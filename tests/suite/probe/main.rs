//! Launches a shipped kernel once with fixed data, on a GPU or the emulator, for profilers and
//! other tools that watch it:
//!
//! ```text
//! cargo run --release -p linrec-suite --example probe -- list
//! cargo run --release -p linrec-suite --example probe -- run broken/lost_carry --device simt
//! ncu --set full probe run ref-f32/linrec_ref_fwd_float_false --device cuda
//! ```
//!
//! It prints one line for each kernel: its name, the outcome (`right`, `wrong`, `report` or
//! `error`), and a sentence, separated by tabs. The exit code is 0 if all results are right, 1 if
//! some are wrong, and 3 if the emulator reports a mistake or the device fails.

#[path = "../selective_scan/given.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod given;
#[path = "../scan_gradients/oracle.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod oracle;
mod probes;
#[path = "../scan_gradients/problem.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod problem;
#[path = "../selective_scan/reference.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod reference;

use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;
use std::process::{self, ExitCode};

use clap::{Parser, Subcommand};
use linrec::Error;
use linrec::device::Device;
use linrec::simt::Counters;
use probes::Probe;
use serde_json::{Value, json};

/// Launches shipped kernels once each with fixed data, for tools that watch them.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Lists the kernels: the name, then `correct` or `broken`, then `large`, `uncounted` or
    /// nothing
    List,
    /// Launches kernels
    Run {
        /// Names from the list, or of a PTX for all its kernels
        #[arg(required = true)]
        names: Vec<String>,
        /// simt, cuda, cuda:1
        #[arg(long, default_value = "simt")]
        device: String,
        /// Writes the emulator's counters to this file, as JSON
        #[arg(long, value_name = "FILE")]
        counters: Option<PathBuf>,
    },
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::List => {
            list();
            ExitCode::SUCCESS
        }
        Command::Run { names, device, counters } => {
            run(&names, &device, counters).unwrap_or_else(|error| {
                eprintln!("error: {error}");
                ExitCode::from(2)
            })
        }
    }
}

fn list() {
    for probe in probes::all() {
        let kind = if probe.is_correct() { "correct" } else { "broken" };
        let note = match (probe.is_large(), probe.is_countable()) {
            (true, _) => "large",
            (false, false) => "uncounted",
            (false, true) => "",
        };
        print_line(format_args!("{}\t{kind}\t{note}", probe.name()));
    }
}

fn run(names: &[String], device: &str, file: Option<PathBuf>) -> Result<ExitCode, String> {
    let mut chosen = Vec::new();
    for name in names {
        let named = probes::named(name);
        if named.is_empty() {
            return Err(format!("there is no kernel `{name}`; `probe list` shows what there is"));
        }
        chosen.extend(named);
    }
    let device = open(device)?;
    let mut counted = Vec::new();
    let mut worst = 0;
    for probe in &chosen {
        let (outcome, sentence, code) = match probe.run(&device) {
            Ok(ran) => {
                counted.extend(ran.counters.iter().map(|counters| record(probe, counters)));
                match ran.verdict {
                    Ok(()) => ("right", "all results are within the bound".to_owned(), 0),
                    Err(wrong) => ("wrong", wrong, 1),
                }
            }
            Err(Error::Kernel(report)) => ("report", report.to_string(), 3),
            Err(error) => ("error", error.to_string(), 3),
        };
        print_line(format_args!("{}\t{outcome}\t{sentence}", probe.name()));
        worst = worst.max(code);
    }
    if let Some(file) = file {
        std::fs::write(&file, Value::Array(counted).to_string())
            .map_err(|error| format!("{} cannot be written: {error}", file.display()))?;
    }
    Ok(ExitCode::from(worst))
}

fn open(name: &str) -> Result<Device, String> {
    let ordinal = match name {
        "simt" => return Ok(Device::simt()),
        "cuda" => Some(0),
        _ => name.strip_prefix("cuda:").and_then(|number| number.parse().ok()),
    };
    let ordinal = ordinal
        .ok_or_else(|| format!("`{name}` is no device; choose from simt, cuda, cuda:1, ..."))?;
    Device::cuda(ordinal).map_err(|error| error.to_string())
}

/// Returns the emulator's counters in a form for scripts.
fn record(probe: &Probe, counters: &Counters) -> Value {
    let sites = counters.sites.iter().map(|site| {
        let source = site.source.as_ref().map(|(file, line)| format!("{file}:{line}"));
        json!({
            "line": site.line,
            "source": source,
            "opcode": &*site.opcode,
            "access": format!("{:?}", site.access),
            "requests": site.requests,
            "sectors": site.sectors,
        })
    });
    json!({
        "kernel": probe.name(),
        "symbol": probe.symbol,
        "instructions": counters.instructions,
        "sites": sites.collect::<Vec<_>>(),
    })
}

/// Prints a line. If the pipe is closed, the reader has enough, but the file is still wanted.
fn print_line(line: fmt::Arguments) {
    if let Err(error) = writeln!(io::stdout(), "{line}")
        && error.kind() != ErrorKind::BrokenPipe
    {
        let _ = writeln!(io::stderr(), "error: the standard output cannot be written: {error}");
        process::exit(2);
    }
}
