//! The kernels of Jupyter: evcxr for Rust, and for Python ipykernel, which comes with JupyterLab.

use fs_err as fs;
use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use lesson::output::println;
use serde_json::json;
use xshell::cmd;

use super::environment::Lab;
use crate::{wheel, workspace};

/// The version that is installed on a machine without evcxr.
const VERSION: &str = "0.22.0";

/// Offline, since `cargo lab` has fetched everything: no start waits for the index. A panic drops
/// the variables, so that a cell with a panic is an error.
const SETTINGS: &str = "[evcxr]\noffline_mode = true\npreserve_vars_on_panic = false\n";

/// A notebook's link to its page opens the rendered page, and JupyterLab fetches no news.
const APPEARANCE: &str = r#"{
  "@jupyterlab/docmanager-extension:plugin": { "defaultViewers": { "markdown": "Markdown Preview" } },
  "@jupyterlab/apputils-extension:notification": { "fetchNews": "false", "checkForUpdates": false }
}
"#;

/// The program: the lab's, or else the one on the `PATH`, or else a new installation.
pub(super) fn evcxr(lab: &Lab) -> Result<PathBuf> {
    let folder = lab.folder.join("evcxr");
    let own = folder.join("bin/evcxr_jupyter").with_extension(env::consts::EXE_EXTENSION);
    if own.is_file() {
        return Ok(own);
    }
    if let Some(found) = workspace::find(&["evcxr_jupyter"]) {
        return Ok(found);
    }
    println!(
        "installing the Rust kernel evcxr_jupyter {VERSION} into {} (8 minutes on two cores)",
        folder.display()
    );
    let (building, cargo) = (folder.join("build"), workspace::cargo());
    // Cargo prints its progress. Without --locked, evcxr does not compile.
    let shell = workspace::shell(&lab.root)?;
    let install = cmd!(shell, "{cargo} install --quiet --locked evcxr_jupyter --version {VERSION}");
    let install = install.arg("--root").arg(&folder).env("CARGO_TARGET_DIR", &building);
    install.quiet().run().context(
        "evcxr_jupyter could not be installed. It comes from crates.io, which must be reachable. An evcxr_jupyter \
         from elsewhere (conda-forge has a package) is used if it is on the PATH",
    )?;
    fs::remove_dir_all(&building)?;
    Ok(own)
}

/// Registers the kernels with Jupyter, inside the environment only.
pub(super) fn register(lab: &Lab, evcxr: &Path) -> Result<()> {
    let launcher = lab.folder.join("kernel.py");
    let settings = lab.folder.join("settings");
    let spec = json!({
        "argv": [lab.python.program("python"), launcher, evcxr, "{connection_file}"],
        "display_name": "Rust",
        "language": "rust",
        "interrupt_mode": "message",
        "env": {
            "EVCXR_CONFIG_DIR": settings,
            // evcxr updates the kernel that it finds in the user's folders: it must find none.
            "JUPYTER_PATH": lab.folder.join("none"),
        },
    });
    let python = python(lab);
    let versions = fs::read_to_string(lab.root.join("Cargo.lock")).context("no Cargo.lock")?;
    let spec = serde_json::to_string_pretty(&spec)?;
    let shared = lab.folder.join("venv/share/jupyter");
    let files = [
        (launcher, include_str!("kernel.py")),
        (settings.join("evcxr.toml"), SETTINGS),
        (lab.folder.join("Cargo.lock"), &versions),
        (shared.join("kernels/rust/kernel.json"), &spec),
        (shared.join("kernels/python3/kernel.json"), &serde_json::to_string_pretty(&python)?),
        (shared.join("lab/settings/overrides.json"), APPEARANCE),
    ];
    for (path, text) in files {
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        workspace::write(&path, text)?;
    }
    Ok(())
}

/// The Python of the lab. It finds PyTorch and this project's package in the folder of
/// `cargo xtask wheel --check`.
fn python(lab: &Lab) -> serde_json::Value {
    let packages = wheel::packages(&lab.root);
    json!({
        "argv": [lab.python.program("python"), "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "Python 3",
        "language": "python",
        "env": packages.map_or(json!({}), |folder| json!({ "PYTHONPATH": folder })),
    })
}
