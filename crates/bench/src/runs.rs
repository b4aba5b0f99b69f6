//! Recorded runs and their medians.

use std::collections::BTreeMap;

use linrec::kernels::{KernelChoice, Pass};

use crate::median;
use crate::{Row, csv};

/// One measurement, or the medians of several.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Run {
    /// Milliseconds.
    pub ms: f64,
    /// The throughput in units of 10^9 bytes per second, over the bytes that must be moved.
    pub gb_per_s: f64,
    /// The roof's time divided by this run's time, as recorded.
    pub ratio: f64,
}

/// The runs of one pass over one type of elements, by engine and length.
#[derive(Debug, Clone, Default)]
pub struct Runs(BTreeMap<(String, usize), Vec<Run>>);

impl<'a> FromIterator<&'a Row> for Runs {
    fn from_iter<I: IntoIterator<Item = &'a Row>>(rows: I) -> Runs {
        let mut runs = Runs::default();
        for row in rows {
            let run =
                Run { ms: row.ms.value, gb_per_s: row.gb_per_s.value, ratio: row.ratio.value };
            runs.0.entry((row.engine.clone(), row.seq_len)).or_default().push(run);
        }
        runs
    }
}

impl Runs {
    /// Reads a record of one pass and one type.
    ///
    /// # Errors
    ///
    /// Returns an error that quotes the line if a line cannot be read.
    pub fn read(text: &str) -> lesson::Result<Runs> {
        Ok(csv::read::<Row>(text)?.iter().collect())
    }

    /// Returns every engine by its name in the record: `roof`, `ref:64`, `pipe:8x64:0` (elements
    /// per thread, threads, memcode).
    pub fn engines(&self) -> Vec<&str> {
        let mut engines: Vec<&str> = self.0.keys().map(|(engine, _)| engine.as_str()).collect();
        engines.dedup();
        engines
    }

    /// Returns every length, in order.
    pub fn lengths(&self) -> Vec<usize> {
        let mut lengths: Vec<usize> = self.0.keys().map(|&(_, seq_len)| seq_len).collect();
        lengths.sort_unstable();
        lengths.dedup();
        lengths
    }

    /// Returns the median of each number over the runs of an engine at a length, or `None` if there
    /// are no runs.
    pub fn median(&self, engine: &str, seq_len: usize) -> Option<Run> {
        self.0.get(&(engine.to_owned(), seq_len)).map(|runs| medians(runs))
    }

    /// Returns the number of runs of an engine at a length.
    pub fn count(&self, engine: &str, seq_len: usize) -> usize {
        self.0.get(&(engine.to_owned(), seq_len)).map_or(0, Vec::len)
    }

    /// Returns the wanted engine with the best median ratio at a length, and its medians.
    pub fn best(&self, seq_len: usize, wanted: impl Fn(&str) -> bool) -> Option<(&str, Run)> {
        let here = self.0.iter().filter(|((engine, len), _)| *len == seq_len && wanted(engine));
        let runs = here.map(|((engine, _), runs)| (engine.as_str(), medians(runs)));
        runs.max_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio))
    }

    /// Returns the fastest configuration of a kernel that ran at a length, and its medians.
    pub fn kernel(&self, name: &str, seq_len: usize) -> Option<(&str, Run)> {
        self.best(seq_len, |engine| {
            engine.split_once(':').is_some_and(|(kernel, _)| kernel == name)
        })
    }
}

fn medians(runs: &[Run]) -> Run {
    let median = |number: fn(&Run) -> f64| median(runs.iter().map(number));
    Run {
        ms: median(|run| run.ms),
        gb_per_s: median(|run| run.gb_per_s),
        ratio: median(|run| run.ratio),
    }
}

/// The runs of both passes over one type of elements.
#[derive(Debug, Clone, Default)]
pub struct Race {
    forward: Runs,
    backward: Runs,
}

impl<'a> FromIterator<&'a Row> for Race {
    fn from_iter<I: IntoIterator<Item = &'a Row>>(rows: I) -> Race {
        let (forward, backward): (Vec<&Row>, Vec<&Row>) =
            rows.into_iter().partition(|row| row.pass == Pass::Forward);
        Race { forward: forward.into_iter().collect(), backward: backward.into_iter().collect() }
    }
}

impl Race {
    /// Reads a record of one type.
    ///
    /// # Errors
    ///
    /// Returns an error that quotes the line if a line cannot be read.
    pub fn read(text: &str) -> lesson::Result<Race> {
        Ok(csv::read::<Row>(text)?.iter().collect())
    }

    /// Returns the runs of one pass.
    pub fn of(&self, pass: Pass) -> &Runs {
        match pass {
            Pass::Forward => &self.forward,
            Pass::Backward => &self.backward,
        }
    }

