//! The notebooks: running them without a browser, keeping what they gave, or comparing it.

pub mod clean;
pub mod compare;
pub mod execute;
pub mod exercises;
pub mod format;
pub mod language;

use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use lesson::files;
use lesson::output::{eprintln, println};

use crate::failure::{self, Failure};
use crate::lab::Lab;
use crate::workspace;
use format::{Cell, Notebook, Output};

/// At most so many notebooks at once: each kernel takes up to 2 GB.
const AT_ONCE: usize = 4;

/// Runs the notebooks of these numbers and names, or all; keeps their outputs, or compares them.
///
/// As many at once as there are cores, up to four: what a notebook waits for is mostly the
/// compiler, which compiles a cell on one core.
///
/// # Errors
///
/// When one cannot be run, one of its cells fails, or its outputs differ. The others are run all
/// the same.
pub fn run(lab: &Lab, named: &[String], check: bool) -> Result<()> {
    let start = Instant::now();
    let waiting = Mutex::new(paths(&lab.root().join("notebooks"), named)?.into_iter());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
    let failed = Mutex::new(Vec::new());
    let work = || {
        while let Some(path) = next() {
            if let Err(error) = run_one(lab, &path, check) {
                eprintln!("{error:#}");
                let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                failed.push(workspace::name_of(&path));
            }
        }
    };
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| (0..cores.min(AT_ONCE)).for_each(|_| drop(scope.spawn(work))));
    println!("all of them: {:.0} s", start.elapsed().as_secs_f64());
    let mut failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    failed.sort();
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}

/// Runs the notebook at `path`, an absolute one, and writes its outputs into it, or compares them.
///
/// # Errors
///
/// As [`run`].
pub fn run_one(lab: &Lab, path: &Path, check: bool) -> Result<()> {
    let page = path.strip_prefix(lab.root()).unwrap_or(path);
    let text =
        fs::read_to_string(path).with_context(|| format!("{} cannot be read", page.display()))?;
    let committed = Notebook::parse(&text).with_context(|| page.display().to_string())?;
    let proofs =
        exercises::proofs(&committed).map_err(|faults| anyhow!("{}: {faults}", page.display()))?;
    let mut asked = emptied(&committed);
    asked.cells.extend(proofs);
    let start = Instant::now();
    let mut run = execute::run(lab, path, &asked)?;
    let own = committed.cells.len();
    if let Some(error) = run.error.take().or_else(|| complaint(&run.notebook)) {
        let place = match error.cell {
            Some(cell) if cell < own => format!("cell {}", cell + 1),
            Some(cell) => format!("the solution in {}", asked.cells[cell].id),
            None => "before the first cell".to_owned(),
        };
        bail!("{}, {place}:\n{}", page.display(), uncoloured(&error.message));
    }
    let proofs = run.notebook.cells.split_off(own);
    let wrong =
        proofs.iter().filter_map(|proof| exercises::verdict(proof, &streamed(proof, "stdout")));
    let wrong = wrong.map(|what| Failure::new(page, None, what)).collect::<Vec<_>>();
    failure::none_of(&wrong, "the notebook's exercises")?;
    let seconds = run.seconds.range(..own).map(|cell| *cell.1).collect::<Vec<_>>();
    println!(
        "{}: {} exercises; {}; {:.1} s in all",
        page.display(),
        proofs.len(),
        times(&seconds),
        start.elapsed().as_secs_f64()
    );
    clean::clean(&mut run.notebook, &lab.folders());
    if check {
        let differences = compare::compare(page, &committed, &run.notebook);
        return failure::none_of(&differences, "the comparison with the committed outputs");
    }
    files::write(path, run.notebook.to_text()?)
        .with_context(|| format!("{} cannot be written", page.display()))
}

/// What a cell wrote to the standard error: that is all that evcxr does where a cell ends with
/// `Err(…)?`.
fn complaint(notebook: &Notebook) -> Option<execute::Error> {
    let complaints = notebook.cells.iter().map(|cell| streamed(cell, "stderr")).enumerate();
    let mut complaints = complaints.filter(|(_, message)| !message.is_empty());
    complaints.next().map(|(at, message)| execute::Error { cell: Some(at), message })
}

/// What a cell wrote to a stream: `stdout` or `stderr`.
fn streamed(cell: &Cell, stream: &str) -> String {
    let texts = cell.outputs.iter().flatten().filter_map(|output| match output {
        Output::Stream { name, text } if name == stream => Some(text.0.as_str()),
        _ => None,
    });
    texts.collect()
}

/// The notebook without what an earlier run left in it.
fn emptied(notebook: &Notebook) -> Notebook {
    let mut notebook = notebook.clone();
    for cell in notebook.cells.iter_mut().filter(|cell| cell.is_code()) {
        cell.outputs = Some(Vec::new());
        cell.execution_count = Some(None);
    }
    notebook
}

/// A message without a terminal's colours.
fn uncoloured(message: &str) -> String {
    let mut parts = message.trim().split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    // Behind the escape is `[31m`, or the like.
    first + &parts.filter_map(|part| Some(part.split_once('m')?.1)).collect::<String>()
}

fn times(seconds: &[f64]) -> String {
    let sum: f64 = seconds.iter().sum();
    match seconds.split_first() {
        None => "no cells to run".to_owned(),
        Some((first, rest)) => format!(
            "{} cells in {sum:.1} s: the first in {first:.1} s, the slowest other in {:.1} s",
            seconds.len(),
            rest.iter().copied().fold(0.0, f64::max)
        ),
    }
}

/// All notebooks in `folder`, by their names.
///
/// # Errors
///
/// When the folder cannot be read.
pub fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = folder
        .read_dir()
        .with_context(|| format!("the folder {} cannot be read", folder.display()))?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "ipynb"))
        .collect();
    files.sort();
    Ok(files)
}

/// The notebooks in `folder` in their order: `NN-name.ipynb` by its number, others by their name;
/// all if none is named.
fn paths(folder: &Path, named: &[String]) -> Result<Vec<PathBuf>> {
    let mut all = files(folder)?;
    let is = |path: &Path, name: &String| {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let number = stem.split_once('-').and_then(|(number, _)| number.parse::<u32>().ok());
        *name == stem || number.is_some() && name.parse().ok() == number
    };
    if let Some(name) = named.iter().find(|name| !all.iter().any(|path| is(path, name))) {
        bail!("there is no notebook {name} in {}", folder.display());
    }
    all.retain(|path| named.is_empty() || named.iter().any(|name| is(path, name)));
    Ok(all)
}
