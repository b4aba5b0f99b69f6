//! `tour doctor`: reports what this machine offers and whether the library works on it.

mod devices;

use std::path::Path;
use std::process::{Command, ExitCode};

use lesson::output::println;
use lesson::{Table, clock, machine};
use linrec::contract::{self, Domain, golden};
use linrec::cpu::Cpu;

const GOLDEN_LIMIT: f64 = 1e-12;

/// Prints a table of this machine and tries the library. The exit code is 1 if the library's
/// results are wrong here. Missing parts are explained but are no failure.
///
/// # Errors
///
/// Returns an error if the golden data inside the program cannot be read.
pub fn run() -> lesson::Result<ExitCode> {
    let mut table = Table::new(["what", "found"]);
    table.row(["machine", &machine::describe()]);
    table.row(["vector instructions", &Cpu::new().simd().to_string()]);
    table.row(["threads of the engine", &rayon::current_num_threads().to_string()]);
    table.row(["Rust compiler", &compiler()]);
    table.row(["output folder target/tour", &writable(Path::new("target/tour"))]);
    let missing = devices::look(&mut table);
    println!("{}", table.to_text());
    for sentence in &missing {
        println!("{sentence}");
    }
    if !missing.is_empty() {
        println!("Without these the tutorial's kernels run on the emulator.\n");
    }

    println!("Trying the library (some seconds) ...");
    let (elapsed, report) = clock::time(|| {
        // Without the longest sequences, these cases take a second instead of ten.
        let domain = Domain { max_len: 5000, levels: Domain::tree_levels, ..Domain::default() };
        contract::run::<f32>(&Cpu::new(), &domain)
    });
    println!("  {report}, {}", clock::text(elapsed));

    let mut distance = 0.0_f64;
    for case in golden::real()? {
        distance = distance.max(golden::distance::<f64>(&Cpu::new(), &case)?);
    }
    println!("  golden data: off by {distance:.1e}, limit {GOLDEN_LIMIT:.0e}");
    let kernels_passed = devices::try_kernels();

    if report.passed() && distance <= GOLDEN_LIMIT && kernels_passed {
        println!("\nEverything that this machine needs is there.");
        Ok(ExitCode::SUCCESS)
    } else {
        println!(
            "\nThe library gives WRONG RESULTS on this machine. Please report the lines above."
        );
        Ok(ExitCode::FAILURE)
    }
}

/// Returns the version of the Rust compiler on the path, although this program no longer needs it.
fn compiler() -> String {
    let output = Command::new("rustc").arg("--version").output().ok();
    let version = output.and_then(|output| String::from_utf8(output.stdout).ok());
    version.map_or_else(|| String::from("none on the path"), |version| version.trim().to_owned())
}

/// Writes a file to a folder to see whether that works, and describes the outcome.
fn writable(folder: &Path) -> String {
    let probe = folder.join(".doctor");
    let tried = std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&probe, ""))
        .and_then(|()| std::fs::remove_file(&probe));
    match tried {
        Ok(()) => String::from("can be written"),
        Err(error) => format!("cannot be written: {error}; use --out FOLDER"),
    }
}
