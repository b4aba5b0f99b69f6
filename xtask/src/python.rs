//! Python environments of our own, below `target`: nothing is installed anywhere else.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The list of an environment's packages, written when all of them are installed.
const INSTALLED: &str = "installed.txt";

/// A virtual environment with packages in it.
pub struct Environment {
    folder: PathBuf,
}

impl Environment {
    /// The environment in `folder` with the packages of `list`. One that has them already is left as it is;
    /// otherwise it is made anew, after `announce` was called.
    ///
    /// # Errors
    ///
    /// When Python, its module `venv` or the package index is missing; the message ends with the list's advice.
    pub fn with(folder: &Path, list: &Requirements, announce: impl FnOnce()) -> Result<Self> {
        let environment = Environment { folder: folder.to_owned() };
        let packages = format!("{}{}", list.packages, list.constraints);
        let installed = fs::read_to_string(folder.join(INSTALLED)).ok();
        if installed.as_deref() != Some(&*packages) {
            announce();
            environment.install(list)?;
            environment.write(INSTALLED, &packages)?;
        }
        Ok(environment)
    }

    /// The environment in `folder` if one is there, with whatever packages.
    #[must_use]
    pub fn found(folder: &Path) -> Option<Self> {
        folder.join(INSTALLED).is_file().then(|| Environment { folder: folder.to_owned() })
    }

    /// The program of this name in the environment: `python`, `jupyter`.
    #[must_use]
    pub fn program(&self, name: &str) -> PathBuf {
        if cfg!(windows) {
            self.folder.join("Scripts").join(format!("{name}.exe"))
        } else {
            self.folder.join("bin").join(name)
        }
    }

    fn install(&self, list: &Requirements) -> Result<()> {
        let python = if cfg!(windows) { "python" } else { "python3" };
        let needed = "Python 3 with its module venv is needed (on Debian the packages python3 and python3-venv)";
        run(
            Command::new(python).args(["-m", "venv", "--clear"]).arg(&self.folder),
            &format!("{needed}. {}", list.advice),
        )?;
        let wanted = self.write("wanted.txt", list.packages)?;
        let constraints = self.write("constraints.txt", list.constraints)?;
        run(
            Command::new(self.program("python"))
                .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
                .arg("--only-binary=:all:")
                .args(list.options)
                .arg("--constraint")
                .arg(&constraints)
                .arg("--requirement")
                .arg(&wanted),
            list.advice,
        )
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.folder.join(name);
        fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))?;
        Ok(path)
    }
}

/// What an environment is to hold.
pub struct Requirements {
    /// The packages and their versions, in pip's format.
    pub packages: &'static str,
    /// The versions of what these need in turn, where those are not to be left open.
    pub constraints: &'static str,
    /// What pip is told besides.
    pub options: &'static [&'static str],
    /// What is needed for it, as the end of the message when it fails.
    pub advice: &'static str,
}

/// Runs a command; what it printed is part of the error, and so is `advice`.
fn run(command: &mut Command, advice: &str) -> Result<()> {
    let line = format!("{command:?}");
    let output = command.output().with_context(|| format!("{line} could not be run; {advice}"))?;
    if !output.status.success() {
        let said = [output.stdout, output.stderr].concat();
        bail!("{line} failed; {advice}\n{}", String::from_utf8_lossy(&said).trim());
    }
    Ok(())
}
