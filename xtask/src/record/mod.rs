//! Running chapters and keeping, or comparing, what they wrote.

pub mod compare;
pub mod pack;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use lesson::files;
use lesson::output::println;

use crate::results::{FOLDER, Run, Table};
use crate::{failure, workspace};

/// Runs the chapter with the number or name `name` and replaces its `results/` by what the run
/// wrote.
///
/// # Errors
///
/// When the chapter cannot be run, fails, or one of its checks does: then the old results stay.
pub fn record(root: &Path, name: &str) -> Result<()> {
    let (chapter, folder) = run(root, name)?;
    let results = chapter.join(FOLDER);
    replace(&folder, &results, &Run::load(&folder)?.tables)?;
    println!("recorded {}", results.strip_prefix(root).unwrap_or(&results).display());
    Ok(())
}

/// Runs the chapter with the number or name `name` and compares what it wrote with its `results/`,
/// timings left out.
///
/// # Errors
///
/// When the chapter cannot be run, or something differs; all differences are listed.
pub fn check(root: &Path, name: &str) -> Result<()> {
    let (chapter, folder) = run(root, name)?;
    let differences = compare::compare(&chapter.join(FOLDER), &folder)?;
    failure::none_of(&differences, "the comparison with the recorded results")?;
    println!("chapter {name} agrees with its recorded results");
    Ok(())
}

/// Where a reader's run writes, and so this one: the transcript names the files as the reader's
/// does.
const OUT: &str = "target/tour";

/// Runs a chapter: the chapter's folder, and the folder of what the run wrote.
fn run(root: &Path, name: &str) -> Result<(PathBuf, PathBuf)> {
    let chapter = workspace::chapter_folder(&root.join("chapters"), name)?;
    let name = workspace::name_of(&chapter);
    if !chapter.join("Cargo.toml").is_file() {
        bail!("chapters/{name} has no crate to run");
    }
    let written = root.join(OUT).join(&name);
    // Nothing of an earlier run may be taken for this one's.
    if written.exists() {
        fs::remove_dir_all(&written)
            .with_context(|| format!("{} cannot be removed", written.display()))?;
    }
    // Chapter 0 is the tour itself; what is recorded of it is its benchmark.
    let command: &[&str] = if name.starts_with("00-") { &["bench"] } else { &[] };
    // Its own output is passed through: it tells how far the run is.
    let status = workspace::cargo()
        .current_dir(root)
        .args(["run", "--release", "--package", &workspace::package_of(&name), "--"])
        .args(command)
        .args(["--out", OUT])
        .status()
        .context("cargo cannot be started")?;
    if !status.success() {
        bail!("the run of chapters/{name} failed ({status})");
    }
    let run = Run::load(&written).context("the run wrote no record")?;
    if let Some(check) = run.checks.iter().find(|check| !check.pass) {
        bail!("the check \"{}\" of chapters/{name} failed", check.name);
    }
    Ok((chapter, written))
}

/// Replaces the folder `old` by a copy of `new` without the files of the tables, whose rows
/// `run.json` has. The old one goes only when the copy is complete.
///
/// Folders inside `old` that `new` does not have stay: they are records of other machines, a GPU's
/// say, which no run of the chapter makes.
fn replace(new: &Path, old: &Path, tables: &[Table]) -> Result<()> {
    files::replace_folder(old, |copy| {
        copy_folder(new, copy)?;
        for table in tables {
            fs::remove_file(copy.join(&table.file))
                .with_context(|| format!("the run wrote no {}", table.file))?;
        }
        for folder in folders(old)? {
            let name = folder.file_name().unwrap_or_default();
            if !copy.join(name).exists() {
                copy_folder(&folder, &copy.join(name))?;
            }
        }
        Ok::<_, anyhow::Error>(())
    })
    .with_context(|| format!("{} cannot be replaced", old.display()))
}

/// The folders directly inside a folder, which need not be there.
fn folders(folder: &Path) -> Result<Vec<PathBuf>> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(folder)?.collect::<std::io::Result<Vec<_>>>()?;
    Ok(entries.into_iter().map(|entry| entry.path()).filter(|path| path.is_dir()).collect())
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    for entry in walkdir::WalkDir::new(from) {
        let entry = entry?;
        let target = to.join(entry.path().strip_prefix(from)?);
        if entry.file_type().is_dir() {
            fs::create_dir_all(&target)?;
        } else {
            fs::copy(entry.path(), &target)
                .with_context(|| format!("{} cannot be copied", entry.path().display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_replaced_as_a_whole() {
        let root = tempfile::tempdir().unwrap();
        let (old, new) = (root.path().join("results"), root.path().join("fresh"));
        fs::create_dir_all(old.join("h200")).unwrap();
        fs::write(old.join("h200/bits.csv"), "bits").unwrap();
        fs::create_dir_all(new.join("inner")).unwrap();
        fs::write(old.join("stale.svg"), "stale").unwrap();
        fs::write(new.join("inner/a.csv"), "a").unwrap();
        fs::write(new.join("cost.csv"), "length,ms\n").unwrap();
        let table = Table { file: "cost.csv".into(), timing: true, rows: vec!["length,ms".into()] };
        replace(&new, &old, &[table]).unwrap();
        assert!(!old.join("cost.csv").exists());
        assert!(!old.join("stale.svg").exists());
        assert_eq!(fs::read_to_string(old.join("inner/a.csv")).unwrap(), "a");
        assert_eq!(fs::read_to_string(old.join("h200/bits.csv")).unwrap(), "bits");
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 2);
    }
}
