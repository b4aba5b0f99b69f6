//! The pinned NVRTC, in its Python environment.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use lesson::output::println;
use linrec::device::nvrtc::Nvrtc;

use crate::python::{Environment, Requirements};
use crate::workspace;

/// The package, and the hashes of its files.
const NVRTC: Requirements = Requirements {
    packages: include_str!("requirements.txt"),
    advice: "NVRTC is installed from the Python package index, which must be reachable; its package exists \
             for Linux and Windows on x86-64",
};

/// Installs the pinned NVRTC into `target/nvrtc`, where the library finds it, unless it is
/// installed.
pub fn install(root: &Path) -> Result<PathBuf> {
    if cfg!(target_os = "macos") {
        bail!("there is no NVRTC for macOS");
    }
    let folder = workspace::target(root).join("nvrtc");
    Environment::with(&folder, &NVRTC, || println!("installing NVRTC into {}", folder.display()))?;
    Ok(folder)
}

/// Loads NVRTC of exactly `version` from `target/nvrtc`, and installs it there first if necessary.
#[allow(unsafe_code)]
pub(super) fn pinned(root: &Path, version: &str) -> Result<Nvrtc> {
    let folder = install(root).context("the kernels are compiled on Linux or Windows")?;
    // SAFETY: (1) the folder holds files with pinned hashes, and no other library than NVRTC;
    // (2) whoever can change it can change this program, which is in the same `target`.
    let nvrtc = unsafe { Nvrtc::load_below(&folder) }
        .with_context(|| format!("delete {} and try again", folder.display()))?;
    let (major, minor) = nvrtc.version();
    ensure!(
        version == format!("{major}.{minor}"),
        "kernels/shipped.toml asks for NVRTC {version}, and xtask/src/ptx/requirements.txt brings {major}.{minor}"
    );
    Ok(nvrtc)
}
