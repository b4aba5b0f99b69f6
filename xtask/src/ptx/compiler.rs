//! The pinned NVRTC, in a Python environment of its own.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use linrec::device::nvrtc::Nvrtc;

/// The package and its files' hashes.
const REQUIREMENTS: &str = include_str!("requirements.txt");

/// NVRTC of exactly `version`, from `target/nvrtc`; installed there first if need be.
pub(super) fn pinned(root: &Path, version: &str) -> Result<Nvrtc> {
    let environment = target(root).join("nvrtc");
    // The list of what is installed, written last: an environment without it is not whole.
    let installed = environment.join("requirements.txt");
    if fs::read_to_string(&installed).ok().as_deref() != Some(REQUIREMENTS) {
        install(&environment)?;
        fs::write(&installed, REQUIREMENTS)?;
    }
    let nvrtc = Nvrtc::load_below(&environment)
        .with_context(|| format!("delete {} and try again", environment.display()))?;
    let (major, minor) = nvrtc.version();
    ensure!(
        version == format!("{major}.{minor}"),
        "kernels/shipped.toml asks for NVRTC {version}, and xtask/src/ptx/requirements.txt brings {major}.{minor}"
    );
    Ok(nvrtc)
}

fn target(root: &Path) -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

fn install(environment: &Path) -> Result<()> {
    if cfg!(target_os = "macos") {
        bail!("there is no NVRTC for macOS: run `cargo xtask ptx` on Linux or Windows");
    }
    println!("installing NVRTC into {}", environment.display());
    let python = if cfg!(windows) { "python" } else { "python3" };
    run(
        Command::new(python).args(["-m", "venv", "--clear"]).arg(environment),
        "Python 3 with its module venv is needed (on Debian the packages python3 and python3-venv)",
    )?;
    let requirements = environment.join("wanted.txt");
    fs::write(&requirements, REQUIREMENTS)?;
    let inside = if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" };
    run(
        Command::new(environment.join(inside))
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
            .args(["--only-binary=:all:", "--no-deps", "--require-hashes", "-r"])
            .arg(&requirements),
        "NVRTC is installed from the Python package index, which must be reachable; its package exists \
         for Linux and Windows on x86-64",
    )
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
