//! Runs chapters, and records or compares the files that they write.

pub mod compare;
pub mod pack;

use fs_err as fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use lesson::RecordedTable;
use lesson::files;
use lesson::output::println;
use xshell::cmd;

use crate::results::{self, FOLDER};
use crate::{failure, workspace};

/// Runs the chapter with the number or name `name`, and replaces its `results/` by the files of the
/// run. The old results stay if the run or one of its checks fails.
pub fn record(root: &Path, name: &str) -> Result<()> {
    let (chapter, folder) = run(root, name)?;
    let recorded = chapter.join(FOLDER);
    replace(&folder, &recorded, &results::load(&folder)?.tables)?;
    println!("recorded {}", recorded.strip_prefix(root).unwrap_or(&recorded).display());
    Ok(())
}

/// Runs the chapter with the number or name `name`, and compares its files with its `results/`,
/// without timings. The error lists all differences.
pub fn check(root: &Path, name: &str) -> Result<()> {
    let (chapter, folder) = run(root, name)?;
    let differences = compare::compare(&chapter.join(FOLDER), &folder)?;
    failure::none_of(&differences, "the comparison with the recorded results")?;
    println!("chapter {name} agrees with its recorded results");
    Ok(())
}

/// The output folder of a reader's run, and of this one, so that the transcript has the same paths.
const OUT: &str = "target/tour";

/// Runs a chapter; returns the chapter's folder, and the folder with the files of the run.
fn run(root: &Path, name: &str) -> Result<(PathBuf, PathBuf)> {
    let chapter = workspace::chapter_folder(&root.join("chapters"), name)?;
    let name = workspace::name_of(&chapter);
    if !chapter.join("Cargo.toml").is_file() {
        bail!("chapters/{name} has no crate to run");
    }
    let written = root.join(OUT).join(&name);
    // No file of an earlier run may be taken for a file of this run.
    if written.exists() {
        fs::remove_dir_all(&written)?;
    }
    // Chapter 0 is the tour, and its record is the benchmark.
    let command: &[&str] = if name.starts_with("00-") { &["bench"] } else { &[] };
    // The run prints its progress.
    let (shell, cargo) = (workspace::shell(root)?, workspace::cargo());
    let package = workspace::package_of(&name);
    cmd!(shell, "{cargo} run --release --package {package} -- {command...} --out {OUT}")
        .quiet()
        .run()
        .with_context(|| format!("the run of chapters/{name} failed"))?;
    let run = results::load(&written).context("the run wrote no record")?;
    if let Some(check) = run.checks.iter().find(|check| !check.pass) {
        bail!("the check \"{}\" of chapters/{name} failed", check.name);
    }
    Ok((chapter, written))
}

/// Replaces the folder `old` by a copy of `new` without the files of the tables, whose rows are in
/// `run.json`. The old folder is removed when the copy is complete.
///
/// Folders in `old` that `new` does not have stay: they are records of other machines, such as one
/// with a GPU, which no run of the chapter makes.
fn replace(new: &Path, old: &Path, tables: &[RecordedTable]) -> Result<()> {
    files::replace_folder(old, |copy| {
        workspace::copy(new, copy)?;
        for table in tables {
            fs::remove_file(copy.join(&table.file))
                .with_context(|| format!("the run wrote no {}", table.file))?;
        }
        let others = if old.exists() { workspace::entries(old)? } else { Vec::new() };
        for folder in others.iter().filter(|path| path.is_dir()) {
            let copy = copy.join(workspace::name_of(folder));
            if !copy.exists() {
                workspace::copy(folder, &copy)?;
            }
        }
        Ok::<_, anyhow::Error>(())
    })
    .with_context(|| format!("{} cannot be replaced", old.display()))
}
