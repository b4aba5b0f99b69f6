//! Puzzles in the terminal: shows the next kernel with a hole, and tries it whenever it is saved.

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

/// The command-line arguments for puzzles.
#[derive(Args)]
pub struct Settings {
    /// The puzzle, by number or name; by default the first open one
    #[arg(value_name = "PUZZLE")]
    which: Option<String>,
    /// List the puzzles, and which of them are solved
    #[arg(long, group = "what")]
    list: bool,
    /// Try the kernel once, instead of whenever its file is saved; the exit code is 0 if it reaches
    /// the goal
    #[arg(long, group = "what")]
    once: bool,
    /// Show the next hint, below the earlier ones
    #[arg(long, group = "what")]
    hint: bool,
    /// Show the solution, and explain it
    #[arg(long, group = "what")]
    solution: bool,
    /// Begin the puzzle anew; your kernel is kept under another name
    #[arg(long, group = "what")]
    reset: bool,
    /// The folder for your kernels and for the record of solved puzzles
    #[arg(long, value_name = "FOLDER", default_value = "my-puzzles")]
    folder: PathBuf,
}

/// Runs the command that the command line names.
///
/// # Errors
///
/// Returns an error if there is no such puzzle, a file cannot be read or written, the record of
/// solved puzzles is damaged, or a kernel must be compiled and there is no compiler.
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
        format!("there is no puzzle {name}; `puzzle --list` names all puzzles").into()
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

/// Tries a kernel once. The exit code is 0 if it reaches the goal, otherwise 1.
fn once(folder: &Folder, puzzle: &'static Puzzle) -> lesson::Result<ExitCode> {
    let is_new = folder.begin(puzzle)?;
    let source = folder.source(puzzle)?;
    // A reader who has begun knows the task.
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

/// Tries a kernel whenever its file is saved, and continues with the next open puzzle when it
/// reaches the goal. Without a terminal, the kernel is tried once.
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

/// Tries a kernel and prints the outcome. Returns true if it reaches the goal, which is then
/// recorded.
fn attempt(folder: &Folder, puzzle: &Puzzle, source: &str) -> lesson::Result<bool> {
    match attempt::attempt(puzzle, &folder.file(puzzle), source)? {
        Outcome::Reached => {
            println!("{}", wrapped(&format!("Solved. {}", puzzle.because)));
            let mut progress = folder.progress()?;
            progress.solve(puzzle);
            folder.save(&progress)?;
            Ok(true)
        }
        Outcome::NotYet => Ok(false),
    }
}

fn hint(folder: &Folder, puzzle: &Puzzle) -> lesson::Result {
    let mut progress = folder.progress()?;
    let shown = progress.one_hint_more(puzzle);
    folder.save(&progress)?;
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
    let renamed = folder.reset(puzzle)?;
    let mut progress = folder.progress()?;
    progress.forget(puzzle);
    folder.save(&progress)?;
    println!("Puzzle {} begins anew in {}.", puzzle.number, folder.file(puzzle).display());
    if let Some(renamed) = renamed {
        println!("What you had written is in {}.", renamed.display());
    }
    Ok(())
}
