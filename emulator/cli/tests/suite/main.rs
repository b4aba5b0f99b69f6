//! The command as a shell sees it: what it prints, and how it ends.

mod bad;
mod run;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A folder with kernels, and the command in it.
pub(crate) struct Shell {
    folder: TempDir,
}

/// How the command ended, and what it said.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) error: String,
}

impl Shell {
    pub(crate) fn new() -> Shell {
        let folder = tempfile::tempdir().expect("a folder for tests");
        fs::write(folder.path().join("kernels.ptx"), include_str!("kernels.ptx"))
            .expect("room for it");
        Shell { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).expect("room for it");
    }

    /// Runs the command with these words as arguments, those with blanks included.
    pub(crate) fn simt(&self, arguments: &[&str]) -> Ended {
        simt(self.folder.path(), arguments)
    }

    /// `simt run kernels.ptx …`, cut at the blanks.
    pub(crate) fn run(&self, arguments: &str) -> Ended {
        let words: Vec<_> =
            ["run", "kernels.ptx"].into_iter().chain(arguments.split_whitespace()).collect();
        self.simt(&words)
    }
}

fn simt(folder: &Path, arguments: &[&str]) -> Ended {
    let output =
        Command::new(env!("CARGO_BIN_EXE_simt")).current_dir(folder).args(arguments).output();
    let output = output.expect("the command is there");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    // Who panics ends with 101.
    let code = output.status.code().expect("no signal ends it");
    Ended { code, out: text(&output.stdout), error: text(&output.stderr) }
}
