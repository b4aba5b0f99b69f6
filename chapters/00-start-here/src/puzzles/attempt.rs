//! Tries a reader's kernel: compiles it and runs it on the emulator, then on a GPU if there is one.

use std::path::Path;

use lesson::output::println;
use linrec::device::Device;
use linrec::device::nvrtc::{self, Nvrtc, SHIPPED_ARCHITECTURE};
use linrec::kernels::Ptx;
use puzzle::{Kind, Part, Puzzle, explain, judge};

use super::wrap::wrapped;

/// The outcome of an attempt.
pub enum Outcome {
    /// The kernel reaches the goal.
    Reached,
    /// The kernel does not reach the goal, and the reason has been printed.
    NotYet,
}

/// Tries the reader's kernel and prints the outcome.
///
/// # Errors
///
/// Returns an error if the kernel must be compiled and there is no compiler. The error contains the
/// command that installs one.
pub fn attempt(puzzle: &Puzzle, file: &Path, source: &str) -> lesson::Result<Outcome> {
    let known = puzzle.same(source);
    let ptx = match known.and_then(|candidate| puzzle.ptx(&candidate.name)) {
        Some(ptx) => ptx,
        None => match compile(puzzle, file, source)? {
            Ok(ptx) => ptx,
            Err(message) => {
                println!("It does not compile:\n{message}");
                // The compiler refers to the kernel by its name in a generated file.
                if message.contains("__nv_name_map") {
                    println!("The kernel must keep the name `{}`.", puzzle.entry());
                }
                if let Some((begin, end)) = Puzzle::marks(source) {
                    println!(
                        "Your part is between lines {begin} and {end}. A mistake in it may be reported further down: a missing brace or semicolon, or a name."
                    );
                }
                report_changes(puzzle, source);
                return Ok(Outcome::NotYet);
            }
        },
    };
    let verdict = judge(puzzle, &ptx, &Device::simt());
    if matches!(known.map(|candidate| &candidate.kind), Some(Kind::Skeleton)) {
        println!("Nothing is changed yet. The unchanged kernel gives:");
    }
    // The line numbers in the shipped PTX of an answer refer to the puzzle's own file.
    let own = format!("puzzles/{}/puzzle.cu", puzzle.folder);
    println!("{}", verdict.to_string().replace(&own, &name_of(file)));
    for part in explain(puzzle, source, &ptx, &verdict) {
        match part {
            Part::Words(text) => println!("{}", wrapped(&text)),
            Part::Code(lines) => println!("{}", lines.trim_end()),
        }
    }
    report_changes(puzzle, source);
    if !verdict.reached() {
        return Ok(Outcome::NotYet);
    }
    // The GPU comes last, because it notices few mistakes, and after a mistake this process can no
    // longer use it.
    let device = Device::auto()?;
    if !device.is_simt() {
        let verdict = judge(puzzle, &ptx, &device);
        println!("On {}: {verdict}", device.name());
        if !verdict.reached() {
            return Ok(Outcome::NotYet);
        }
    }
    Ok(Outcome::Reached)
}

/// Reports changes to the kernel outside of the reader's part.
fn report_changes(puzzle: &Puzzle, source: &str) {
    if Puzzle::hole(source).is_none() {
        println!(
            "(The two lines that mark your part are no longer in the file. It is tried all the same.)"
        );
    } else if puzzle.is_changed_outside(source) {
        println!(
            "(The kernel has changed outside of your part. It is tried all the same; `--reset` begins anew.)"
        );
    }
}

/// Compiles a source to PTX, or returns the compiler's message.
fn compile(puzzle: &Puzzle, file: &Path, source: &str) -> lesson::Result<Result<Ptx, String>> {
    if let Err(missing) = Nvrtc::find() {
        let advice = if cfg!(target_os = "macos") {
            "There is none for macOS, where only a puzzle's known answers run."
        } else {
            "This command installs it into target/nvrtc, and nothing else: cargo xtask ptx --prepare"
        };
        let file = file.display();
        return Err(format!(
            "{file} has to be compiled, and there is no CUDA compiler here. {advice}\n({missing})"
        )
        .into());
    }
    let program = puzzle.program(&name_of(file), source.to_owned());
    Ok(nvrtc::compile(&program, SHIPPED_ARCHITECTURE)
        .map(|compiled| compiled.ptx)
        .map_err(|error| error.to_string()))
}

/// Returns a file's name as it appears in messages of the compiler and the emulator.
fn name_of(file: &Path) -> String {
    file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
