//! What came of the list, counted, as the README shows it.

use std::collections::BTreeMap;
use std::fmt::Write;

use csv::ReaderBuilder;
use serde::Deserialize;

use super::row::Row;

/// A kernel whose bits on a GPU are not those of the emulator, or which was not compared. The other columns say where
/// they differ first, and how far.
#[derive(Debug, Deserialize)]
struct Unequal {
    path: String,
    kernel: String,
    /// A word and a sentence, as in [`Row::judgement`].
    why: String,
}

/// The table, from the list and what a run on a GPU gave.
pub fn table(rows: &[Row], unequal: &str) -> Result<String, String> {
    let mut reader = ReaderBuilder::new().from_reader(unequal.as_bytes());
    let unequal: Vec<Unequal> =
        reader.deserialize().collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    let ran = |one: &&Unequal| {
        let is = |row: &&Row| (&row.path, &row.kernel) == (&one.path, &one.kernel);
        rows.iter().find(is).is_some_and(|row| row.outcome == "ran")
    };
    if let Some(one) = unequal.iter().find(|one| !ran(one)) {
        return Err(format!("{} {} is compared, and did not run", one.path, one.kernel));
    }
    let of = |outcome: &str| rows.iter().filter(|row| row.outcome == outcome).collect::<Vec<_>>();
    let by = |outcome: &str| counted(of(outcome).iter().map(|row| &*row.judgement));
    let (reported, refused) = (by("reported"), by("refused"));
    let why = counted(unequal.iter().map(|one| &*one.why));
    let excluded = refused.get("excluded").copied().unwrap_or(0);
    let (listed, all) = (rows.len(), rows.len() - excluded);
    let ran = of("ran").len();
    // What stops at a mistake of its own was run as far as it may.
    let judged: usize = ["mistake", "meant"].iter().filter_map(|word| reported.get(*word)).sum();
    let percent = |count: usize| 100.0 * count as f64 / all.max(1) as f64;
    let mut table = String::from("| | kernels |\n|:--|--:|\n");
    let mut line = |indented: bool, what: &str, count: usize| {
        let indent = if indented { "&emsp;" } else { "" };
        let _ = writeln!(table, "| {indent}{what} | {count} |");
    };
    line(false, "listed", listed);
    line(false, &format!("ran ({:.1} %)", percent(ran)), ran);
    line(true, "equal in all bits of all buffers", ran - unequal.len());
    why.iter().for_each(|(word, &count)| line(true, word, count));
    line(false, "reported", of("reported").len());
    reported.iter().for_each(|(word, &count)| line(true, word, count));
    line(false, "refused", of("refused").len());
    refused.iter().for_each(|(word, &count)| line(true, word, count));
    let both = ran + judged;
    line(false, &format!("ran, or reported for what they do ({:.1} %)", percent(both)), both);
    Ok(table)
}

/// Judgements by their first words.
fn counted<'a>(judgements: impl Iterator<Item = &'a str>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for judgement in judgements {
        let word = judgement.split_once(':').map_or("not judged", |(word, _)| word);
        *counts.entry(word.to_owned()).or_insert(0) += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_has_the_figures() {
        let rows = Row::read(include_str!("../../foreign/kernels.csv")).unwrap();
        let table = table(&rows, include_str!("../../foreign/h200.csv")).unwrap();
        assert!(include_str!("../../README.md").contains(&table), "{table}");
        assert!(!table.contains("not judged"), "{table}");
    }

    #[test]
    fn what_is_compared_has_run() {
        let rows = [Row { path: "a.cu".to_owned(), kernel: "f".to_owned(), ..Row::default() }];
        let error = table(&rows, "path,kernel,why\na.cu,f,order: of atomics\n").unwrap_err();
        assert!(error.contains("a.cu f"), "{error}");
    }
}
