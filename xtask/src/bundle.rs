//! `cargo xtask bundle`: one folder with the tests that need an NVIDIA GPU.
//!
//! The machine with the GPU needs the driver and, for two of the steps, Python and the CUDA
//! toolkit.

use fs_err as fs;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use lesson::files;
use serde_json::Value;
use xshell::cmd;

use crate::workspace;

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
    let programs = programs(root)?;
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
        workspace::name_of(out),
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

/// The packages that cargo builds, with their programs, examples and tests. In two calls, since
/// every package gives its tests the same name.
const CALLS: [&[(&str, &str)]; 2] = [
    &[
        ("--package", "linrec-suite"),
        ("--example", "probe"),
        ("--example", "agreement"),
        ("--test", "suite"),
    ],
    &[
        ("--package", "ch00-start-here"),
        ("--bin", "tour"),
        ("--package", "bench"),
        ("--example", "race"),
        ("--example", "graphs"),
        ("--example", "fused"),
        ("--package", "ch10-speed-of-memory"),
        ("--example", "ladder"),
        ("--package", "ch12-one-long-sequence"),
        ("--example", "long"),
        ("--package", "ch14-fused-scan"),
        ("--example", "rungs"),
        ("--example", "train"),
    ],
];

/// Builds the programs in release; returns the path of each by its name.
fn programs(root: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let mut programs = BTreeMap::new();
    let (shell, cargo) = (workspace::shell(root)?, workspace::cargo());
    for call in CALLS {
        let options = call.iter().flat_map(|(option, value)| [option, value]);
        // Cargo prints its progress and its errors.
        let format = "--message-format=json-render-diagnostics";
        let messages = cmd!(shell, "{cargo} build --release {format} {options...}").quiet().read();
        let messages = messages.context("the programs of the bundle could not be built")?;
        programs.extend(executables(&messages));
    }
    for name in wanted() {
        ensure!(programs.contains_key(name), "cargo built no program `{name}`");
    }
    Ok(programs)
}

/// The names of the programs.
fn wanted() -> impl Iterator<Item = &'static str> {
    let options = CALLS.into_iter().flatten();
    options.filter(|(option, _)| *option != "--package").map(|(_, name)| *name)
}

/// The programs in cargo's messages.
fn executables(messages: &str) -> BTreeMap<String, PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let programs = messages.filter_map(|message| {
        let (name, path) = (message["target"]["name"].as_str()?, message["executable"].as_str()?);
        wanted().any(|wanted| wanted == name).then(|| (name.to_owned(), path.into()))
    });
    programs.collect()
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

    #[test]
    fn programs_are_found_among_cargos_messages() {
        let messages = r#"
            {"reason":"compiler-artifact","target":{"name":"rand"},"executable":null}
            {"reason":"build-script-executed","package_id":"x"}
            {"reason":"compiler-artifact","target":{"name":"tour"},"executable":"/t/release/tour"}
            {"reason":"compiler-artifact","target":{"name":"suite"},"executable":"/t/deps/suite-1"}
            {"reason":"compiler-artifact","target":{"name":"other"},"executable":"/t/other"}
            not JSON
            {"reason":"build-finished","success":true}"#;
        let names: Vec<_> = executables(messages).into_keys().collect();
        assert_eq!(names, ["suite", "tour"]);
    }
}
