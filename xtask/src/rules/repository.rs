//! The repository, as git sees it.

use fs_err as fs;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::failure::Failure;

/// The output of git with these arguments; `None` if git fails.
pub fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").current_dir(root).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The tracked files that exist, as paths from the root with slashes.
pub fn tracked(root: &Path) -> Option<Vec<String>> {
    let list = git(root, &["ls-files", "-z"])?;
    let files = list.split('\0').filter(|file| root.join(file).is_file());
    Some(files.map(str::to_owned).collect::<Vec<_>>()).filter(|files| !files.is_empty())
}

/// The commit before the change.
pub fn start(root: &Path, since: Option<&str>) -> Result<Option<String>> {
    let commit = |name: &str| Some(git(root, &["rev-parse", "--short", name])?.trim().to_owned());
    if let Some(name) = since {
        return commit(name).with_context(|| format!("there is no commit {name}")).map(Some);
    }
    let left = git(root, &["merge-base", "origin/main", "HEAD"]);
    let left = left
        .and_then(|name| commit(name.trim()))
        .filter(|left| commit("HEAD") != Some(left.clone()));
    Ok(left.or_else(|| commit("HEAD~1")))
}

/// The folders of the packages, and the files of each. A file belongs to the innermost package.
pub fn packages(root: &Path, files: &[String]) -> Result<BTreeMap<String, Vec<String>>> {
    let mut packages = BTreeMap::new();
    for manifest in files.iter().filter(|file| is_manifest(file)) {
        if text(root, manifest)?.lines().any(|line| line == "[package]") {
            packages.insert(manifest.trim_end_matches("Cargo.toml").to_owned(), Vec::new());
        }
    }
    for file in files {
        let owner = packages.iter_mut().rev().find(|(folder, _)| file.starts_with(*folder));
        if let Some((_, its)) = owner {
            its.push(file.clone());
        }
    }
    Ok(packages)
}

fn is_manifest(file: &str) -> bool {
    file == "Cargo.toml" || file.ends_with("/Cargo.toml")
}

pub fn text(root: &Path, file: &str) -> Result<String> {
    Ok(fs::read_to_string(root.join(file))?)
}

pub fn fault(file: &str, line: Option<usize>, what: impl Into<String>) -> Failure {
    Failure::new(file, line, what)
}
