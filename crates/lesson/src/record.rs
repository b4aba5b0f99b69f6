//! The record of a run, from which the book's pages and the tour's summary are made.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The record of a chapter's run, as written to `run.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The chapter's folder, such as `01-sequential-loop`.
    pub chapter: String,
    /// The chapter's number.
    pub number: u8,
    /// The chapter's title.
    pub title: String,
    /// The engine or engines that ran.
    pub engine: String,
    /// The command that repeats the run.
    pub command: String,
    /// The machine of the run.
    pub machine: String,
    /// The day of the run, as `2026-11-21` (UTC).
    pub date: String,
    /// The duration of the run in seconds.
    pub seconds: f64,
    /// True if the run used the post's sizes.
    pub full: bool,
    /// The named values that the page quotes.
    pub values: BTreeMap<String, Value>,
    /// The checks, in order.
    pub checks: Vec<Check>,
    /// The figures, in order.
    pub figures: Vec<Figure>,
    /// The tables, in order.
    pub tables: Vec<RecordedTable>,
}

/// A number or word that the page quotes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Value {
    /// The value as printed.
    pub text: String,
    /// True if the value depends on the clock.
    pub timing: bool,
}

/// A check: it passes if `value ≤ limit`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// The property that was checked.
    pub name: String,
    /// The measured value; `null` in JSON if it is not a number.
    pub value: Option<f64>,
    /// The largest value that passes.
    pub limit: f64,
    /// True if the check passed.
    pub pass: bool,
}

/// A figure that the run wrote.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The file name in the chapter's output folder.
    pub file: String,
    /// The figure's title.
    pub title: String,
    /// True if the figure depends on the clock.
    pub timing: bool,
}

/// A table that the run showed and wrote as CSV.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordedTable {
    /// The file name in the chapter's output folder.
    pub file: String,
    /// True if the table depends on the clock.
    pub timing: bool,
    /// The lines of the file. A committed record contains tables only here, not as files.
    pub rows: Vec<String>,
}

impl Record {
    /// Returns true if every check passed.
    pub fn passed(&self) -> bool {
        self.checks.iter().all(|check| check.pass)
    }
}
