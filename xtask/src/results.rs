//! The record of a chapter's run: `results/run.json`, as `lesson` writes it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

/// The folder of a chapter that holds what its run wrote.
pub const FOLDER: &str = "results";

/// The file of what was measured on another machine, in a folder of the results.
pub const TABLES: &str = "tables.json";

/// One recorded run of a chapter.
#[derive(Debug, Clone, Deserialize)]
pub struct Run {
    /// The engine that computed, such as `loop` or `pipe:8x64:0@simt`.
    pub engine: String,
    /// The command that a reader types for the same run.
    pub command: String,
    /// The machine, in words.
    pub machine: String,
    /// The day, `YYYY-MM-DD`.
    pub date: String,
    /// What the page quotes, by key.
    #[serde(default)]
    pub values: BTreeMap<String, Value>,
    /// What the run checked.
    #[serde(default)]
    pub checks: Vec<Check>,
    /// The charts.
    #[serde(default)]
    pub figures: Vec<Figure>,
    /// The tables.
    #[serde(default)]
    pub tables: Vec<Table>,
}

/// A number or word that the page quotes.
#[derive(Debug, Clone, Deserialize)]
pub struct Value {
    /// As it is printed.
    pub text: String,
    /// Whether it is a time, or follows from one, and so differs in every run.
    pub timing: bool,
}

/// A check that the run made.
#[derive(Debug, Clone, Deserialize)]
pub struct Check {
    /// What was checked.
    pub name: String,
    /// The measured value; JSON has no infinity or NaN, which come as nothing.
    pub value: Option<f64>,
    /// What it may not exceed.
    pub limit: Option<f64>,
    /// Whether it held.
    pub pass: bool,
}

/// A chart, in a file beside `run.json`.
#[derive(Debug, Clone, Deserialize)]
pub struct Figure {
    /// The file's name.
    pub file: String,
    /// Whether it shows times.
    pub timing: bool,
}

/// A table.
#[derive(Debug, Clone, Deserialize)]
pub struct Table {
    /// The name of the file that a run writes it to.
    pub file: String,
    /// Whether it shows times.
    pub timing: bool,
    /// The lines of that file.
    pub rows: Vec<String>,
}

impl Run {
    /// The record in `results`, the folder that a run wrote.
    ///
    /// # Errors
    ///
    /// When `run.json` is missing or does not have the form above.
    pub fn load(results: &Path) -> Result<Self> {
        let path = results.join("run.json");
        let text = fs::read_to_string(&path).with_context(|| {
            format!("{} cannot be read (written by `cargo xtask record`)", path.display())
        })?;
        serde_json::from_str(&text)
            .with_context(|| format!("{} is not the record of a run", path.display()))
    }
}
