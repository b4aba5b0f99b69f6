//! Starts JupyterLab.

use std::process::Command;

use anyhow::{Context, Result};
use lesson::output::println;

use super::environment::Lab;
use crate::workspace;

/// The command that runs JupyterLab on the notebooks, for this machine only, on `port` or the next
/// free one.
#[must_use]
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
///
/// # Errors
///
/// If it cannot be started or ends with an error.
pub fn serve(lab: &Lab, port: u16, open: bool) -> Result<()> {
    let mut command = command(lab, port);
    if !open {
        command.arg("--no-browser");
    }
    println!("JupyterLab runs on 127.0.0.1 until you stop it with Ctrl-C");
    workspace::run(&mut command).context("JupyterLab failed")
}
