//! The notebooks: their format, a run without a browser, and the comparison of two runs.

pub mod clean;
pub mod compare;
pub mod execute;
pub mod exercises;
pub mod format;
pub mod language;

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::workspace;

/// All notebooks in `folder`, in the order of their names.
///
/// # Errors
///
/// If the folder cannot be read.
pub fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = workspace::entries(folder)?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "ipynb"));
    Ok(files)
}
