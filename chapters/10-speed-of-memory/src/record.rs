//! Reads the measurements of an H200 in `results/h200`.

use bench::csv::{self, Table};
use bench::graphs::Call;
use bench::{Row, Run, Runs, median, recorded};

/// Every run of `examples/ladder.rs`.
const LADDER: &[u8] = include_bytes!("../results/h200/ladder.csv.gz");

/// The fastest kernel for each element type and pass at some lengths, preceded by the roof of the
/// same rounds, from the record of `tour tune`.
const TYPES: &str = "types.csv";

/// Every run of [`bench::graphs`].
const GRAPHS: &[u8] = include_bytes!("../results/h200/graphs.csv.gz");

/// The file that compares the bits of GPU and emulator.
const BITS: &str = "bits.csv";

const H200: &str = include_str!("../results/h200/tables.json");

/// Returns how many results of the kernels rows and wide were compared between an H200 and the
/// emulator, and how many of them differed.
///
/// # Errors
///
/// Returns an error if the record cannot be read.
pub fn bits() -> lesson::Result<(u64, u64)> {
    let table = Table::read(&recorded::table(H200, BITS)?)?;
    table.rows().try_fold((0, 0), |(numbers, different), row| {
        Ok((numbers + row.number::<u64>("words")?, different + row.number::<u64>("different")?))
    })
}

/// Returns the microseconds per call of a chain, the median of all runs: `plain`, `graph` or
/// `batch`.
pub fn call_us(way: &str, num_seqs: usize, seq_len: usize) -> Option<f64> {
    let calls = csv::read::<Call>(&recorded::text(GRAPHS).ok()?).ok()?.into_iter();
    let mine = calls.filter(|call| {
        (call.engine.as_str(), call.num_seqs, call.seq_len) == (way, num_seqs, seq_len)
    });
    Some(median(mine.map(|call| call.us_per_call.value))).filter(|us| us.is_finite())
}

/// The steps of the ladder and the roof, forward.
#[derive(Debug)]
pub struct Ladder(Runs);

impl Ladder {
    /// Reads the record.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be read.
    pub fn read() -> lesson::Result<Ladder> {
        Runs::read(&recorded::text(LADDER)?).map(Ladder)
    }

    /// Returns the measured lengths.
    pub fn lengths(&self) -> Vec<usize> {
        self.0.lengths()
    }

    /// Returns the number of runs of the roof at a length, which all other engines share.
    pub fn runs(&self, seq_len: usize) -> usize {
        self.0.count("roof", seq_len)
    }

    /// Returns the fastest size of a kernel at a length: `wide`, `pieces`, or with an ending,
    /// `hints:ls`.
    pub fn best(&self, name: &str, seq_len: usize) -> Option<(&str, Run)> {
        let (name, ending) = name.split_once(':').unwrap_or((name, ""));
        self.0.best(seq_len, |engine| {
            let mut parts = engine.split(':');
            let is_it = parts.next() == Some(name) && parts.next().is_some();
            is_it && (ending.is_empty() || parts.next() == Some(ending))
        })
    }

    /// Returns a certain size at a length.
    pub fn of(&self, engine: &str, seq_len: usize) -> Option<Run> {
        self.0.median(engine, seq_len)
    }
}

/// Reads the fastest kernels for every element type at some lengths.
///
/// # Errors
///
/// Returns an error if the record cannot be read.
pub fn types() -> lesson::Result<Vec<Row>> {
    let lines: Vec<Row> = csv::read(&recorded::table(H200, TYPES)?)?;
    Ok(lines.into_iter().filter(|line| line.engine != "roof").collect())
}

#[cfg(test)]
mod tests {
    use super::{Ladder, bits, call_us, types};
    use linrec::kernels::ElementType;

    #[test]
    fn the_record_has_at_least_nine_runs_of_everything() {
        let ladder = Ladder::read().unwrap();
        for len in ladder.lengths() {
            assert!(ladder.runs(len) >= 9, "{len}");
            assert!(ladder.best("wide", len).is_some(), "{len}");
        }
        let types = types().unwrap();
        for element in ElementType::ALL {
            assert!(types.iter().any(|line| line.element == element), "{element}");
        }
        assert!(types.iter().all(|line| line.runs.len() >= 9));
    }

    #[test]
    fn calls_and_bits_were_recorded() {
        for way in ["plain", "graph", "batch"] {
            assert!(call_us(way, 132, 1024).is_some_and(|us| us > 0.0), "{way}");
        }
        assert!(call_us("plain", 7, 1024).is_none());
        let (numbers, different) = bits().unwrap();
        assert!(numbers > 1_000_000 && different == 0);
    }

    #[test]
    fn names_and_their_endings_select_variants() {
        let ladder = Ladder::read().unwrap();
        let name = |name| ladder.best(name, 4096).unwrap().0;
        assert!(name("ring:a1").ends_with(":a1") && name("ring:a2").ends_with(":a2"));
        assert!(name("hints:l").ends_with(":l") && name("pieces").starts_with("pieces:"));
        assert!(ladder.best("nothing", 4096).is_none());
        assert!(ladder.best("roof", 4096).is_none());
    }
}
