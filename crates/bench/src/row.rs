//! The rows of all of the project's benchmarks: one run of one engine, or the median of several;
//! and the speeds that other people's code reached, quoted with their sources ([`Peer`]).
//!
//! Records are CSV files, read and written by [`csv`](crate::csv). `tour bench` writes a row for
//! each run. `tour tune` writes a row for each configuration, with the median time and all times in
//! one more column. The tests at the end of this file write the committed records as they were
//! read.

use lesson::machine;
use linrec::kernels::{ElementType, Pass};
use serde::{Deserialize, Serialize};

use crate::csv::{Decimal, displayed, spaced};
use crate::median;

/// The columns of rows that list their runs: the fields of a [`Row`].
pub const WITH_RUNS: &str =
    "date,machine,element,direction,engine,num_seqs,seq_len,ms,gb_per_s,ratio,runs";

/// The columns of rows of one run each.
pub const HEADER: &str = WITH_RUNS.split_at(WITH_RUNS.len() - ",runs".len()).0;

/// One run, or the median of several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The day, as `2026-11-21`.
    pub date: String,
    /// The GPU, or a description of the processor.
    pub machine: String,
    /// The element type of the arrays.
    #[serde(with = "displayed")]
    pub element: ElementType,
    /// The pass.
    #[serde(rename = "direction", with = "displayed")]
    pub pass: Pass,
    /// The engine: `roof`, `empty`, or a kernel in
    /// [`KernelChoice`](linrec::kernels::KernelChoice)'s notation.
    pub engine: String,
    /// The number of sequences.
    pub num_seqs: usize,
    /// The length of each sequence.
    pub seq_len: usize,
    /// Milliseconds.
    pub ms: Decimal,
    /// The throughput in units of 10^9 bytes per second, over the bytes that must be moved.
    pub gb_per_s: Decimal,
    /// The roof's time divided by this time.
    pub ratio: Decimal,
    /// The time of each run in milliseconds, if `ms` is their median.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "spaced")]
    pub runs: Vec<f64>,
}

impl Row {
    /// Returns the bytes that must be moved.
    pub fn bytes(&self) -> usize {
        bytes(self.pass, self.num_seqs * self.seq_len, self.element.bytes())
    }

    /// Returns the throughput in units of 10^9 bytes per second, with more digits than
    /// [`Row::gb_per_s`].
    pub fn throughput(&self) -> f64 {
        self.bytes() as f64 / self.ms.value / 1e6
    }

    /// Returns the cells that tables show: milliseconds, GB, GB/s, the fraction of the roof, and
    /// the configuration, which is the engine's name without the kernel's.
    pub fn cells(&self) -> [String; 5] {
        [
            format!("{:.4}", self.ms.value),
            format!("{:.3}", self.bytes() as f64 / 1e9),
            format!("{:.0}", self.throughput()),
            format!("{:.3}", self.ratio.value),
            self.engine.split_once(':').map_or("", |(_, rest)| rest).to_owned(),
        ]
    }

    /// Returns true if the row measures this engine and problem, whatever its date.
    pub fn is_of(
        &self,
        element: ElementType,
        pass: Pass,
        engine: &str,
        shape: (usize, usize),
    ) -> bool {
        let mine = (self.element, self.pass, self.num_seqs, self.seq_len);
        mine == (element, pass, shape.0, shape.1) && self.engine == engine
    }
}

/// A speed that somebody else's code reached.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Peer {
    /// The pass.
    #[serde(rename = "workload", with = "displayed")]
    pub pass: Pass,
    /// The number of sequences.
    pub num_seqs: usize,
    /// The length of each sequence.
    pub seq_len: usize,
    /// The name of the implementation.
    #[serde(rename = "implementation")]
    pub name: String,
    /// The speed in GB/s, with bytes counted as in this project.
    pub gb_per_s: f64,
}

/// The roof's time that a run is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Baseline {
    /// The roof's run of the same round.
    Round,
    /// The median of all of the roof's runs.
    Median,
}

/// The problem and the machine of a measurement.
#[derive(Debug, Clone)]
pub struct Measured<'a> {
    /// The GPU, or a description of the processor.
    pub machine: &'a str,
    /// The element type of the arrays.
    pub element: ElementType,
    /// The pass.
    pub pass: Pass,
    /// The number of sequences and their length.
    pub shape: (usize, usize),
}

