//! `cargo lab`: JupyterLab with a Rust kernel, in `target/lab` and nowhere else.

mod base;
mod environment;
mod kernel;
mod run;

use fs_err as fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use lesson::output::println;
use linrec::device::nvrtc::Nvrtc;

use crate::ptx;
use crate::python::{Environment, Requirements};
use crate::workspace;

pub use environment::Lab;
pub use run::run;

/// JupyterLab, and the client that runs notebooks without it, for CPython 3.11 to 3.14.
const JUPYTER: Requirements = Requirements {
    packages: include_str!("requirements.txt"),
    advice: "JupyterLab is installed from the Python package index, which must be reachable, for Python 3.11 or \
             later. Without it: the pages (`cargo book --open`) and the chapters (`cargo run --release -- 1`) need \
             Rust only, and an editor that runs Jupyter notebooks needs no more than \
             `cargo install --locked evcxr_jupyter`",
};

/// Prepares the lab of the workspace at `root`: prints and installs what is missing. An error has
/// advice on how to go on without it.
pub fn prepare(root: &Path) -> Result<Lab> {
    let folder = workspace::target(root).join("lab");
    fs::create_dir_all(&folder)?;
    // The kernel names its folders by absolute paths.
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

/// The command that runs JupyterLab on the notebooks, for this machine only, on `port` or the next
/// free one.
pub fn command(lab: &Lab, port: u16) -> Command {
    let mut command = lab.command("jupyter");
    command
        .args(["lab", "--ServerApp.ip=127.0.0.1", "--ServerApp.default_url=/lab/tree/notebooks"])
        .arg(format!("--ServerApp.port={port}"))
        .arg(format!("--ServerApp.root_dir={}", lab.root.display()))
        // Jupyter's copies of the last saved notebooks do not go between the notebooks.
        .arg(format!("--FileCheckpoints.checkpoint_dir={}", lab.folder.join("saved").display()))
        // JupyterLab does not look for a new version.
        .arg("--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate");
    command
}

/// Runs JupyterLab until it is stopped.
pub fn serve(lab: &Lab, port: u16, open: bool) -> Result<()> {
    let mut command = command(lab, port);
    if !open {
        command.arg("--no-browser");
    }
    println!("JupyterLab runs on 127.0.0.1 until you stop it with Ctrl-C");
    let status = command.status().context("JupyterLab cannot be started")?;
    ensure!(status.success(), "JupyterLab failed: {status}");
    Ok(())
}

/// Installs NVRTC, unless this machine has it. Without it, only changes to kernels do not work.
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
    /// The generated list has a version and hashes for each package, and has the packages of the
    /// list that people write.
    #[test]
    fn every_package_is_pinned_with_its_hashes() {
        let line = crate::pattern(r"^(\S+==\S+)(?: ;.*?)?(?:\s+--hash=sha256:[0-9a-f]{64})+\s*$");
        let list = include_str!("requirements.txt").replace("\\\n", " ");
        let lines = list.lines().filter(|line| !line.starts_with('#'));
        let pinned: Vec<_> =
            lines.map(|text| line.captures(text).expect(text)[1].to_owned()).collect();
        let wanted = include_str!("requirements.in").lines().filter(|line| !line.starts_with('#'));
        for package in wanted {
            assert!(
                pinned.iter().any(|pinned| pinned == package),
                "{package}: renew requirements.txt"
            );
        }
    }
}
