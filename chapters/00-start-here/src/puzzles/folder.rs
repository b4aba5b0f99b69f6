//! The folder of the reader's kernels.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use lesson::files;
use puzzle::Puzzle;

use super::progress::Progress;

/// The folder that holds the reader's kernels, `01-guard.cu` and so on, and the record of what is
/// solved.
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// The folder at this path; it is made when something is written.
    pub fn new(path: &Path) -> Folder {
        Folder { path: path.to_owned() }
    }

    /// The reader's file for a puzzle.
    pub fn file(&self, puzzle: &Puzzle) -> PathBuf {
        self.path.join(format!("{}.cu", puzzle.folder))
    }

    /// What the reader has written.
    pub fn source(&self, puzzle: &Puzzle) -> lesson::Result<String> {
        let path = self.file(puzzle);
        let said = |error| format!("cannot read {}: {error}", path.display());
        Ok(fs::read_to_string(&path).map_err(said)?)
    }

    /// Puts the kernel with its hole there, unless there is a file already; whether it was put
    /// there.
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

    /// Puts the kernel with its hole there again. What the reader had changed is renamed; where it
    /// is then.
    pub fn reset(&self, puzzle: &Puzzle) -> lesson::Result<Option<PathBuf>> {
        let path = self.file(puzzle);
        // A file that is no text counts as changed.
        let changed = match fs::read(&path) {
            Ok(bytes) => bytes != puzzle.skeleton().as_bytes(),
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            Err(error) => return Err(format!("cannot read {}: {error}", path.display()).into()),
        };
        let kept = changed.then(|| self.free_name(puzzle));
        if let Some(kept) = &kept {
            let said =
                |error| format!("cannot rename {} to {}: {error}", path.display(), kept.display());
            fs::rename(&path, kept).map_err(said)?;
        }
        self.begin(puzzle)?;
        Ok(kept)
    }

    /// The first of `01-guard.1.cu`, `01-guard.2.cu`, … that is not there.
    fn free_name(&self, puzzle: &Puzzle) -> PathBuf {
        let name = |number: u32| self.path.join(format!("{}.{number}.cu", puzzle.folder));
        let mut number = 1;
        while name(number).exists() {
            number += 1;
        }
        name(number)
    }

    /// What is solved.
    pub fn progress(&self) -> lesson::Result<Progress> {
        let path = self.progress_file();
        match fs::read_to_string(&path) {
            Ok(text) => Progress::read(&text).map_err(|error| {
                let advice = "Mend it, or delete it to begin anew: your kernels stay.";
                format!(
                    "{} is damaged: {error}. It keeps which puzzles are solved. {advice}",
                    path.display()
                )
                .into()
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Progress::default()),
            Err(error) => Err(format!("cannot read {}: {error}", path.display()).into()),
        }
    }

    /// Keeps what is solved.
    pub fn keep(&self, progress: &Progress) -> lesson::Result {
        self.make()?;
        let path = self.progress_file();
        let said = |error| format!("cannot write {}: {error}", path.display());
        Ok(files::write(&path, progress.text()?).map_err(said)?)
    }

    fn progress_file(&self) -> PathBuf {
        self.path.join("progress.json")
    }

    fn make(&self) -> lesson::Result {
        let said = |error| format!("cannot make the folder {}: {error}", self.path.display());
        Ok(fs::create_dir_all(&self.path).map_err(said)?)
    }
}
