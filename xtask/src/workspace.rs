//! Where things are in the workspace.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The root of the workspace: the nearest folder at or above the current one that holds `book.toml`.
///
/// # Errors
///
/// When there is none.
pub fn root() -> Result<PathBuf> {
    let here = env::current_dir().context("the current folder cannot be read")?;
    here.ancestors()
        .find(|folder| folder.join("book.toml").is_file())
        .map(Path::to_owned)
        .with_context(|| format!("no book.toml in {} or above it", here.display()))
}

/// The folder that takes what is built: `target`, or the one that `CARGO_TARGET_DIR` names.
#[must_use]
pub fn target(root: &Path) -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |named| root.join(named))
}

/// The cargo that runs this program, or else the one on the `PATH`.
#[must_use]
pub fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// The folder `NN-name` of chapter `number` inside `chapters`.
///
/// # Errors
///
/// When there is no such chapter, or more than one.
pub fn chapter_folder(chapters: &Path, number: u32) -> Result<PathBuf> {
    let prefix = format!("{number:02}-");
    let entries = chapters
        .read_dir()
        .with_context(|| format!("the folder {} cannot be read", chapters.display()))?;
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_dir() && name_of(path).starts_with(&prefix))
        .collect();
    match found.len() {
        0 => bail!("there is no chapter {number}: no folder {prefix}… in {}", chapters.display()),
        1 => Ok(found.remove(0)),
        _ => bail!("several folders in {} begin with {prefix}", chapters.display()),
    }
}

/// The last component of `path` as text, or nothing where it has none.
#[must_use]
pub fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
