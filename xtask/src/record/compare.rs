//! Compares two runs of a chapter in everything but timings.

use fs_err as fs;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use anyhow::Result;
use lesson::{Check, Record, RecordedTable};
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
/// If a folder is not the record of a run.
pub fn compare(recorded: &Path, fresh: &Path) -> Result<Vec<Failure>> {
    let (old, new) = (results::load(recorded)?, results::load(fresh)?);
    let mut found = Differences::default();
    found.names("value", old.values.keys(), new.values.keys());
    for (key, value) in &old.values {
        if let Some(fresh) = new.values.get(key)
            && !(value.timing || fresh.timing)
            && !texts_agree(&value.text, &fresh.text)
        {
            found.add("run.json", format!("value `{key}` was {}, is {}", value.text, fresh.text));
        }
    }
    let names =
        |run: &Record| run.checks.iter().map(|check| check.name.clone()).collect::<Vec<_>>();
    found.names("check", &names(&old), &names(&new));
    for check in &old.checks {
        let Some(fresh) = new.checks.iter().find(|fresh| fresh.name == check.name) else {
            continue;
        };
        if !numbers_agree(check.limit, fresh.limit) || check.pass != fresh.pass {
            let Check { name, limit, pass, .. } = fresh;
            let was = format!("were {:?} and {}", check.limit, check.pass);
            let what = format!("check \"{name}\": limit {limit:?} and verdict {pass}, {was}");
            found.add("run.json", what);
        }
    }
    let names =
        |run: &Record| run.figures.iter().map(|figure| figure.file.clone()).collect::<Vec<_>>();
    let fresh_names = names(&new);
    found.names("figure", &names(&old), &fresh_names);
    for figure in old.figures.iter().filter(|figure| !figure.timing) {
        let file = &figure.file;
        let read = |folder: &Path| fs::read(folder.join(file));
        if fresh_names.contains(file) && read(recorded)? != read(fresh)? {
            found.add(file, "differs".to_owned());
        }
    }
    let names =
        |run: &Record| run.tables.iter().map(|table| table.file.clone()).collect::<Vec<_>>();
    found.names("table", &names(&old), &names(&new));
    for table in old.tables.iter().filter(|table| !table.timing) {
        if let Some(fresh) = new.tables.iter().find(|fresh| fresh.file == table.file) {
            found.rows(table, fresh);
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
        self.0.push(Failure::new(Path::new(file), None, what));
    }

    fn names<'a>(
        &mut self,
        kind: &str,
        old: impl IntoIterator<Item = &'a String>,
        new: impl IntoIterator<Item = &'a String>,
    ) {
        let old: BTreeSet<_> = old.into_iter().collect();
        let new: BTreeSet<_> = new.into_iter().collect();
        for name in old.difference(&new) {
            self.add("run.json", format!("the {kind} `{name}` was not written again"));
        }
        for name in new.difference(&old) {
            self.add("run.json", format!("the {kind} `{name}` is new"));
        }
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
                self.0.push(Failure::new(Path::new(file), Some(at + 1), what));
            }
        }
    }
}
