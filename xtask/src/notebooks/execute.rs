//! Running a notebook with the real kernel and without a browser.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::format::Notebook;
use crate::lab::Lab;

/// What a run gave.
#[derive(Debug, Deserialize)]
pub struct Run {
    /// The notebook, with outputs up to the first error.
    pub notebook: Notebook,
    /// How long each code cell took, by its place among all cells.
    pub seconds: BTreeMap<usize, f64>,
    /// What stopped it.
    pub error: Option<Error>,
}

/// A cell that failed.
#[derive(Debug, Deserialize)]
pub struct Error {
    /// Its place among all cells, counted from 0; none where the kernel did not start.
    pub cell: Option<usize>,
    /// What the kernel says, with a terminal's colours.
    pub message: String,
}

/// Runs all cells of `notebook` in a new kernel, in the folder of `path`, until one fails.
///
/// # Errors
///
/// When the kernel cannot be started. A cell that fails is a part of the result.
pub fn run(lab: &Lab, path: &Path, notebook: &Notebook) -> Result<Run> {
    let mut child = lab
        .command("python")
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
