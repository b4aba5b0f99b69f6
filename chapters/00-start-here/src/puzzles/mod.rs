//! Puzzles in the terminal: where one is, the next kernel with a hole, and what is said of it
//! whenever it is saved.

mod attempt;
mod folder;
mod progress;
mod watch;
mod wrap;

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use lesson::output::println;
use puzzle::Puzzle;

use crate::catalogue::CHAPTERS;
use attempt::Outcome;
use folder::Folder;
use progress::Progress;
use watch::{Change, Watch};
use wrap::wrapped;

/// What the command line says of puzzles.
#[derive(Args)]
pub struct Settings {
    /// The puzzle, by number or name; the first open one if none is named
    #[arg(value_name = "PUZZLE")]
    which: Option<String>,
    /// List the puzzles, and which of them are solved
    #[arg(long, group = "what")]
    list: bool,
    /// Try the kernel once, instead of whenever its file is saved; the exit code says whether the
    /// goal is reached
    #[arg(long, group = "what")]
    once: bool,
    /// Show the next hint, below those shown before
    #[arg(long, group = "what")]
    hint: bool,
    /// Show the solution, and why it is one
    #[arg(long, group = "what")]
    solution: bool,
    /// Begin the puzzle anew; what you have written is kept under another name
    #[arg(long, group = "what")]
    reset: bool,
    /// Where your kernels are, and the file that keeps what is solved
    #[arg(long, value_name = "FOLDER", default_value = "my-puzzles")]
    folder: PathBuf,
}

/// Does what the command line asks for.
///
/// # Errors
///
/// If there is no such puzzle, a file cannot be read or written, the record of what is solved is
/// damaged, or a kernel has to be compiled and there is no compiler.
pub fn run(settings: &Settings) -> lesson::Result<ExitCode> {
    let folder = Folder::new(&settings.folder);
    let progress = folder.progress()?;
    let named = settings.which.as_deref().map(find).transpose()?;
    if settings.list {
        list(&progress, named);
        return Ok(ExitCode::SUCCESS);
    }
    let Some(puzzle) = named.or_else(|| progress.next()) else {
        list(&progress, None);
        println!("\nAll are solved. Name one to see it again.");
        return Ok(ExitCode::SUCCESS);
    };
    if settings.hint {
        hint(&folder, puzzle)?;
    } else if settings.solution {
        solution(puzzle);
    } else if settings.reset {
        reset(&folder, puzzle)?;
    } else {
        if settings.once {
            return once(&folder, puzzle);
        }
        list(&progress, Some(puzzle));
        return play(&folder, puzzle);
    }
    Ok(ExitCode::SUCCESS)
}

fn find(name: &str) -> lesson::Result<&'static Puzzle> {
    let found = puzzle::find(name);
    found.ok_or_else(|| {
        format!("there is no puzzle {name}: `puzzle --list` names those there are").into()
    })
}

fn list(progress: &Progress, now: Option<&Puzzle>) {
    let all = puzzle::all();
    let solved = all.iter().filter(|puzzle| progress.is_solved(puzzle)).count();
    println!("Puzzles: {solved} of {} solved\n", all.len());
    for puzzle in all {
        let is_now = now.is_some_and(|now| now.number == puzzle.number);
        let mark = if is_now { ">" } else { " " };
        let state = if progress.is_solved(puzzle) { "solved" } else { "open" };
        let chapter = puzzle.chapter.split('-').next().unwrap_or_default().trim_start_matches('0');
        println!(
            "{mark} {:>2}  {state:<6}  {:<24} chapter {chapter:>2}: {}",
            puzzle.number, puzzle.title, puzzle.teaches
        );
    }
}

