//! Runs notebooks with the lab's kernels, and writes their outputs or compares them.

use fs_err as fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use lesson::output::{eprintln, println};

use super::environment::Lab;
use crate::failure::{self, Failure};
use crate::notebooks::format::{Cell, Kind, Notebook, Output};
use crate::notebooks::{self, clean, compare, execute, exercises};
use crate::workspace;

/// The most notebooks that run at once: each kernel takes up to 2 GB.
const AT_ONCE: usize = 4;

/// Runs the notebooks with these numbers and names, or all; writes their outputs, or compares them.
///
/// One notebook runs on each core, up to four: a notebook mostly waits for the compiler, which
/// compiles a cell on one core. If a notebook fails or its outputs differ, the others run all the
/// same.
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

/// Runs the notebook at the absolute path `path`, and writes its outputs into it, or compares them.
fn run_one(lab: &Lab, path: &Path, check: bool) -> Result<()> {
    let page = path.strip_prefix(lab.root()).unwrap_or(path);
    let text = fs::read_to_string(path)?;
    let committed = Notebook::parse(&text).with_context(|| page.display().to_string())?;
    let proofs =
        exercises::proofs(&committed).map_err(|faults| anyhow!("{}: {faults}", page.display()))?;
    let mut tried = emptied(&committed);
    tried.cells.extend(proofs);
    let start = Instant::now();
    let mut run = execute::run(lab.command("python"), path, &tried)?;
    let own = committed.cells.len();
    if let Some(error) = run.error.take().or_else(|| complaint(&run.notebook)) {
        let place = match error.cell {
            Some(cell) if cell < own => format!("cell {}", cell + 1),
            Some(cell) => format!("the solution in {}", tried.cells[cell].id),
            None => "before the first cell".to_owned(),
        };
        bail!(
            "{}, {place}:\n{}",
            page.display(),
            anstream::adapter::strip_str(error.message.trim())
        );
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
    workspace::write(path, run.notebook.to_text()?)
}

/// The first text on the standard error as an error: evcxr does no more if a cell ends with
/// `Err(…)?`.
fn complaint(notebook: &Notebook) -> Option<execute::Error> {
    let complaints = notebook.cells.iter().map(|cell| streamed(cell, "stderr")).enumerate();
    let mut complaints = complaints.filter(|(_, message)| !message.is_empty());
    complaints.next().map(|(at, message)| execute::Error { cell: Some(at), message })
}

/// The text that a cell wrote to a stream: `stdout` or `stderr`.
fn streamed(cell: &Cell, stream: &str) -> String {
    let texts = cell.outputs().iter().filter_map(|output| match output {
        Output::Stream { name, text } if name == stream => Some(text.0.as_str()),
        _ => None,
    });
    texts.collect()
}

/// The notebook without the outputs of an earlier run.
fn emptied(notebook: &Notebook) -> Notebook {
    let mut notebook = notebook.clone();
    for cell in notebook.cells.iter_mut().filter(|cell| cell.is_code()) {
        cell.kind = Kind::Code { execution_count: None, outputs: Vec::new() };
    }
    notebook
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

/// The notebooks in `folder` that are named, or all: `NN-name.ipynb` by its number, others by their
/// name.
fn paths(folder: &Path, named: &[String]) -> Result<Vec<PathBuf>> {
    let mut all = notebooks::files(folder);
    let is = |path: &Path, name: &String| {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let number = workspace::number_of(&stem);
        *name == stem || number.is_some() && name.parse().ok() == number
    };
    if let Some(name) = named.iter().find(|name| !all.iter().any(|path| is(path, name))) {
        bail!("there is no notebook {name} in {}", folder.display());
    }
    all.retain(|path| named.is_empty() || named.iter().any(|name| is(path, name)));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn notebook(sources: &[&str]) -> Notebook {
        let cells = sources.iter().enumerate();
        Notebook::new(cells.map(|(at, code)| Cell::code(&format!("c{at}"), code)).collect())
    }

    /// Writes a notebook of these cells into `folder`.
    fn write(folder: &Path, sources: &[&str]) -> PathBuf {
        let path = folder.join("planted.ipynb");
        fs::write(&path, notebook(sources).to_text().unwrap()).unwrap();
        path
    }

    // One test, since the notebooks share the folder in which the kernel compiles.
    #[test]
    #[ignore = "needs the lab: cargo lab --prepare"]
    fn a_failure_in_a_cell_fails_the_run_of_a_notebook() {
        let lab = Lab::found(&workspace::root().unwrap());
        let lab = lab.expect("there is no lab: `cargo lab --prepare` makes one");
        let folder = tempfile::tempdir().unwrap();

        let path = write(folder.path(), &["let x = 0.5;\nprintln!(\"{x}\");", "x + 1.0"]);
        run_one(&lab, &path, false).unwrap();
        let written = fs::read_to_string(&path).unwrap();
        assert!(written.contains("\"0.5\\n\"") && written.contains("\"1.5\""), "{written}");
        run_one(&lab, &path, true).unwrap();
        fs::write(&path, written.replace("\"1.5\"", "\"1.6\"")).unwrap();
        let error = run_one(&lab, &path, true).unwrap_err().to_string();
        assert!(error.contains("cell 2: its output was\n    1.6\nand is\n    1.5"), "{error}");

        let exercise = "fn exercise(answer: Option<u32>) {\nif let Some(n) = answer { assert_eq!(n % 2, 0); \
                        println!(\"Right.\") }\n}\nlet answer: Option<u32> = None;\nexercise(answer);";
        for (solution, wrong, what) in [
            ("Some(4)", "Some(5)", ""),
            ("Some(3)", "Some(5)", "the solution in proof-of-c0"),
            ("Some(4)", "Some(6)", "exercise c0: wrong answer 1 is accepted"),
        ] {
            let mut notebook = notebook(&[exercise]);
            notebook.cells[0].metadata.insert("wrong".to_owned(), json!([wrong]));
            let mut cell = Cell::code("c0-solution", &format!("```rust\n{solution}\n```\n"));
            cell.kind = Kind::Markdown;
            notebook.cells.push(cell);
            fs::write(&path, notebook.to_text().unwrap()).unwrap();
            let error = run_one(&lab, &path, false).err().map_or(String::new(), |e| e.to_string());
            assert!(error.contains(what) && error.is_empty() == what.is_empty(), "{what}: {error}");
        }

        for (code, what) in [
            ("panic!(\"planted {}\", 1)", "planted 1"),
            ("assert_eq!(1 + 1, 3, \"planted\");", "planted"),
            ("let number: u32 = \"planted\";", "mismatched types"),
            (
                "let none: Option<u32> = None;\nnone.unwrap();",
                "called `Option::unwrap()` on a `None` value",
            ),
            ("Err::<(), String>(\"planted\".to_owned())?;", "planted"),
        ] {
            let path = write(folder.path(), &["let x = 1;", code, "x"]);
            let before = fs::read_to_string(&path).unwrap();
            let error = match run_one(&lab, &path, false) {
                Ok(()) => panic!("`{code}` did not fail the run"),
                Err(error) => error.to_string(),
            };
            // evcxr may send the words of `Err(...)?` when the next cell has begun.
            let late = code.starts_with("Err") && error.contains("planted.ipynb, cell 3:");
            assert!(late || error.contains("planted.ipynb, cell 2:"), "{code}: {error}");
            assert!(error.contains(what), "{code}: {error}");
            assert_eq!(
                fs::read_to_string(&path).unwrap(),
                before,
                "a run that failed writes nothing"
            );
        }
    }
}
