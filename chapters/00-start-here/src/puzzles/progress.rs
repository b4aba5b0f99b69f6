//! The solved puzzles and the number of hints shown.

use std::collections::{BTreeMap, BTreeSet};

use puzzle::Puzzle;
use serde::{Deserialize, Serialize};

/// The solved puzzles and the number of hints shown, by the puzzles' names. Unknown names are
/// preserved.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    solved: BTreeSet<String>,
    #[serde(default)]
    hints: BTreeMap<String, usize>,
}

impl Progress {
    /// Parses the text that [`Progress::text`] formats.
    pub fn read(text: &str) -> Result<Progress, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Formats the progress as the text of its file.
    pub fn text(&self) -> lesson::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// Returns true if a puzzle is solved.
    pub fn is_solved(&self, puzzle: &Puzzle) -> bool {
        self.solved.contains(&puzzle.name)
    }

    /// Returns the first puzzle that is not solved.
    pub fn next(&self) -> Option<&'static Puzzle> {
        puzzle::all().iter().find(|puzzle| !self.is_solved(puzzle))
    }

    /// Records that a puzzle is solved.
    pub fn solve(&mut self, puzzle: &Puzzle) {
        self.solved.insert(puzzle.name.clone());
    }

    /// Records that one more hint is shown, unless all are. Returns the number of hints shown.
    pub fn one_hint_more(&mut self, puzzle: &Puzzle) -> usize {
        let shown = self.hints.entry(puzzle.name.clone()).or_default();
        *shown = shown.saturating_add(1).min(puzzle.hints.len());
        *shown
    }

    /// Removes a puzzle from the record.
    pub fn forget(&mut self, puzzle: &Puzzle) {
        self.solved.remove(&puzzle.name);
        self.hints.remove(&puzzle.name);
    }
}
