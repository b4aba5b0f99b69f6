//! The record of a chapter's run: `results/run.json`, as `lesson` writes it.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use lesson::Record;

/// The folder of a chapter that holds the files of its recorded run.
pub const FOLDER: &str = "results";

/// The file of the tables that were measured on another machine, in a folder of the results.
pub const TABLES: &str = "tables.json";

/// Reads the record of the run that wrote the folder `results`.
pub fn load(results: &Path) -> Result<Record> {
    let path = results.join("run.json");
    let text = fs::read_to_string(&path).with_context(|| {
        format!("{} cannot be read (written by `cargo xtask record`)", path.display())
    })?;
    serde_json::from_str(&text)
        .with_context(|| format!("{} is not the record of a run", path.display()))
}