/// Tries a kernel once; the exit code is 0 if it reaches the goal, and else 1.
fn once(folder: &Folder, puzzle: &'static Puzzle) -> lesson::Result<ExitCode> {
    let is_new = folder.begin(puzzle)?;
    let source = folder.source(puzzle)?;
    // Who has begun knows the task.
    if is_new || source == puzzle.skeleton() {
        present(folder, puzzle, is_new);
    } else {
        println!("\nPuzzle {}: {}", puzzle.number, puzzle.title);
        println!("Goal:    {}", puzzle.goal);
        println!("File:    {} (as you left it)\n", folder.file(puzzle).display());
    }
    let reached = attempt(folder, puzzle, &source)?;
    Ok(if reached { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Tries a kernel whenever its file is saved, and goes on to the next open one when the goal is
/// reached. Without a terminal nobody is there to save anything: then once.
fn play(folder: &Folder, first: &'static Puzzle) -> lesson::Result<ExitCode> {
    if !io::stdout().is_terminal() {
        let code = once(folder, first)?;
        println!("\n(The output is no terminal: the file is not watched.)");
        return Ok(code);
    }
    let watch = Watch::begin();
    let mut puzzle = first;
    loop {
        let is_new = folder.begin(puzzle)?;
        present(folder, puzzle, is_new);
        let mut source = folder.source(puzzle)?;
        while !attempt(folder, puzzle, &source)? {
            println!(
                "\nWatching {}: save it to try again. h and Enter: a hint; q and Enter: stop.",
                folder.file(puzzle).display()
            );
            source = loop {
                match watch.wait(&folder.file(puzzle), &source)? {
                    Change::Saved(new) => break new,
                    Change::Hint => hint(folder, puzzle)?,
                    Change::Stop => return Ok(ExitCode::SUCCESS),
                }
            };
            println!("");
        }
        let Some(next) = folder.progress()?.next() else {
            println!("\nThat was the last one: all {} are solved.", puzzle::all().len());
            return Ok(ExitCode::SUCCESS);
        };
        puzzle = next;
    }
}

/// Says what is to be done, and where.
fn present(folder: &Folder, puzzle: &Puzzle, is_new: bool) {
    println!("\nPuzzle {}: {}\n\n{}\n", puzzle.number, puzzle.title, puzzle.task);
    println!("Goal:    {}", puzzle.goal);
    let chapter = CHAPTERS.iter().find(|chapter| chapter.slug == puzzle.chapter);
    let title = chapter.map_or("", |chapter| chapter.title);
    println!("Chapter: {title} (chapters/{}/README.md)", puzzle.chapter);
    let found = if is_new { "new" } else { "as you left it" };
    println!("File:    {} ({found})", folder.file(puzzle).display());
    println!("Hole:    {}\n", puzzle.question());
}

/// Tries a kernel and says what comes of it; whether it reaches the goal, which is then kept.
fn attempt(folder: &Folder, puzzle: &Puzzle, source: &str) -> lesson::Result<bool> {
    match attempt::attempt(puzzle, &folder.file(puzzle), source)? {
        Outcome::Reached => {
            println!("{}", wrapped(&format!("Solved. {}", puzzle.because)));
            let mut progress = folder.progress()?;
            progress.solve(puzzle);
            folder.keep(&progress)?;
            Ok(true)
        }
        Outcome::NotYet => Ok(false),
    }
}

fn hint(folder: &Folder, puzzle: &Puzzle) -> lesson::Result {
    let mut progress = folder.progress()?;
    let shown = progress.one_hint_more(puzzle);
    folder.keep(&progress)?;
    let all = puzzle.hints.len();
    println!("Puzzle {}: {}", puzzle.number, puzzle.title);
    for (number, hint) in (1..).zip(&puzzle.hints[..shown]) {
        println!("  Hint {number} of {all}: {hint}");
    }
    if shown == all {
        println!("These are all hints; `--solution` shows the solution.");
    }
    Ok(())
}

fn solution(puzzle: &Puzzle) {
    println!("Puzzle {}: {}\n", puzzle.number, puzzle.title);
    if let Some(solution) = puzzle.candidate("solution") {
        println!("{}", solution.hole);
    }
    println!("{}", wrapped(&puzzle.because));
}

fn reset(folder: &Folder, puzzle: &Puzzle) -> lesson::Result {
    let kept = folder.reset(puzzle)?;
    let mut progress = folder.progress()?;
    progress.forget(puzzle);
    folder.keep(&progress)?;
    println!("Puzzle {} begins anew in {}.", puzzle.number, folder.file(puzzle).display());
    if let Some(kept) = kept {
        println!("What you had written is in {}.", kept.display());
    }
    Ok(())
}
