//! What all notebooks need, compiled once before the first of them is opened.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use super::Lab;
use crate::notebooks::execute;
use crate::notebooks::format::{Cell, Notebook};

/// The first cell of a notebook without a chapter.
const CODE: &str =
    ":dep linrec = { path = \"..\", features = [\"notebook\"] }\nlinrec::notebook::VERSION";

/// What was built with what, written last.
const STAMP: &str = "kept/base.txt";

/// Whether that has been done in the lab's folder, for whichever version of the library.
pub(super) fn is_built(folder: &Path) -> bool {
    folder.join(STAMP).is_file()
}

/// Fetches the workspace's dependencies and lets the kernel compile the library, unless that has been done.
pub(super) fn build(lab: &Lab, evcxr: &Path) -> Result<()> {
    let stamp = lab.folder.join(STAMP);
    let locked = fs::read_to_string(lab.folder.join("Cargo.lock")).unwrap_or_default();
    let built_with = format!("{}\n{}\n{CODE}\n{locked}", evcxr.display(), compiler()?);
    if fs::read_to_string(&stamp).ok().as_deref() == Some(&*built_with) {
        return Ok(());
    }
    println!("fetching the dependencies");
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // Of all systems: without the network, cargo wants to know even those that it will not compile.
    let status = Command::new(cargo)
        .current_dir(&lab.root)
        .args(["fetch", "--quiet", "--locked"])
        .status()
        .context("cargo cannot be started")?;
    if !status.success() {
        bail!("the dependencies could not be fetched ({status}); crates.io must be reachable");
    }
    println!("compiling the library for the notebooks (a minute on two cores)");
    let kept = lab.folder.join("kept/base");
    if kept.exists() {
        fs::remove_dir_all(&kept).with_context(|| format!("{} stays", kept.display()))?;
    }
    let start = Instant::now();
    let notebook = Notebook::new(vec![Cell::code("base", CODE)]);
    // No file of this name is read; its folder is where the code's paths begin.
    let run = execute::run(lab, &lab.root.join("notebooks/base.ipynb"), &notebook)?;
    if let Some(error) = run.error {
        bail!("the library could not be compiled for the notebooks:\n{}", error.message);
    }
    println!("  {:.0} s", start.elapsed().as_secs_f64());
    fs::write(&stamp, built_with).with_context(|| format!("{} cannot be written", stamp.display()))
}

/// The compiler, in its own words.
fn compiler() -> Result<String> {
    let output = Command::new("rustc").arg("-Vv").output().context("rustc cannot be started")?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
