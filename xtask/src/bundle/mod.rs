//! `cargo xtask bundle`: one folder with the tests that need an NVIDIA GPU.
//!
//! The machine with the GPU needs the driver and, for two of the steps, Python and the CUDA
//! toolkit.

mod build;

use fs_err as fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use lesson::files;

/// The bytes that the bundle must stay below.
const LIMIT: u64 = 640_000_000;

/// The scripts beside the programs. `run` runs everything.
const SCRIPTS: [&str; 5] = ["run", "tune", "common.py", "counters.py", "sanitize.py"];

/// Builds the programs and puts them with the scripts into the folder `out`, which may hold nothing
/// else; returns a sentence.
pub fn bundle(root: &Path, out: &Path) -> Result<String> {
    ensure!(
        cfg!(all(target_os = "linux", target_arch = "x86_64")),
        "the bundle is for Linux on x86-64 and is built there; this is {} on {}",
        std::env::consts::OS,
        std::env::consts::ARCH
    );
    ensure!(
        may_be_replaced(out),
        "{} exists and is no bundle; remove it, or name another folder with --out",
        out.display()
    );
    let programs = build::programs(root)?;
    let mut bytes = 0;
    files::replace_folder(out, |out| {
        let bin = out.join("bin");
        fs::create_dir(&bin)?;
        for (name, program) in &programs {
            copy(program, &bin.join(name))?;
            strip(&bin.join(name));
        }
        for script in SCRIPTS {
            copy(&root.join("crates/bench/bundle").join(script), &out.join(script))?;
        }
        bytes = size(out)?;
        ensure!(bytes < LIMIT, "the bundle has {bytes} bytes, and may have less than {LIMIT}");
        Ok(())
    })
    .with_context(|| format!("{} cannot be replaced", out.display()))?;
    let megabytes = bytes as f64 / 1e6;
    let names: Vec<_> = programs.keys().map(String::as_str).collect();
    Ok(format!(
        "bundled {} in {megabytes:.1} MB: {}\non the machine with the GPU: {}/run",
        names.join(", "),
        out.display(),
        crate::workspace::name_of(out),
    ))
}

/// True for an earlier bundle, an empty folder, or a path without a file.
fn may_be_replaced(out: &Path) -> bool {
    let is_empty = || fs::read_dir(out).is_ok_and(|mut entries| entries.next().is_none());
    // A bundle of an earlier version may have fewer scripts.
    let is_bundle = ["run", "common.py"].iter().all(|script| out.join(script).is_file());
    !out.exists() || out.is_dir() && (is_bundle || is_empty())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    // The copy has the same permissions: programs and scripts stay executable.
    Ok(fs::copy(from, to).map(drop)?)
}

/// Removes the symbols if binutils are installed. The program also runs with them.
fn strip(program: &Path) {
    let mut command = Command::new("strip");
    let _ = command.arg(program).stdout(Stdio::null()).stderr(Stdio::null()).status();
}

/// The bytes of all files in a folder.
fn size(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in walkdir::WalkDir::new(folder) {
        let metadata = entry?.metadata()?;
        bytes += if metadata.is_file() { metadata.len() } else { 0 };
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_bundle_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("bundle");
        assert!(may_be_replaced(&out));
        fs::create_dir(&out).unwrap();
        assert!(may_be_replaced(&out));
        fs::write(out.join("thesis.tex"), "").unwrap();
        assert!(!may_be_replaced(&out));
        for script in SCRIPTS {
            fs::write(out.join(script), "").unwrap();
        }
        assert!(may_be_replaced(&out));
    }

    #[test]
    fn sizes_add_up() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("bin")).unwrap();
        fs::write(folder.path().join("run"), "12345").unwrap();
        fs::write(folder.path().join("bin/tour"), "1234567").unwrap();
        assert_eq!(size(folder.path()).unwrap(), 12);
    }
}
