//! Recorded runs: what was measured on a machine that is not here.

use std::collections::BTreeMap;

/// Runs of the kernels and of the roof, as the benchmark wrote them: see [`Runs::read`].
#[derive(Debug, Clone, Default)]
pub struct Runs(BTreeMap<(String, usize), Vec<Run>>);

/// One measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Run {
    /// What it took.
    pub milliseconds: f64,
    /// Bytes that have to be moved, per second, in units of 10^9.
    pub gb_per_s: f64,
    /// The same as a part of the roof's in the same round of measurements.
    pub ratio: f64,
}

impl Runs {
    /// Reads a table with the columns `engine`, `seq_len`, `ms`, `gb_per_s`, `ratio` and whatever else.
    ///
    /// # Errors
    ///
    /// A sentence, if a column is missing or a number cannot be read.
    pub fn read(csv: &str) -> Result<Runs, String> {
        let mut lines = csv.lines();
        let header: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
        let column = |name: &str| {
            let place = header.iter().position(|column| *column == name);
            place.ok_or_else(|| format!("the record has no column `{name}`"))
        };
        let (engine, seq_len) = (column("engine")?, column("seq_len")?);
        let numbers = [column("ms")?, column("gb_per_s")?, column("ratio")?];
        let mut runs = Runs::default();
        for line in lines {
            let cells: Vec<&str> = line.split(',').collect();
            let cell = |place: usize| cells.get(place).copied().unwrap_or_default();
            let number = |place: usize| -> Result<f64, String> {
                cell(place).parse().map_err(|_| format!("`{}` is no number: {line}", cell(place)))
            };
            let [milliseconds, gb_per_s, ratio] = numbers.map(number);
            let run = Run { milliseconds: milliseconds?, gb_per_s: gb_per_s?, ratio: ratio? };
            let key = (cell(engine).to_owned(), number(seq_len)? as usize);
            runs.0.entry(key).or_default().push(run);
        }
        Ok(runs)
    }

    /// Every engine, as the record names it: `roof`, `ref:64`, `pipe:8x64:0` (elements per thread, threads, memcode).
    pub fn engines(&self) -> Vec<&str> {
        let mut engines: Vec<&str> = self.0.keys().map(|(engine, _)| engine.as_str()).collect();
        engines.dedup();
        engines
    }

    /// Every length, in order.
    pub fn lengths(&self) -> Vec<usize> {
        let mut lengths: Vec<usize> = self.0.keys().map(|&(_, seq_len)| seq_len).collect();
        lengths.sort_unstable();
        lengths.dedup();
        lengths
    }

    /// The median of each column over the runs of an engine at a length; `None` if there are none.
    pub fn median(&self, engine: &str, seq_len: usize) -> Option<Run> {
        let runs = self.0.get(&(engine.to_owned(), seq_len))?;
        let median = |column: fn(&Run) -> f64| {
            let mut values: Vec<f64> = runs.iter().map(column).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        Some(Run {
            milliseconds: median(|run| run.milliseconds),
            gb_per_s: median(|run| run.gb_per_s),
            ratio: median(|run| run.ratio),
        })
    }

    /// How many runs there are of an engine at a length.
    pub fn count(&self, engine: &str, seq_len: usize) -> usize {
        self.0.get(&(engine.to_owned(), seq_len)).map_or(0, Vec::len)
    }

    /// Of the engines whose name begins so, the one with the best median ratio at a length.
    pub fn best(&self, beginning: &str, seq_len: usize) -> Option<(&str, Run)> {
        let engines = self.engines().into_iter().filter(|engine| engine.starts_with(beginning));
        let runs = engines.filter_map(|engine| Some((engine, self.median(engine, seq_len)?)));
        runs.max_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio))
    }
}

#[cfg(test)]
mod tests {
    use super::Runs;

    #[test]
    fn medians_and_the_best_of_a_small_record() {
        let csv = "engine,seq_len,ms,gb_per_s,ratio\nroof,16,1,10,1\npipe:a,16,2,5,0.5\n\
                   pipe:a,16,4,2,0.2\npipe:a,16,2.5,4,0.4\npipe:b,16,9,1,0.1\nroof,8,1,9,1\n";
        let runs = Runs::read(csv).unwrap();
        assert_eq!(runs.lengths(), [8, 16]);
        assert_eq!(runs.engines(), ["pipe:a", "pipe:b", "roof"]);
        let median = runs.median("pipe:a", 16).unwrap();
        assert_eq!((median.milliseconds, median.gb_per_s, median.ratio), (2.5, 4.0, 0.4));
        assert_eq!(runs.best("pipe", 16).unwrap().0, "pipe:a");
        assert_eq!(runs.count("pipe:a", 16), 3);
        assert!(runs.median("pipe:a", 8).is_none());
    }

    #[test]
    fn what_cannot_be_read_is_a_sentence() {
        let error = Runs::read("engine,seq_len,ms,ratio\n").unwrap_err();
        assert!(error.contains("`gb_per_s`"), "{error}");
        let error = Runs::read("engine,seq_len,ms,gb_per_s,ratio\nroof,16,fast,1,1\n").unwrap_err();
        assert!(error.contains("`fast`"), "{error}");
    }
}
