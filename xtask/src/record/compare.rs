//! Comparing two runs of a chapter in everything that is no timing.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::failure::Failure;
use crate::numbers::{numbers_agree, texts_agree};
use crate::results::{Check, Run, Table, Value};

/// The differences between the results in `recorded` and in `fresh`.
///
/// Figures agree byte for byte; numbers in tables and values within 10⁻⁶; of timings only that they
/// are there. A check agrees in name, limit and verdict: its value may depend on the machine's
/// vector width.
///
/// # Errors
///
/// When one of the folders is not the record of a run.
pub fn compare(recorded: &Path, fresh: &Path) -> Result<Vec<Failure>> {
    let (old, new) = (Run::load(recorded)?, Run::load(fresh)?);
    let mut differences = Vec::new();
    let mut differ = |file: &str, line, what: String| {
        differences.push(Failure::new(Path::new(file), line, what));
    };
    compare_names("value", old.values.keys(), new.values.keys(), &mut differ);
    for (key, value) in &old.values {
        compare_values(key, value, new.values.get(key), &mut differ);
    }
    compare_checks(&old.checks, &new.checks, &mut differ);
    let names =
        |run: &Run| run.figures.iter().map(|figure| figure.file.clone()).collect::<Vec<_>>();
    let fresh_names = names(&new);
    compare_names("figure", &names(&old), &fresh_names, &mut differ);
    for figure in old.figures.iter().filter(|figure| !figure.timing) {
        let file = &figure.file;
        if fresh_names.contains(file) && read(recorded, file)? != read(fresh, file)? {
            differ(file, None, "differs".to_owned());
        }
    }
    let names = |run: &Run| run.tables.iter().map(|table| table.file.clone()).collect::<Vec<_>>();
    compare_names("table", &names(&old), &names(&new), &mut differ);
    for table in old.tables.iter().filter(|table| !table.timing) {
        if let Some(fresh) = new.tables.iter().find(|fresh| fresh.file == table.file) {
            compare_tables(table, fresh, &mut differ);
        }
    }
    Ok(differences)
}

fn read(folder: &Path, file: &str) -> Result<String> {
    let path = folder.join(file);
    fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))
}

fn compare_names<'a>(
    kind: &str,
    old: impl IntoIterator<Item = &'a String>,
    new: impl IntoIterator<Item = &'a String>,
    differ: &mut impl FnMut(&str, Option<usize>, String),
) {
    let old: BTreeSet<_> = old.into_iter().collect();
    let new: BTreeSet<_> = new.into_iter().collect();
    for name in old.difference(&new) {
        differ("run.json", None, format!("the {kind} `{name}` was not written again"));
    }
    for name in new.difference(&old) {
        differ("run.json", None, format!("the {kind} `{name}` is new"));
    }
}

fn compare_values(
    key: &str,
    old: &Value,
    new: Option<&Value>,
    differ: &mut impl FnMut(&str, Option<usize>, String),
) {
    if let Some(new) = new
        && !(old.timing || new.timing)
        && !texts_agree(&old.text, &new.text)
    {
        differ("run.json", None, format!("value `{key}` was {}, is {}", old.text, new.text));
    }
}

fn compare_checks(
    old: &[Check],
    new: &[Check],
    differ: &mut impl FnMut(&str, Option<usize>, String),
) {
    let names =
        |checks: &[Check]| checks.iter().map(|check| check.name.clone()).collect::<Vec<_>>();
    compare_names("check", &names(old), &names(new), differ);
    for check in old {
        let Some(fresh) = new.iter().find(|fresh| fresh.name == check.name) else { continue };
        let limits_agree = match (check.limit, fresh.limit) {
            (Some(old), Some(new)) => numbers_agree(old, new),
            (old, new) => old.is_none() == new.is_none(),
        };
        if !limits_agree || check.pass != fresh.pass {
            let what = format!(
                "check \"{}\": limit {:?} and verdict {}, were {:?} and {}",
                check.name, fresh.limit, fresh.pass, check.limit, check.pass
            );
            differ("run.json", None, what);
        }
    }
}

fn compare_tables(old: &Table, new: &Table, differ: &mut impl FnMut(&str, Option<usize>, String)) {
    let file = &old.file;
    let lines = (old.rows.len(), new.rows.len());
    if lines.0 != lines.1 {
        differ(file, None, format!("had {} lines, has {}", lines.0, lines.1));
        return;
    }
    for (at, (old, new)) in old.rows.iter().zip(&new.rows).enumerate() {
        let (cells, fresh): (Vec<_>, Vec<_>) = (old.split(',').collect(), new.split(',').collect());
        let agree = cells.len() == fresh.len()
            && cells.iter().zip(&fresh).all(|(old, new)| texts_agree(old, new));
        if !agree {
            differ(file, Some(at + 1), format!("was `{old}`, is `{new}`"));
        }
    }
}
