//! One attempt: compiled, tried on the emulator, and on a GPU where there is one.

use std::path::Path;

use lesson::output::println;
use linrec::device::Device;
use linrec::device::nvrtc::{self, Nvrtc, SHIPPED_ARCHITECTURE};
use linrec::kernels::Ptx;
use puzzle::{Kind, Part, Puzzle, explain, judge};

use super::wrap::wrapped;

/// What came of an attempt.
pub enum Outcome {
    /// The goal is reached.
    Reached,
    /// It is not, and why has been said.
    NotYet,
}

/// Tries what the reader has written, and says what comes of it.
///
/// # Errors
///
/// If it has to be compiled and there is no compiler, with the command that installs one.
pub fn attempt(puzzle: &Puzzle, file: &Path, source: &str) -> lesson::Result<Outcome> {
    let known = puzzle.same(source);
    let ptx = match known.and_then(|candidate| puzzle.ptx(&candidate.name)) {
        Some(ptx) => ptx,
        None => match compile(puzzle, file, source)? {
            Ok(ptx) => ptx,
            Err(said) => {
                println!("It does not compile:\n{said}");
                // The compiler looks for the kernel by its name, in a file of its own.
                if said.contains("__nv_name_map") {
                    println!("The kernel must keep the name `{}`.", puzzle.entry());
                }
                if let Some((begin, end)) = Puzzle::marks(source) {
                    println!(
                        "Your part stands between the lines {begin} and {end}. What is wrong behind it may come from it: a brace or a semicolon, a name."
                    );
                }
                tell_of_changes(puzzle, source);
                return Ok(Outcome::NotYet);
            }
        },
    };
    let verdict = judge(puzzle, &ptx, &Device::simt());
    if matches!(known.map(|candidate| &candidate.kind), Some(Kind::Skeleton)) {
        println!("Nothing is changed yet. This is what is said of the kernel as it stands:");
    }
    // The shipped PTX of an answer has the puzzle's own file in its line numbers.
    let own = format!("puzzles/{}/puzzle.cu", puzzle.folder);
    println!("{}", verdict.to_string().replace(&own, &name_of(file)));
    for part in explain(puzzle, source, &ptx, &verdict) {
        match part {
            Part::Words(text) => println!("{}", wrapped(&text)),
            Part::Code(lines) => println!("{}", lines.trim_end()),
        }
    }
    tell_of_changes(puzzle, source);
    if !verdict.reached() {
        return Ok(Outcome::NotYet);
    }
    // Only now: a GPU notices few mistakes, and is lost to the process by one.
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

/// Says what is no longer as the puzzle has it, outside of the reader's part.
fn tell_of_changes(puzzle: &Puzzle, source: &str) {
    if Puzzle::hole(source).is_none() {
        println!(
            "(The two lines that mark your part are no longer in the file. It is tried all the same.)"
        );
    } else if puzzle.is_changed_outside(source) {
        println!(
            "(Outside of your part the kernel is not as it was, either. It is tried all the same; `--reset` begins anew.)"
        );
    }
}

/// The PTX of a source, or what the compiler says.
fn compile(puzzle: &Puzzle, file: &Path, source: &str) -> lesson::Result<Result<Ptx, String>> {
    if let Err(missing) = Nvrtc::find() {
        let advice = if cfg!(target_os = "macos") {
            "There is none for macOS; of a puzzle's answers, those that it knows run without."
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

/// A file's name, as the compiler's and the emulator's messages have it.
fn name_of(file: &Path) -> String {
    file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
