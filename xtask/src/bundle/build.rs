//! Building the programs of the bundle.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::workspace;

/// The packages, and what of them: programs, examples, and tests, which are programs as well.
const TARGETS: [&str; 26] = [
    "--package",
    "ch00-start-here",
    "--package",
    "linrec",
    "--bin",
    "tour",
    "--example",
    "probe",
    "--example",
    "race",
    "--example",
    "graphs",
    "--package",
    "ch10-speed-of-memory",
    "--example",
    "ladder",
    "--test",
    "bits",
    "--test",
    "device",
    "--test",
    "contract",
    "--test",
    "configurations",
    "--test",
    "words",
];

/// One line of what cargo writes with `--message-format=json`.
#[derive(Deserialize)]
struct Message {
    reason: String,
    executable: Option<PathBuf>,
    target: Option<Target>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

/// Builds the programs in release, and tells where each is, by its name.
///
/// # Errors
///
/// When cargo fails, or builds something else.
pub(super) fn programs(root: &Path) -> Result<BTreeMap<String, PathBuf>> {
    // Its progress and its errors are passed through.
    let output = workspace::cargo()
        .current_dir(root)
        .args(["build", "--release", "--message-format=json-render-diagnostics"])
        .args(TARGETS)
        .stderr(Stdio::inherit())
        .output()
        .context("cargo cannot be started")?;
    if !output.status.success() {
        bail!("the programs of the bundle could not be built ({})", output.status);
    }
    let programs = executables(&String::from_utf8_lossy(&output.stdout));
    for name in wanted() {
        ensure!(programs.contains_key(name), "cargo built no program `{name}`");
    }
    Ok(programs)
}

/// The names that follow `--bin`, `--example` and `--test`.
fn wanted() -> impl Iterator<Item = &'static str> {
    TARGETS.chunks(2).filter(|pair| pair[0] != "--package").map(|pair| pair[1])
}

/// The programs in cargo's messages.
fn executables(messages: &str) -> BTreeMap<String, PathBuf> {
    let artifacts = messages.lines().filter_map(|line| serde_json::from_str::<Message>(line).ok());
    artifacts
        .filter(|message| message.reason == "compiler-artifact")
        .filter_map(|message| Some((message.target?.name, message.executable?)))
        .filter(|(name, _)| wanted().any(|wanted| wanted == name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::executables;

    #[test]
    fn programs_are_found_among_cargos_messages() {
        let messages = r#"
            {"reason":"compiler-artifact","target":{"name":"rand"},"executable":null}
            {"reason":"build-script-executed","package_id":"x"}
            {"reason":"compiler-artifact","target":{"name":"tour"},"executable":"/t/release/tour"}
            {"reason":"compiler-artifact","target":{"name":"bits"},"executable":"/t/deps/bits-1"}
            {"reason":"compiler-artifact","target":{"name":"other"},"executable":"/t/other"}
            not JSON
            {"reason":"build-finished","success":true}"#;
        let names: Vec<_> = executables(messages).into_keys().collect();
        assert_eq!(names, ["bits", "tour"]);
    }
}
