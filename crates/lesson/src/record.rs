//! The record of a run: what the book's pages and the tour's summary are made from.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What a chapter's run did, as written to `run.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The chapter's folder, such as `01-sequential-loop`.
    pub chapter: String,
    /// Its number.
    pub number: u8,
    /// Its title.
    pub title: String,
    /// The engine or engines that it ran.
    pub engine: String,
    /// The command that repeats the run.
    pub command: String,
    /// The machine it ran on.
    pub machine: String,
    /// The day it ran, as `2026-11-21` (UTC).
    pub date: String,
    /// How long it took.
    pub seconds: f64,
    /// Whether it ran at the post's sizes.
    pub full: bool,
    /// Named numbers that the page quotes.
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
    /// As it is printed.
    pub text: String,
    /// Whether it depends on the clock.
    pub timing: bool,
}

/// A check: it passes if `value ≤ limit`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// What was checked.
    pub name: String,
    /// What was measured; `null` in JSON where it is not a number.
    pub value: Option<f64>,
    /// The largest value that passes.
    pub limit: f64,
    /// Whether it passed.
    pub pass: bool,
}

/// A figure that was written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Its file in the chapter's output folder.
    pub file: String,
    /// What it shows.
    pub title: String,
    /// Whether it depends on the clock.
    pub timing: bool,
}

/// A table that was shown, and written as CSV.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordedTable {
    /// Its file in the chapter's output folder.
    pub file: String,
    /// Whether it depends on the clock.
    pub timing: bool,
    /// The lines of that file: what is kept of a run has the tables here alone.
    pub rows: Vec<String>,
}

impl Record {
    /// Whether every check passed.
    pub fn passed(&self) -> bool {
        self.checks.iter().all(|check| check.pass)
    }
}
