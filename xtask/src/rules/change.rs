//! The rules on changes: narrow comments, and a reason for each budget that grows.

use std::path::Path;

use anyhow::{Context, Result};

use super::budget;
use super::repository::{fault, git, text};
use crate::failure::Failure;

/// The most columns of a comment.
const COLUMNS: usize = 100;

/// Finds the comments that are too wide, in the files that have changed since `start`. A file that
/// has only moved has not changed.
pub fn wide_comments(root: &Path, start: &str) -> Result<Vec<Failure>> {
    let arguments = ["diff", "--name-status", "-M", start, "--", "*.rs", "*.cu", "*.cuh"];
    let changed = git(root, &arguments).context("git cannot compare")?;
    let mut faults = Vec::new();
    // `M path`, `R097 old new`; `D path` is gone.
    for change in changed.lines().filter(|line| !line.starts_with("R100")) {
        let Some((_, file)) = change.rsplit_once('\t') else { continue };
        if !root.join(file).is_file() {
            continue;
        }
        let mut is_block = false;
        for (at, line) in text(root, file)?.lines().enumerate() {
            let is_comment = line.trim_start().starts_with("//");
            let words = line.trim_start().trim_start_matches(['/', '!', ' ']);
            is_block ^= is_comment && words.starts_with("```");
            // An address, a row of a table and the lines of a block cannot be broken.
            let can_break = !is_block && words.contains(' ') && !words.starts_with('|');
            let columns = line.chars().count();
            if is_comment && can_break && columns > COLUMNS {
                let what = format!("the comment is {columns} columns wide, not {COLUMNS} at most");
                faults.push(fault(file, Some(at + 1), what));
            }
        }
    }
    Ok(faults)
}

/// Finds the commits since `start` that raise a budget without naming it in their message.
pub fn raised_without_reason(root: &Path, start: &str) -> Result<Vec<Failure>> {
    let commits = git(root, &["rev-list", "--no-merges", &format!("{start}..HEAD")]);
    let mut faults = Vec::new();
    for commit in commits.context("git has no list of commits")?.lines() {
        let message = git(root, &["log", "-1", "--format=%B", commit]).unwrap_or_default();
        if message.to_lowercase().contains("budget") {
            continue;
        }
        let arguments =
            ["diff-tree", "--no-commit-id", "--name-only", "-r", commit, "--", "*Cargo.toml"];
        let manifests = git(root, &arguments).unwrap_or_default();
        for (manifest, section) in
            manifests.lines().flat_map(|manifest| [(manifest, "package"), (manifest, "workspace")])
        {
            let then = |commit: &str| {
                budget::of(&git(root, &["show", &format!("{commit}:{manifest}")])?, section)
            };
            let (Some(old), Some(new)) = (then(&format!("{commit}~")), then(commit)) else {
                continue;
            };
            for key in new.keys() {
                let (old, new) = (budget::number(&old, key), budget::number(&new, key));
                if new > old {
                    let title = message.lines().next().unwrap_or_default();
                    let what = format!("the commit \"{title}\" raises {key} from {old} to {new}");
                    let how = "and its message does not say why the budget has to grow";
                    faults.push(fault(manifest, None, format!("{what}, {how}")));
                }
            }
        }
    }
    Ok(faults)
}
