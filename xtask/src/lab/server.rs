//! JupyterLab itself.

use std::process::Command;

use anyhow::{Context, Result, bail};
use lesson::output::println;

use super::Lab;

/// The command that runs JupyterLab on the notebooks, for this machine only, on `port` or the next
/// that is free.
#[must_use]
pub fn command(lab: &Lab, port: u16) -> Command {
    let mut command = lab.command("jupyter");
    command
        .args(["lab", "--ServerApp.ip=127.0.0.1", "--ServerApp.default_url=/lab/tree/notebooks"])
        .arg(format!("--ServerApp.port={port}"))
        .arg(format!("--ServerApp.root_dir={}", lab.root.display()))
        // Copies of what was saved last do not lie between the notebooks.
        .arg(format!("--FileCheckpoints.checkpoint_dir={}", lab.folder.join("saved").display()))
        // It asks nobody whether there is something new.
        .arg("--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate");
    command
}

/// Runs JupyterLab until it is stopped.
///
/// # Errors
///
/// When it cannot be started or ends with an error.
pub fn serve(lab: &Lab, port: u16, open: bool) -> Result<()> {
    let mut command = command(lab, port);
    if !open {
        command.arg("--no-browser");
    }
    println!("JupyterLab runs on 127.0.0.1 until you stop it with Ctrl-C");
    let status = command.status().context("JupyterLab cannot be started")?;
    if !status.success() {
        bail!("JupyterLab ended with an error ({status})");
    }
    Ok(())
}