    /// Returns true if nothing was measured.
    pub fn is_empty(&self) -> bool {
        Pass::ALL.iter().all(|&pass| self.of(pass).0.is_empty())
    }

    /// Returns every length of a pass, in order.
    pub fn lengths(&self, pass: Pass) -> Vec<usize> {
        self.of(pass).lengths()
    }

    /// Returns the medians of an engine's runs at a length.
    pub fn median(&self, pass: Pass, engine: &str, seq_len: usize) -> Option<Run> {
        self.of(pass).median(engine, seq_len)
    }

    /// Returns the number of runs of an engine at a length.
    pub fn count(&self, pass: Pass, engine: &str, seq_len: usize) -> usize {
        self.of(pass).count(engine, seq_len)
    }

    /// Returns the fastest of all kernels at a length, and its medians.
    pub fn fastest(&self, pass: Pass, seq_len: usize) -> Option<(&str, Run)> {
        let kernels = KernelChoice::families().into_iter();
        let runs = kernels.filter_map(|name| self.kernel(pass, name, seq_len));
        runs.max_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio))
    }

    /// Returns the fastest configuration of a kernel that ran at a length, and its medians.
    pub fn kernel(&self, pass: Pass, name: &str, seq_len: usize) -> Option<(&str, Run)> {
        self.of(pass).kernel(name, seq_len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::HEADER;

    fn csv(runs: &[(&str, &str, usize, [f64; 3])]) -> String {
        let lines = runs.iter().map(|(pass, engine, len, [ms, gb_per_s, ratio])| {
            format!("d,m,f32,{pass},{engine},10,{len},{ms},{gb_per_s},{ratio}\n")
        });
        [format!("{HEADER}\n")].into_iter().chain(lines).collect()
    }

    #[test]
    fn medians_and_the_best_of_a_small_record() {
        let runs = Runs::read(&csv(&[
            ("forward", "roof", 16, [1.0, 10.0, 1.0]),
            ("forward", "pipe:a", 16, [2.0, 5.0, 0.5]),
            ("forward", "pipe:a", 16, [4.0, 2.0, 0.2]),
            ("forward", "pipe:a", 16, [2.5, 4.0, 0.4]),
            ("forward", "pipe:b", 16, [9.0, 1.0, 0.1]),
            ("forward", "roof", 8, [1.0, 9.0, 1.0]),
        ]));
        let runs = runs.unwrap();
        assert_eq!(runs.lengths(), [8, 16]);
        assert_eq!(runs.engines(), ["pipe:a", "pipe:b", "roof"]);
        let median = runs.median("pipe:a", 16).unwrap();
        assert_eq!((median.ms, median.gb_per_s, median.ratio), (2.5, 4.0, 0.4));
        assert_eq!(runs.kernel("pipe", 16).unwrap().0, "pipe:a");
        assert_eq!(runs.best(16, |engine| engine == "pipe:b").unwrap().0, "pipe:b");
        assert_eq!(runs.count("pipe:a", 16), 3);
        assert!(runs.median("pipe:a", 8).is_none() && runs.kernel("pipe", 8).is_none());
    }

    #[test]
    fn passes_are_separate() {
        let race = Race::read(&csv(&[
            ("forward", "pipe:8x64:0", 16, [3.0, 1.0, 0.5]),
            ("forward", "pipe:8x64:0", 16, [1.0, 9.0, 0.7]),
            ("backward", "pipe:8x64:0", 32, [2.0, 5.0, 0.6]),
        ]));
        let race = race.unwrap();
        let run = Run { ms: 3.0, gb_per_s: 9.0, ratio: 0.7 };
        assert_eq!(race.kernel(Pass::Forward, "pipe", 16), Some(("pipe:8x64:0", run)));
        assert_eq!(race.fastest(Pass::Forward, 16), Some(("pipe:8x64:0", run)));
        assert_eq!(race.count(Pass::Forward, "pipe:8x64:0", 16), 2);
        assert_eq!(race.kernel(Pass::Backward, "pipe", 16), None);
        assert_eq!(
            (race.lengths(Pass::Forward), race.lengths(Pass::Backward)),
            (vec![16], vec![32])
        );
        assert!(!race.is_empty() && Race::default().is_empty());
    }

    #[test]
    fn unreadable_records_are_explained() {
        let error = Runs::read("engine,seq_len,ms,ratio\nroof,1,1,1\n").unwrap_err().to_string();
        assert!(error.contains("missing field"), "{error}");
        let error = Race::read(&format!("{HEADER}\n1,2\n")).unwrap_err().to_string();
        assert!(error.contains("`1,2`"), "{error}");
    }
}
