//! The folder `puzzles/`: what its descriptions say, and a puzzle in one piece for the pages that
//! have it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use puzzle::Puzzle;
use serde_json::{Value, json};

use crate::workspace;

const FOLDER: &str = "puzzles";

/// The descriptions in `puzzles/`, in their order.
///
/// # Errors
///
/// When one of them cannot be read or used.
pub fn read(root: &Path) -> Result<Vec<Puzzle>> {
    let read = |folder: &PathBuf| {
        let (toml, cu) = (text(&folder.join("puzzle.toml"))?, text(&folder.join("puzzle.cu"))?);
        Puzzle::parse(&workspace::name_of(folder), &toml, &cu)
            .map_err(anyhow::Error::msg)
            .with_context(|| format!("{} cannot be used", folder.display()))
    };
    folders(root)?.iter().map(read).collect()
}

/// Each puzzle by its folder's name, as `crates/live` takes it: the description, the kernel, and
/// the PTX of all answers.
///
/// # Errors
///
/// When a file cannot be read.
pub fn delivered(root: &Path) -> Result<BTreeMap<String, Value>> {
    let delivered = |folder: &PathBuf| {
        let name = workspace::name_of(folder);
        let answers = puzzle::find(&name);
        let answers = answers.with_context(|| {
            format!("{} was not there when this program was built", folder.display())
        })?;
        let modules: BTreeMap<&str, String> = answers
            .compiled()
            .filter_map(|name| Some((name, answers.ptx(name)?.text().to_owned())))
            .collect();
        let description: Value = toml::from_str(&text(&folder.join("puzzle.toml"))?)
            .with_context(|| format!("{} cannot be used", folder.display()))?;
        let kernel = text(&folder.join("puzzle.cu"))?;
        let puzzle = json!({
            "folder": name,
            "description": description,
            "kernel": kernel,
            "modules": modules,
        });
        Ok((name, puzzle))
    };
    folders(root)?.iter().map(delivered).collect()
}

/// None where there is no such folder, as in a book of its own.
fn folders(root: &Path) -> Result<Vec<PathBuf>> {
    let all = root.join(FOLDER);
    let mut folders = if all.is_dir() { paths(&all)? } else { Vec::new() };
    folders.retain(|path| path.is_dir());
    Ok(folders)
}

fn paths(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

fn text(path: &Path) -> Result<String> {
    let text = fs::read_to_string(path);
    Ok(text.with_context(|| format!("{} cannot be read", path.display()))?.replace('\r', ""))
}
