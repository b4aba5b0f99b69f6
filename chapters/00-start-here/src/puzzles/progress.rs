//! What is solved, and how many hints have been shown.

use std::collections::{BTreeMap, BTreeSet};

use puzzle::Puzzle;
use serde::{Deserialize, Serialize};

/// What is solved, and how many hints have been shown, by the puzzles' names. Names that are not
/// known stay.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    solved: BTreeSet<String>,
    #[serde(default)]
    hints: BTreeMap<String, usize>,
}

impl Progress {
    /// Reads it as [`Progress::text`] writes it.
    pub fn read(text: &str) -> Result<Progress, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The text of its file.
    pub fn text(&self) -> lesson::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// Whether a puzzle is solved.
    pub fn is_solved(&self, puzzle: &Puzzle) -> bool {
        self.solved.contains(&puzzle.name)
    }

    /// The first puzzle that is not solved.
    pub fn next(&self) -> Option<&'static Puzzle> {
        puzzle::all().iter().find(|puzzle| !self.is_solved(puzzle))
    }

    /// A puzzle is solved.
    pub fn solve(&mut self, puzzle: &Puzzle) {
        self.solved.insert(puzzle.name.clone());
    }

    /// One more hint is shown, unless all are; how many are shown then.
    pub fn one_hint_more(&mut self, puzzle: &Puzzle) -> usize {
        let shown = self.hints.entry(puzzle.name.clone()).or_default();
        *shown = shown.saturating_add(1).min(puzzle.hints.len());
        *shown
    }

    /// Nothing has been done about a puzzle.
    pub fn forget(&mut self, puzzle: &Puzzle) {
        self.solved.remove(&puzzle.name);
        self.hints.remove(&puzzle.name);
    }
}
