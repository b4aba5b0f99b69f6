//! One run of one engine, in the columns that all of the project's benchmarks share.

use lesson::machine;
use linrec::kernels::{ElementType, Pass};
use serde::{Deserialize, Serialize};

use crate::csv::{self, Decimal, displayed};
use crate::median;

/// The columns: the fields of a [`Row`].
pub const HEADER: &str = "date,machine,element,direction,engine,num_seqs,seq_len,ms,gb_per_s,ratio";

/// One run.
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
    #[serde(with = "displayed")]
    pub direction: Pass,
    /// The engine: `roof`, or a kernel in [`KernelChoice`](linrec::kernels::KernelChoice)'s
    /// notation.
    pub engine: String,
    /// The number of sequences.
    pub num_seqs: usize,
    /// The length of each sequence.
    pub seq_len: usize,
    /// Milliseconds.
    pub ms: Decimal,
    /// The throughput in units of 10^9 bytes per second, over the bytes that must be moved.
    pub gb_per_s: Decimal,
    /// The roof's time divided by this run's time.
    pub ratio: Decimal,
}

impl Row {
    /// Reads a record.
    ///
    /// # Errors
    ///
    /// Returns an error that quotes the line if a line cannot be read.
    pub fn read(text: &str) -> lesson::Result<Vec<Row>> {
        csv::read(text)
    }

    /// Formats rows as a record.
    ///
    /// # Errors
    ///
    /// A row can always be written, so no error is known.
    pub fn to_csv(rows: &[Row]) -> lesson::Result<String> {
        Ok(format!("{HEADER}\n{}", csv::rows(rows)?))
    }
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

    /// Makes a row of every run of every engine, round by round, from `times[engine][round]` in
    /// milliseconds. The first engine must be the roof.
    pub fn rows(&self, engines: &[String], times: &[Vec<f64>], baseline: Baseline) -> Vec<Row> {
        let Measured { machine, element, pass, shape: (num_seqs, seq_len) } = *self;
        let (date, bytes) = (machine::date(), self.bytes() as f64);
        let roofs = times.first().map_or(&[][..], Vec::as_slice);
        let typical = median(roofs.iter().copied());
        let row = |engine: &String, ms: f64, roof: f64| Row {
            date: date.clone(),
            machine: machine.to_owned(),
            element,
            direction: pass,
            engine: engine.clone(),
            num_seqs,
            seq_len,
            ms: Decimal::new(ms, 6),
            gb_per_s: Decimal::new(bytes / ms / 1e6, 1),
            ratio: Decimal::new(roof / ms, 4),
        };
        let mut rows = Vec::new();
        for (round, &roof) in roofs.iter().enumerate() {
            let roof = if baseline == Baseline::Round { roof } else { typical };
            let here = engines
                .iter()
                .zip(times)
                .filter_map(|(engine, times)| times.get(round).map(|&ms| row(engine, ms, roof)));
            rows.extend(here);
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
    use lesson::recorded;

    #[test]
    fn a_record_is_written_as_it_was_read() {
        let cpu = "2026-11-21,\"Some CPU, 2 cores, linux, AVX2, 1 thread\",f32,forward,roof,1,1024,0.001229,10.00,1.0000\n";
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../chapters");
        let committed = [
            "06-tile-kernel/results/h200/tables.json",
            "09-loads-and-stores/results/h200/times.csv.gz",
            "11-tuning/results/h200/bench.csv.gz",
            "10-speed-of-memory/results/h200/ladder.csv.gz",
        ]
        .map(|file| std::fs::read(format!("{folder}/{file}")).unwrap())
        .map(|kept| match std::str::from_utf8(&kept) {
            Ok(json) => recorded::table(json, "speed.csv").unwrap(),
            Err(_) => recorded::text(&kept).unwrap(),
        });
        for text in committed.into_iter().chain([format!("{HEADER}\n{cpu}"), format!("{HEADER}\n")])
        {
            assert!(Row::to_csv(&Row::read(&text).unwrap()).unwrap() == text, "{}", &text[..200]);
        }
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
