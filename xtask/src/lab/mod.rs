//! `cargo lab`: JupyterLab with a Rust kernel, in `target/lab` and nowhere else.

mod base;
mod kernel;
mod server;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use lesson::output::println;

use linrec::device::nvrtc::Nvrtc;

use crate::ptx;
use crate::python::{Environment, Requirements};
use crate::workspace;

pub use server::{command, serve};

/// JupyterLab, and what runs notebooks without it, for CPython 3.11 to 3.14.
const JUPYTER: Requirements = Requirements {
    packages: include_str!("requirements.txt"),
    advice: "JupyterLab is installed from the Python package index, which must be reachable, for Python 3.11 or \
             later. Without it: the pages (`cargo book --open`) and the chapters (`cargo run --release -- 1`) need \
             Rust only, and an editor that runs Jupyter notebooks needs no more than \
             `cargo install --locked evcxr_jupyter`",
};

/// What is installed for the notebooks.
pub struct Lab {
    root: PathBuf,
    folder: PathBuf,
    python: Environment,
}

impl Lab {
    /// The lab of the workspace at `root`; what is missing of it is installed first, which is told.
    ///
    /// # Errors
    ///
    /// When something cannot be installed, with what can be done about it.
    pub fn prepare(root: &Path) -> Result<Self> {
        let folder = workspace::target(root).join("lab");
        fs::create_dir_all(&folder)
            .with_context(|| format!("{} cannot be made", folder.display()))?;
        // The kernel's folders are named by whole paths.
        let folder = folder.canonicalize()?;
        let python = Environment::with(&folder.join("venv"), &JUPYTER, || {
            println!("installing JupyterLab into {} (half a minute)", folder.display());
        })?;
        let lab = Lab { root: root.canonicalize()?, folder, python };
        offer_nvrtc(root);
        let evcxr = kernel::evcxr(&lab)?;
        kernel::register(&lab, &evcxr)?;
        base::build(&lab, &evcxr)?;
        Ok(lab)
    }

    /// The lab of the workspace at `root` if [`Lab::prepare`] has made it; nothing is installed or
    /// compiled.
    #[must_use]
    pub fn found(root: &Path) -> Option<Self> {
        let folder = workspace::target(root).join("lab").canonicalize().ok()?;
        base::is_built(&folder).then_some(())?;
        let python = Environment::found(&folder.join("venv"))?;
        Some(Lab { root: root.canonicalize().ok()?, folder, python })
    }

    /// The root of the workspace, as a whole path.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What stands for this machine's folders in what is shown to others, the inner ones first.
    #[must_use]
    pub fn folders(&self) -> Vec<(String, &'static str)> {
        let within = |folder: &Path, separator| format!("{}{separator}", folder.display());
        let separator = std::path::MAIN_SEPARATOR;
        vec![
            (within(&self.folder, separator), "target/lab/"),
            (within(&self.root, separator), ""),
            (self.root.display().to_string(), "."),
        ]
    }

    /// A program of the Python environment, with Jupyter's own files below `target/lab`.
    #[must_use]
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.python.program(program));
        for (variable, folder) in self.jupyter_folders() {
            command.env(variable, folder);
        }
        command.current_dir(&self.root);
        command
    }

    /// Where Jupyter would look and write outside of the environment.
    fn jupyter_folders(&self) -> [(&'static str, OsString); 5] {
        let below = |name: &str| self.folder.join("jupyter").join(name).into_os_string();
        [
            ("JUPYTER_CONFIG_DIR", below("config")),
            ("JUPYTER_DATA_DIR", below("data")),
            ("JUPYTER_RUNTIME_DIR", below("runtime")),
            ("JUPYTERLAB_SETTINGS_DIR", below("settings")),
            ("JUPYTERLAB_WORKSPACES_DIR", below("workspaces")),
        ]
    }
}

/// Installs NVRTC, unless this machine has one. Without it the notebooks work, but for changes to a
/// kernel.
fn offer_nvrtc(root: &Path) {
    if Nvrtc::find().is_ok() {
        return;
    }
    if let Err(error) = ptx::install(root) {
        println!(
            "{error:#}\nwithout NVRTC, a notebook runs the shipped kernel in place of one that you change"
        );
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    /// The list that is installed has a version and hashes for each package, and was made of the
    /// one that is written.
    #[test]
    fn every_package_is_pinned_with_its_hashes() {
        let list = include_str!("requirements.txt").replace("\\\n", " ");
        let mut pinned = BTreeSet::new();
        for line in list.lines().filter(|line| !line.starts_with('#')) {
            let (package, hashes) = line.split_once("--hash=sha256:").expect(line);
            let is_hash =
                |hash: &str| hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
            assert!(hashes.split("--hash=sha256:").all(|hash| is_hash(hash.trim())), "{line}");
            let package = package.split(';').next().unwrap_or_default().trim();
            assert!(package.contains("=="), "{line}");
            pinned.insert(package);
        }
        let wanted = include_str!("requirements.in").lines().filter(|line| !line.starts_with('#'));
        for package in wanted {
            assert!(pinned.contains(package), "{package}: renew requirements.txt");
        }
    }
}
