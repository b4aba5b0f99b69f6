//! The notebooks: their format, a run without a browser, and the comparison of two runs.

pub mod clean;
pub mod compare;
pub mod execute;
pub mod exercises;
pub mod format;
pub mod language;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use crate::workspace;

/// All notebooks in `folder`, in the order of their names.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    workspace::files(folder, "ipynb", 1)
}
