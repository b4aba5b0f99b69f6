//! What each package may have of lines, files and circles, and the whole repository of files and
//! bytes: the line `metadata.budget` in its Cargo.toml.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use toml::Table;

use super::{circles, fault, packages, text};
use crate::failure::Failure;

/// What one budget is about.
struct Subject {
    manifest: String,
    section: &'static str,
    name: String,
    /// By the key in the budget: how much there is, how the unit is called, and what `set` rounds
    /// up to.
    there_is: Vec<(&'static str, u64, String, u64)>,
}

fn subjects(root: &Path, files: &[String]) -> Result<Vec<Subject>> {
    let mut subjects = vec![whole(root, files)?];
    for (folder, files) in packages(root, files)? {
        let manifest = folder + "Cargo.toml";
        let name = text(root, &manifest)?.parse::<Table>()?;
        let name = name["package"].get("name").and_then(toml::Value::as_str).context("no name")?;
        let sources = files.iter().filter(|file| file.ends_with(".rs"));
        let sources = sources.map(|file| Ok((file.as_str(), text(root, file)?)));
        let sources = sources.collect::<Result<Vec<_>>>()?;
        let lines = sources.iter().map(|(_, text)| text.lines().count() as u64).sum();
        let circle = circles::modules(manifest.trim_end_matches("Cargo.toml"), &sources);
        let circles = format!("modules in circles ({})", circle.join(", "));
        let there_is = vec![
            ("lines", lines, "lines".to_owned(), 50),
            ("files", sources.len() as u64, "files".to_owned(), 1),
            ("circles", circle.len() as u64, circles, 1),
        ];
        let name = name.to_owned();
        subjects.push(Subject { manifest, section: "package", name, there_is });
    }
    Ok(subjects)
}

/// All that is tracked: its files, the kilobytes of a checkout, and those of it that are PTX.
fn whole(root: &Path, files: &[String]) -> Result<Subject> {
    let (mut all, mut ptx) = (0, 0);
    for file in files {
        let bytes = fs::metadata(root.join(file))?.len();
        all += bytes;
        if file.ends_with(".ptx") || (file.contains("ptx") && file.ends_with(".zst")) {
            ptx += bytes;
        }
    }
    let there_is = vec![
        ("files", files.len() as u64, "files".to_owned(), 1),
        ("kilobytes", all / 1000, "kilobytes".to_owned(), 50),
        ("ptx", ptx / 1000, "kilobytes of PTX".to_owned(), 50),
    ];
    let name = "the workspace".to_owned();
    Ok(Subject { manifest: "Cargo.toml".to_owned(), section: "workspace", name, there_is })
}

/// What is above its budget, or has none.
pub fn faults(root: &Path, files: &[String]) -> Result<Vec<Failure>> {
    let mut faults = Vec::new();
    for Subject { manifest, section, name, there_is } in subjects(root, files)? {
        let Some(budget) = of(&text(root, &manifest)?, section) else {
            let how = "`cargo xtask rules --set` gives it one";
            faults.push(fault(&manifest, None, format!("{name} has no budget: {how}")));
            continue;
        };
        for (key, there_is, unit, _) in there_is {
            let allowed = number(&budget, key);
            if there_is > allowed {
                let what = format!("{name} has {there_is} {unit}, and its budget is {allowed}");
                faults.push(fault(&manifest, None, what));
            }
        }
    }
    Ok(faults)
}

/// The budget in the text of a manifest.
pub fn of(manifest: &str, section: &str) -> Option<Table> {
    let manifest: Table = manifest.parse().ok()?;
    manifest.get(section)?.get("metadata")?.get("budget")?.as_table().cloned()
}

/// What a budget allows; where it says nothing, nothing.
pub fn number(budget: &Table, key: &str) -> u64 {
    let number = budget.get(key).and_then(toml::Value::as_integer);
    number.and_then(|number| number.try_into().ok()).unwrap_or(0)
}

/// Writes what there is, rounded up, into each manifest.
pub fn set(root: &Path, files: &[String]) -> Result<String> {
    let subjects = subjects(root, files)?;
    for Subject { manifest, section, there_is, .. } in &subjects {
        let numbers =
            there_is.iter().filter(|(key, there_is, ..)| *key != "circles" || *there_is > 0);
        let numbers = numbers.map(|(key, there_is, _, round)| {
            format!("{key} = {}", there_is.next_multiple_of(*round))
        });
        let line = format!("metadata.budget = {{ {} }}\n", numbers.collect::<Vec<_>>().join(", "));
        let new = with_line(&text(root, manifest)?, section, &line);
        fs::write(root.join(manifest), new)
            .with_context(|| format!("{manifest} cannot be written"))?;
    }
    Ok(format!("{} budgets say what there is", subjects.len()))
}

/// The manifest with the line as the last one of the section, in place of its budget until now.
fn with_line(manifest: &str, section: &str, line: &str) -> String {
    let heading = format!("[{section}]\n");
    let start = manifest.find(&heading).map_or(manifest.len(), |at| at + heading.len());
    let (above, rest) = manifest.split_at(start);
    let (section, below) = rest.split_at(rest.find("\n\n").map_or(rest.len(), |at| at + 1));
    let kept = section.split_inclusive('\n').filter(|line| !line.starts_with("metadata.budget"));
    above.to_owned() + &kept.collect::<String>() + line + below
}
