//! The folder that contains the reader's kernels.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use lesson::files;
use puzzle::Puzzle;

use super::progress::Progress;

/// The folder that contains the reader's kernels, `01-guard.cu` and so on, and the record of solved
/// puzzles.
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Refers to the folder at this path, which is created when something is written.
    pub fn new(path: &Path) -> Folder {
        Folder { path: path.to_owned() }
    }

    /// Returns the path of the reader's file for a puzzle.
    pub fn file(&self, puzzle: &Puzzle) -> PathBuf {
        self.path.join(format!("{}.cu", puzzle.folder))
    }

    /// Reads the reader's kernel.
    pub fn source(&self, puzzle: &Puzzle) -> lesson::Result<String> {
        let path = self.file(puzzle);
        let failed = |error| format!("cannot read {}: {error}", path.display());
        Ok(fs::read_to_string(&path).map_err(failed)?)
    }

    /// Writes the kernel with its hole, unless the file exists already. Returns true if it was
    /// written.
    pub fn begin(&self, puzzle: &Puzzle) -> lesson::Result<bool> {
        self.make()?;
        let path = self.file(puzzle);
        let opened = OpenOptions::new().write(true).create_new(true).open(&path);
        match opened.and_then(|mut file| file.write_all(puzzle.skeleton().as_bytes())) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(format!("cannot write {}: {error}", path.display()).into()),
        }
    }

    /// Writes the kernel with its hole again. A file that the reader has changed is renamed, and
    /// its new path is returned.
    pub fn reset(&self, puzzle: &Puzzle) -> lesson::Result<Option<PathBuf>> {
        let path = self.file(puzzle);
        // A file that is not text counts as changed.
        let changed = match fs::read(&path) {
            Ok(bytes) => bytes != puzzle.skeleton().as_bytes(),
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            Err(error) => return Err(format!("cannot read {}: {error}", path.display()).into()),
        };
        let renamed = changed.then(|| self.free_name(puzzle));
        if let Some(renamed) = &renamed {
            let failed = |error| {
                format!("cannot rename {} to {}: {error}", path.display(), renamed.display())
            };
            fs::rename(&path, renamed).map_err(failed)?;
        }
        self.begin(puzzle)?;
        Ok(renamed)
    }

    /// Returns the first unused name of `01-guard.1.cu`, `01-guard.2.cu`, …
    fn free_name(&self, puzzle: &Puzzle) -> PathBuf {
        let name = |number: u32| self.path.join(format!("{}.{number}.cu", puzzle.folder));
        let mut number = 1;
        while name(number).exists() {
            number += 1;
        }
        name(number)
    }

    /// Reads the reader's progress.
    pub fn progress(&self) -> lesson::Result<Progress> {
        let path = self.progress_file();
        match fs::read_to_string(&path) {
            Ok(text) => Progress::read(&text).map_err(|error| {
                let advice = "Repair it, or delete it to begin anew; your kernels stay.";
                format!(
                    "{} is damaged: {error}. It records which puzzles are solved. {advice}",
                    path.display()
                )
                .into()
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Progress::default()),
            Err(error) => Err(format!("cannot read {}: {error}", path.display()).into()),
        }
    }

    /// Saves the reader's progress.
    pub fn save(&self, progress: &Progress) -> lesson::Result {
        self.make()?;
        let path = self.progress_file();
        let failed = |error| format!("cannot write {}: {error}", path.display());
        Ok(files::write(&path, progress.text()?).map_err(failed)?)
    }

    fn progress_file(&self) -> PathBuf {
        self.path.join("progress.json")
    }

    fn make(&self) -> lesson::Result {
        let failed = |error| format!("cannot make the folder {}: {error}", self.path.display());
        Ok(fs::create_dir_all(&self.path).map_err(failed)?)
    }
}
