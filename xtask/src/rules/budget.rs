//! The budgets: the line `metadata.budget` in the Cargo.toml of each package, and of the workspace.

use fs_err as fs;
use std::path::Path;

use anyhow::{Context, Result};
use toml::Table;

use super::repository::{fault, packages, text};
use super::{circles, words};
use crate::failure::Failure;

/// The most files in one circle of imports.
const MOST_IN_A_CIRCLE: usize = 12;

/// The most idioms and circles that a message quotes.
const QUOTED: usize = 40;

/// A number with a budget.
struct Number {
    /// The key in the budget.
    key: &'static str,
    count: u64,
    /// The unit of the count, and what was counted.
    unit: String,
    /// `set` writes a multiple of this. A number without a step should be 0, and 0 is not written.
    step: Option<u64>,
}

impl Number {
    fn of(key: &'static str, count: u64, unit: &str, step: u64) -> Self {
        Self { key, count, unit: unit.to_owned(), step: Some(step) }
    }

    /// The number of things that should not be there, each described.
    fn of_faults(key: &'static str, count: usize, unit: &str, faults: &[String]) -> Self {
        let more = if faults.len() > QUOTED { "; …" } else { "" };
        let quoted = faults[..faults.len().min(QUOTED)].join("; ");
        Self { key, count: count as u64, unit: format!("{unit} ({quoted}{more})"), step: None }
    }
}

/// The numbers that one manifest has a budget for.
struct Subject {
    manifest: String,
    section: &'static str,
    name: String,
    numbers: Vec<Number>,
}

fn subjects(root: &Path, files: &[String]) -> Result<Vec<Subject>> {
    let mut subjects = vec![whole(root, files)?];
    for (folder, files) in packages(root, files)? {
        let manifest = format!("{folder}Cargo.toml");
        let name = text(root, &manifest)?.parse::<Table>()?;
        let name = name["package"].get("name").and_then(toml::Value::as_str).context("no name")?;
        let sources = files.iter().filter(|file| words::is_searched(file));
        let sources = sources.map(|file| Ok((file.as_str(), text(root, file)?)));
        let sources = sources.collect::<Result<Vec<_>>>()?;
        let numbers = numbers(&folder, &sources);
        subjects.push(Subject { manifest, section: "package", name: name.to_owned(), numbers });
    }
    Ok(subjects)
}

/// The numbers of a package, whose sources are paths and texts.
fn numbers(folder: &str, sources: &[(&str, String)]) -> Vec<Number> {
    let idioms: Vec<_> =
        sources.iter().flat_map(|(file, text)| words::idioms(file, text)).collect();
    let rust: Vec<_> = sources.iter().filter(|(file, _)| file.ends_with(".rs")).collect();
    let lines = rust.iter().map(|(_, text)| text.lines().count() as u64).sum();
    let headless = rust.iter().filter(|(_, text)| words::is_headless(text));
    let headless: Vec<_> = headless.map(|(file, _)| (*file).to_owned()).collect();
    let circles = circles::find(folder, &rust);
    let large: Vec<_> =
        circles.of_files.iter().filter(|circle| circle.len() > MOST_IN_A_CIRCLE).cloned().collect();
    let circles = [
        ("circles", &circles.of_files, "files in circles"),
        ("large", &large, "files in circles of more than 12"),
        ("between", &circles.between_folders, "files and folders in circles between folders"),
    ];
    let circles = circles.map(|(key, circles, unit)| {
        let described: Vec<_> = circles.iter().map(|circle| circle.join(", ")).collect();
        Number::of_faults(key, circles.iter().map(Vec::len).sum(), unit, &described)
    });
    let mut numbers = vec![
        Number::of("lines", lines, "lines", 50),
        Number::of("files", rust.len() as u64, "files", 1),
        Number::of_faults("idioms", idioms.len(), "idioms", &idioms),
        Number::of_faults("headless", headless.len(), "long files without a head", &headless),
    ];
    numbers.extend(circles);
    numbers
}

/// All that is tracked: the files, the kilobytes of a checkout, and the part of them that is PTX.
fn whole(root: &Path, files: &[String]) -> Result<Subject> {
    let (mut all, mut ptx) = (0, 0);
    for file in files {
        let bytes = fs::metadata(root.join(file))?.len();
        all += bytes;
        if file.ends_with(".ptx") || (file.contains("ptx") && file.ends_with(".zst")) {
            ptx += bytes;
        }
    }
    let numbers = vec![
        Number::of("files", files.len() as u64, "files", 1),
        Number::of("kilobytes", all / 1000, "kilobytes", 50),
        Number::of("ptx", ptx / 1000, "kilobytes of PTX", 50),
    ];
    let name = "the workspace".to_owned();
    Ok(Subject { manifest: "Cargo.toml".to_owned(), section: "workspace", name, numbers })
}

/// The numbers above their budgets, and the manifests without one.
pub fn faults(root: &Path, files: &[String]) -> Result<Vec<Failure>> {
    let mut faults = Vec::new();
    for Subject { manifest, section, name, numbers } in subjects(root, files)? {
        let Some(budget) = of(&text(root, &manifest)?, section) else {
            let how = "`cargo xtask rules --set` writes one";
            faults.push(fault(&manifest, None, format!("{name} has no budget: {how}")));
            continue;
        };
        for Number { key, count, unit, .. } in numbers {
            let allowed = number(&budget, key);
            if count > allowed {
                let what = format!("{name} has {count} {unit}, and its budget is {allowed}");
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

/// The number that a budget allows: 0 if it has no such key.
pub fn number(budget: &Table, key: &str) -> u64 {
    let number = budget.get(key).and_then(toml::Value::as_integer);
    number.and_then(|number| number.try_into().ok()).unwrap_or(0)
}

/// Writes the present numbers, rounded up, into each manifest.
pub fn set(root: &Path, files: &[String]) -> Result<String> {
    let subjects = subjects(root, files)?;
    for Subject { manifest, section, numbers, .. } in &subjects {
        let written = numbers.iter().filter(|number| number.step.is_some() || number.count > 0);
        let written = written.map(|Number { key, count, step, .. }| {
            format!("{key} = {}", count.next_multiple_of(step.unwrap_or(1)))
        });
        let line = format!("metadata.budget = {{ {} }}\n", written.collect::<Vec<_>>().join(", "));
        let new = with_line(&text(root, manifest)?, section, &line);
        fs::write(root.join(manifest), new)?;
    }
    Ok(format!("{} budgets have the present numbers", subjects.len()))
}

/// The manifest with `line` at the end of the section, in place of its earlier budget.
fn with_line(manifest: &str, section: &str, line: &str) -> String {
    let heading = format!("[{section}]\n");
    let start = manifest.find(&heading).map_or(manifest.len(), |at| at + heading.len());
    let (above, rest) = manifest.split_at(start);
    let (section, below) = rest.split_at(rest.find("\n\n").map_or(rest.len(), |at| at + 1));
    let others = section.split_inclusive('\n').filter(|line| !line.starts_with("metadata.budget"));
    above.to_owned() + &others.collect::<String>() + line + below
}
