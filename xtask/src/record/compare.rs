//! Compares two runs of a chapter in everything but timings.

use fs_err as fs;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use anyhow::Result;
use lesson::{Check, Figure, RecordedTable};
use regex::Regex;

use crate::failure::Failure;
use crate::numbers::{numbers_agree, texts_agree};
use crate::results;

/// The differences between the results in `recorded` and in `fresh`.
///
/// Figures have to agree in every byte, and numbers in tables and values within 10⁻⁶. Timings have
/// to exist. A check has to agree in name, limit and verdict: its value may depend on the width of
/// the machine's vectors. The transcript also shows timings, so it is compared only in the lines of
/// kernels that it names, such as `kernels/scan.cuh:51`.
///
/// # Errors
///
/// Returns an error if a folder is not the record of a run.
pub fn compare(recorded: &Path, fresh: &Path) -> Result<Vec<Failure>> {
    let (old, new) = (results::load(recorded)?, results::load(fresh)?);
    let mut found = Differences::default();
    for (key, old, new) in found.pairs("value", old.values, new.values) {
        if !(old.timing || new.timing || texts_agree(&old.text, &new.text)) {
            found.add("run.json", format!("value `{key}` was {}, is {}", old.text, new.text));
        }
    }
    let checks = |checks| named(checks, |check: &Check| &check.name);
    for (name, old, new) in found.pairs("check", checks(old.checks), checks(new.checks)) {
        if !numbers_agree(old.limit, new.limit) || old.pass != new.pass {
            let is = format!("limit {:?} and verdict {}", new.limit, new.pass);
            let was = format!("were {:?} and {}", old.limit, old.pass);
            found.add("run.json", format!("check \"{name}\": {is}, {was}"));
        }
    }
    let figures = |figures| named(figures, |figure: &Figure| &figure.file);
    for (file, old, _) in found.pairs("figure", figures(old.figures), figures(new.figures)) {
        if !old.timing && fs::read(recorded.join(&file))? != fs::read(fresh.join(&file))? {
            found.add(&file, "differs".to_owned());
        }
    }
    let tables = |tables| named(tables, |table: &RecordedTable| &table.file);
    for (_, old, new) in found.pairs("table", tables(old.tables), tables(new.tables)) {
        if !old.timing {
            found.rows(&old, &new);
        }
    }
    let (old, new) = (kernel_lines(recorded)?, kernel_lines(fresh)?);
    if old != new {
        let differ = old.iter().zip(&new).find(|(old, new)| old != new);
        let what = match differ {
            Some((old, new)) => format!("names {old}, and the run names {new}"),
            None => format!("names {} lines of kernels, the run {}", old.len(), new.len()),
        };
        found.add(TRANSCRIPT, what);
    }
    Ok(found.0)
}

/// Returns these parts of a record by their names.
fn named<T>(parts: Vec<T>, name: fn(&T) -> &String) -> Named<T> {
    parts.into_iter().map(|part| (name(&part).clone(), part)).collect()
}

type Named<T> = BTreeMap<String, T>;

/// The file of what a run printed.
const TRANSCRIPT: &str = "output.txt";

/// Returns the lines of kernels that a run names, such as `kernels/scan.cuh:51`, in their order.
fn kernel_lines(results: &Path) -> Result<Vec<String>> {
    static LINE: LazyLock<Regex> = LazyLock::new(|| {
        #[expect(clippy::unwrap_used, reason = "the pattern is tried by the tests")]
        Regex::new(r"kernels/[\w/.-]+\.cuh?:[0-9]+").unwrap()
    });
    let path = results.join(TRANSCRIPT);
    let text = if path.exists() { fs::read_to_string(path)? } else { String::new() };
    Ok(LINE.find_iter(&text).map(|line| line.as_str().to_owned()).collect())
}

#[derive(Default)]
struct Differences(Vec<Failure>);

impl Differences {
    fn add(&mut self, file: &str, what: String) {
        self.0.push(Failure::new(file, None, what));
    }

    /// Notes the names that only one of the runs has; returns what both have.
    fn pairs<T>(&mut self, kind: &str, old: Named<T>, mut new: Named<T>) -> Vec<(String, T, T)> {
        let mut pairs = Vec::new();
        for (name, old) in old {
            match new.remove(&name) {
                Some(new) => pairs.push((name, old, new)),
                None => self.add("run.json", format!("the {kind} `{name}` was not written again")),
            }
        }
        for name in new.keys() {
            self.add("run.json", format!("the {kind} `{name}` is new"));
        }
        pairs
    }

    fn rows(&mut self, old: &RecordedTable, new: &RecordedTable) {
        let (file, lines) = (&old.file, (old.rows.len(), new.rows.len()));
        if lines.0 != lines.1 {
            return self.add(file, format!("had {} lines, has {}", lines.0, lines.1));
        }
        for (at, (old, new)) in old.rows.iter().zip(&new.rows).enumerate() {
            let (cells, fresh) = (old.split(','), new.split(','));
            let count = cells.clone().count();
            let agree = count == fresh.clone().count()
                && cells.zip(fresh).all(|(old, new)| texts_agree(old, new));
            if !agree {
                let what = format!("was `{old}`, is `{new}`");
                self.0.push(Failure::new(file, Some(at + 1), what));
            }
        }
    }
}
