//! Python environments below `target`. Nothing is installed anywhere else, and only files whose
//! hashes are committed.
//!
//! pip does it all. `uv` 0.13 installs the lab's packages in 4 s of a processor's time, and pip in
//! 25 s. But pip would have to install `uv` first (24 MB), each program would write its bytecode at
//! its first start, and this file would be longer.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::workspace;

/// The file with the list of the packages, which is written when all of them are installed.
const INSTALLED: &str = "installed.txt";

/// A virtual environment with packages in it.
pub struct Environment {
    folder: PathBuf,
}

impl Environment {
    /// The environment in `folder` with the packages of `list`. Unless it has them already, this
    /// calls `announce` and makes it anew.
    pub fn with(folder: &Path, list: &Requirements, announce: impl FnOnce()) -> Result<Self> {
        let environment = Environment { folder: folder.to_owned() };
        let installed = fs::read_to_string(folder.join(INSTALLED)).ok();
        if installed.as_deref() != Some(list.packages) {
            announce();
            environment.install(list)?;
            workspace::write(&folder.join(INSTALLED), list.packages)?;
        }
        Ok(environment)
    }

    /// The environment in `folder`, if there is one, with any packages.
    pub fn found(folder: &Path) -> Option<Self> {
        folder.join(INSTALLED).is_file().then(|| Environment { folder: folder.to_owned() })
    }

    /// The program of this name in the environment: `python`, `jupyter`.
    pub fn program(&self, name: &str) -> PathBuf {
        if cfg!(windows) {
            self.folder.join("Scripts").join(format!("{name}.exe"))
        } else {
            self.folder.join("bin").join(name)
        }
    }

    /// The folder of its packages.
    pub fn packages(&self) -> Option<PathBuf> {
        if cfg!(windows) {
            return Some(self.folder.join("Lib").join("site-packages"));
        }
        let versions = self.folder.join("lib").read_dir().ok()?;
        let mut packages =
            versions.filter_map(|version| Some(version.ok()?.path().join("site-packages")));
        packages.find(|folder| folder.is_dir())
    }

    fn install(&self, list: &Requirements) -> Result<()> {
        let python = if cfg!(windows) { "python" } else { "python3" };
        let needed = "Python 3 with its module venv is needed (on Debian the packages python3 and python3-venv)";
        // -I: Python loads no module from the current folder, nor from folders that variables or
        // the user's settings name.
        run(
            Command::new(python).args(["-I", "-m", "venv", "--clear"]).arg(&self.folder),
            &format!("{needed}. {}", list.advice),
        )?;
        let wanted = self.folder.join("wanted.txt");
        workspace::write(&wanted, list.packages)?;
        run(
            Command::new(self.program("python"))
                .args(["-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
                .args(["--only-binary=:all:", "--require-hashes", "--requirement"])
                .arg(&wanted),
            list.advice,
        )
    }
}

/// The packages of an environment.
pub struct Requirements {
    /// All packages, also the ones that others need, with their versions and the hashes of their
    /// files, in pip's format.
    pub packages: &'static str,
    /// The end of an error message: what the installation needs.
    pub advice: &'static str,
}

/// Runs a command. Its output and `advice` are part of the error.
fn run(command: &mut Command, advice: &str) -> Result<()> {
    let line = format!("{command:?}");
    let output = command.output().with_context(|| format!("{line} could not be run; {advice}"))?;
    if !output.status.success() {
        let printed = [output.stdout, output.stderr].concat();
        bail!("{line} failed; {advice}\n{}", String::from_utf8_lossy(&printed).trim());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The file of a package on the disk has another hash than the list.
    #[test]
    fn a_file_with_another_hash_is_not_installed() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("tiny-1.0-py3-none-any.whl"), "").unwrap();
        let packages = format!(
            "--no-index\n--find-links {}\ntiny==1.0 --hash=sha256:{}\n",
            folder.path().display(),
            "0".repeat(64)
        );
        let list = Requirements { packages: packages.leak(), advice: "advice" };
        let environment = folder.path().join("venv");
        let error = Environment::with(&environment, &list, || {}).err().unwrap().to_string();
        assert!(error.contains("DO NOT MATCH THE HASHES") && error.contains("advice"), "{error}");
        assert!(Environment::found(&environment).is_none());
    }
}
