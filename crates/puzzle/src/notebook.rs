//! Puzzles in a notebook: shows them, gives hints, and takes answers as a letter or as lines of
//! code.
//!
//! ```
//! use puzzle::notebook::{hint, puzzle};
//!
//! let guard = puzzle("guard");
//! println!("{guard}");
//! println!("{}", hint("guard", 1));
//! assert!(guard.answer("if (seq >= num_seqs) return;").is_ok());
//! ```

use std::fmt;

use lesson::notebook::{Content, Show};
use linrec::device::Device;
use linrec::device::nvrtc::{self, SHIPPED_ARCHITECTURE};
use linrec::kernels::Ptx;

use crate::explain::{Part, explain};
use crate::{Puzzle, find, judge};

/// A puzzle that a notebook shows with its task, its kernel and answers to choose from.
#[derive(Debug, Clone, Copy)]
pub struct Shown(&'static Puzzle);

/// Returns the puzzle of this name or number.
///
/// # Panics
///
/// Panics if the puzzle does not exist.
pub fn puzzle(name: &str) -> Shown {
    Shown(find(name).unwrap_or_else(|| panic!("there is no puzzle {name}")))
}

/// Text that a notebook shows unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text(String);

/// Returns the first `count` hints of a puzzle.
///
/// # Panics
///
/// Panics if the puzzle does not exist.
pub fn hint(name: &str, count: usize) -> Text {
    let hints = &puzzle(name).0.hints;
    let shown = hints.iter().take(count).enumerate();
    let lines = shown.map(|(at, hint)| format!("Hint {} of {}: {hint}", at + 1, hints.len()));
    Text(lines.collect::<Vec<_>>().join("\n"))
}

/// Answers a puzzle with the letter of a choice, or with lines for the hole, and shows the verdict.
///
/// # Panics
///
/// Panics if the answer does not reach the goal, with the verdict as the message, or if the puzzle
/// does not exist.
pub fn solve(name: &str, answer: &str) {
    match puzzle(name).answer(answer) {
        Ok(verdict) => verdict.evcxr_display(),
        Err(verdict) => panic!("{verdict}"),
    }
}

impl Shown {
    /// Returns the verdict about an answer that reaches the goal, and the reason why it is right.
    ///
    /// # Errors
    ///
    /// Returns the verdict and the explanation if the answer does not reach the goal, or the error
    /// of the compiler if the answer must be compiled and cannot be.
    pub fn answer(&self, answer: &str) -> Result<Text, Text> {
        let puzzle = self.0;
        let (source, ptx) = self.compiled(answer).map_err(Text)?;
        let verdict = judge(puzzle, &ptx, &Device::simt());
        let mut text = verdict.to_string();
        for part in explain(puzzle, &source, &ptx, &verdict) {
            let (Part::Words(part) | Part::Code(part)) = part;
            text = text + "\n" + part.trim_end();
        }
        if verdict.reached() { Ok(Text(text + "\n" + &puzzle.because)) } else { Err(Text(text)) }
    }

    /// Returns the kernel with an answer in its hole, and its shipped or compiled PTX.
    fn compiled(&self, answer: &str) -> Result<(String, Ptx), String> {
        let puzzle = self.0;
        let choices = puzzle.choices();
        let chosen =
            letters().zip(&choices).find(|(letter, _)| answer.trim() == letter.to_string());
        let source = match chosen {
            Some((_, choice)) => puzzle.source(&choice.hole),
            None => puzzle.source(&(answer.trim_end().to_owned() + "\n")),
        };
        let known = puzzle.same(&source).and_then(|known| puzzle.ptx(&known.name));
        if let Some(ptx) = known {
            return Ok((source, ptx));
        }
        let program = puzzle.program("your-answer.cu", source.clone());
        match nvrtc::compile(&program, SHIPPED_ARCHITECTURE) {
            Ok(compiled) => Ok((source, compiled.ptx)),
            Err(error) => Err(format!(
                "{error}\n(NVRTC compiles lines other than the choices; `cargo xtask ptx --prepare` installs it.)"
            )),
        }
    }
}

fn letters() -> impl Iterator<Item = char> {
    'A'..='Z'
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let puzzle = self.0;
        writeln!(f, "{}\n\nGoal: {}\n\n{}", puzzle.task, puzzle.goal, puzzle.skeleton())?;
        writeln!(f, "{}", puzzle.question())?;
        for (letter, choice) in letters().zip(puzzle.choices()) {
            let hole = if choice.hole.trim().is_empty() { "(nothing)\n" } else { &choice.hole };
            let now = if letter == 'A' { " (as it stands)" } else { "" };
            write!(f, "\n{letter}{now}:\n{hole}")?;
        }
        Ok(())
    }
}

impl Show for Shown {
    fn content(&self) -> Content {
        Content { plain: self.to_string(), rich: None }
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Show for Text {
    fn content(&self) -> Content {
        Content { plain: self.0.clone(), rich: None }
    }
}
