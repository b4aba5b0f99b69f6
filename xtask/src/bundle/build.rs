//! Builds the programs of the bundle.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::workspace;

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

/// A line of cargo's output with `--message-format=json`.
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

/// Builds the programs in release; returns the path of each by its name.
pub(super) fn programs(root: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let mut programs = BTreeMap::new();
    for call in CALLS {
        // Cargo prints its progress and its errors.
        let output = workspace::cargo()
            .current_dir(root)
            .args(["build", "--release", "--message-format=json-render-diagnostics"])
            .args(call.iter().flat_map(|(option, value)| [option, value]))
            .stderr(Stdio::inherit())
            .output()
            .context("cargo cannot be started")?;
        if !output.status.success() {
            bail!("the programs of the bundle could not be built ({})", output.status);
        }
        programs.extend(executables(&String::from_utf8_lossy(&output.stdout)));
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
            {"reason":"compiler-artifact","target":{"name":"suite"},"executable":"/t/deps/suite-1"}
            {"reason":"compiler-artifact","target":{"name":"other"},"executable":"/t/other"}
            not JSON
            {"reason":"build-finished","success":true}"#;
        let names: Vec<_> = executables(messages).into_keys().collect();
        assert_eq!(names, ["suite", "tour"]);
    }
}
