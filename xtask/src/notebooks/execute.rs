//! Runs a notebook with the real kernel and without a browser.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::format::Notebook;

/// The result of a run.
#[derive(Debug, Deserialize)]
pub struct Run {
    /// The notebook with its outputs, up to the first error.
    pub notebook: Notebook,
    /// The seconds of each code cell, by its index among all cells.
    pub seconds: BTreeMap<usize, f64>,
    /// The error that ended it.
    pub error: Option<Error>,
}

/// A cell that failed.
#[derive(Debug, Deserialize)]
pub struct Error {
    /// Its index among all cells; `None` if the kernel did not start.
    pub cell: Option<usize>,
    /// The message of the kernel, with the colours of a terminal.
    pub message: String,
}

/// Runs all cells of `notebook` in a new kernel, in the folder of `path`, until one fails, which is
/// part of the result. `python` starts the lab's Python.
pub fn run(mut python: Command, path: &Path, notebook: &Notebook) -> Result<Run> {
    let mut child = python
        .args(["-c", include_str!("execute.py")])
        .arg(path)
        .env("JPY_SESSION_NAME", path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("the lab's Python cannot be started")?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(notebook.to_text()?.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!("{} could not be run ({})", path.display(), output.status);
    }
    serde_json::from_slice(&output.stdout)
        .with_context(|| format!("the run of {} gave no notebook", path.display()))
}
