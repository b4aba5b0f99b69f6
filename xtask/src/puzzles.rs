//! Reads the folder `puzzles/`: the descriptions, and each puzzle in one piece for the book.

use fs_err as fs;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use puzzle::Puzzle;
use serde_json::{Value, json};

use crate::workspace;

const FOLDER: &str = "puzzles";

/// The descriptions in `puzzles/`, in their order.
pub fn read(root: &Path) -> Result<Vec<Puzzle>> {
    let read = |folder: &PathBuf| {
        let (toml, cu) = (text(&folder.join("puzzle.toml"))?, text(&folder.join("puzzle.cu"))?);
        Puzzle::parse(&workspace::name_of(folder), &toml, &cu)
            .map_err(anyhow::Error::msg)
            .with_context(|| format!("{} cannot be used", folder.display()))
    };
    folders(root)?.iter().map(read).collect()
}

/// The puzzles by the names of their folders, in the form of `crates/live`: the description, the
/// kernel, and the PTX of all answers.
pub fn delivered(root: &Path) -> Result<BTreeMap<String, Value>> {
    let delivered = |folder: &PathBuf| {
        let name = workspace::name_of(folder);
        let answers = puzzle::find(&name);
        let answers =
            answers.with_context(|| format!("{} is newer than this program", folder.display()))?;
        let modules: BTreeMap<&str, String> = answers
            .compiled()
            .filter_map(|name| Some((name, answers.ptx(name)?.text().to_owned())))
            .collect();
        let description: Value = toml::from_str(&text(&folder.join("puzzle.toml"))?)
            .with_context(|| format!("{} cannot be used", folder.display()))?;
        let kernel = text(&folder.join("puzzle.cu"))?;
        let puzzle = json!({"folder": name, "description": description, "kernel": kernel, "modules": modules});
        Ok((name, puzzle))
    };
    folders(root)?.iter().map(delivered).collect()
}

/// The folders of the puzzles. A book for tests has none.
fn folders(root: &Path) -> Result<Vec<PathBuf>> {
    let all = root.join(FOLDER);
    let mut folders = if all.is_dir() { workspace::entries(&all)? } else { Vec::new() };
    folders.retain(|path| path.is_dir());
    Ok(folders)
}

fn text(path: &Path) -> Result<String> {
    Ok(fs::read_to_string(path)?.replace('\r', ""))
}