impl Measured<'_> {
    /// Returns the bytes that must be read and written.
    pub fn bytes(&self) -> usize {
        bytes(self.pass, self.shape.0 * self.shape.1, self.element.bytes())
    }

    /// Makes the row of an engine that took `ms` milliseconds, when the roof took `roof`.
    pub fn row(&self, engine: &str, ms: f64, roof: f64) -> Row {
        Row {
            date: machine::date(),
            // Some readers of records go line by line.
            machine: self.machine.replace(['\n', '\r'], " "),
            element: self.element,
            pass: self.pass,
            engine: engine.to_owned(),
            num_seqs: self.shape.0,
            seq_len: self.shape.1,
            ms: Decimal::new(ms, 6),
            gb_per_s: Decimal::new(self.bytes() as f64 / ms / 1e6, 1),
            ratio: Decimal::new(roof / ms, 4),
            runs: Vec::new(),
        }
    }

    /// Makes a row of every run of every engine, round by round, from `times[engine][round]` in
    /// milliseconds. The first engine must be the roof.
    pub fn rows(&self, engines: &[String], times: &[Vec<f64>], baseline: Baseline) -> Vec<Row> {
        let roofs = times.first().map_or(&[][..], Vec::as_slice);
        let typical = median(roofs.iter().copied());
        let mut rows = Vec::new();
        for (round, &roof) in roofs.iter().enumerate() {
            let roof = if baseline == Baseline::Round { roof } else { typical };
            for (engine, times) in engines.iter().zip(times) {
                rows.extend(times.get(round).map(|&ms| self.row(engine, ms, roof)));
            }
        }
        rows
    }
}

/// Returns the bytes that a pass over arrays of `elements` elements must read and write.
pub fn bytes(pass: Pass, elements: usize, element_bytes: usize) -> usize {
    pass.arrays() * elements * element_bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csv;
    use lesson::recorded;

    #[test]
    fn a_record_is_written_as_it_was_read() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../chapters");
        let committed = [
            ("06-tile-kernel/results/h200/tables.json", "speed.csv"),
            ("09-loads-and-stores/results/h200/times.csv.gz", ""),
            ("11-tuning/results/h200/bench.csv.gz", ""),
            ("10-speed-of-memory/results/h200/ladder.csv.gz", ""),
            ("10-speed-of-memory/results/h200/tables.json", "types.csv"),
            ("11-tuning/results/h200/runs.csv.gz", ""),
        ]
        .map(|(file, table)| {
            let kept = std::fs::read(format!("{folder}/{file}")).unwrap();
            match std::str::from_utf8(&kept) {
                Ok(json) => recorded::table(json, table).unwrap(),
                Err(_) => recorded::text(&kept).unwrap(),
            }
        });
        let cpu = "2026-11-21,\"Some CPU, 2 cores, linux, AVX2, 1 thread\",f32,forward,roof,1,1024,\
                   0.001229,10.00,1.0000\n";
        let mut with_runs = 0;
        for text in committed.into_iter().chain([format!("{HEADER}\n{cpu}"), format!("{HEADER}\n")])
        {
            let header = if text.starts_with(WITH_RUNS) { WITH_RUNS } else { HEADER };
            let rows: Vec<Row> = csv::read(&text).unwrap();
            assert!(csv::write(header, &rows).unwrap() == text, "{}", &text[..200]);
            for row in rows.iter().filter(|row| !row.runs.is_empty()) {
                with_runs += 1;
                // The numbers were derived from the runs before these were rounded to a millionth
                // of a ms, which is visible if next to nothing is done to large arrays.
                assert_eq!(median(row.runs.iter().copied()), row.ms.value);
                let rounding = 0.11 + row.gb_per_s.value * 1e-6 / row.ms.value;
                assert!((row.throughput() - row.gb_per_s.value).abs() < rounding, "{row:?}");
            }
        }
        assert!(with_runs > 1000, "{with_runs}");
    }

    #[test]
    fn runs_that_are_not_numbers_are_named_with_their_line() {
        let text = format!("{WITH_RUNS}\nd,m,f32,forward,roof,1,16,1,1,1,0.5 fast\n");
        let error = csv::read::<Row>(&text).unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains("`0.5 fast` is not a list"), "{error}");
    }

    #[test]
    fn runs_are_compared_with_the_roof_of_their_round_or_with_its_median() {
        let measured = Measured {
            machine: "a GPU",
            element: ElementType::F32,
            pass: Pass::Forward,
            shape: (1000, 1000),
        };
        let engines = ["roof", "other"].map(String::from);
        let times = [vec![1.0, 2.0, 3.0], vec![4.0, 4.0, 4.0]];
        let ratios = |baseline| -> Vec<f64> {
            let rows = measured.rows(&engines, &times, baseline);
            assert_eq!((rows[1].engine.as_str(), rows[1].gb_per_s.value), ("other", 3.0));
            rows.iter().map(|row| row.ratio.value).collect()
        };
        assert_eq!(ratios(Baseline::Round), [1.0, 0.25, 1.0, 0.5, 1.0, 0.75]);
        assert_eq!(ratios(Baseline::Median), [2.0, 0.5, 1.0, 0.5, 2.0 / 3.0, 0.5]);
        assert_eq!(bytes(Pass::Backward, 1000, 8), 40_000);
    }
}
