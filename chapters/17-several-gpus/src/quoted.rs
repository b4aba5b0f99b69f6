//! Measurements on several GPUs, by trial programs and by this library.

use std::collections::BTreeMap;

use bench::csv::{self, Table};
use bench::{Row, median, recorded};

/// The tables of H200s and of H100s.
const H200: &str = include_str!("../results/h200/tables.json");
const H100: &str = include_str!("../results/h100/tables.json");

/// The trials' measurements, with their source.
const TRIALS: &str = "trials.csv";
/// This library's measurements, by `tour bench --group` or the bundle: in one process, and in one
/// process for each GPU.
const RECORDS: [&[u8]; 2] = [
    include_bytes!("../results/h100/group.csv.gz"),
    include_bytes!("../results/h100/processes.csv.gz"),
];

/// Two ways to poll for a state that may have been published early.
const ASKED: &str = "asked.csv";

/// The kernels of two passes over half of a row, timed one by one, in few and in many pieces. Each
/// run has a row.
const PIECES: &str = "pieces.csv";

/// Ranks in separate processes, which sleep until a message arrives or stay awake.
const AWAKE: &str = "awake.csv";

/// One measurement of a trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// `link`, `time` or `efficiency`.
    pub what: String,
    /// The case that was measured.
    pub case: String,
    /// The number of GPUs.
    pub gpus: usize,
    /// The value.
    pub value: f64,
    /// The unit: `us`, `GB/s`, or `part` of the time of one GPU alone.
    pub unit: String,
}

/// Reads all trials, in the order of the file.
///
/// # Errors
///
/// Returns an error if the file is unreadable.
pub fn trials() -> Result<Vec<Trial>, Box<dyn std::error::Error + Send + Sync>> {
    let table = Table::read(&recorded::table(H200, TRIALS)?)?;
    let rows = table.rows().map(|row| {
        Ok(Trial {
            what: row.text("what")?.to_owned(),
            case: row.text("case")?.to_owned(),
            gpus: row.number("gpus")?,
            value: row.number("value")?,
            unit: row.text("unit")?.to_owned(),
        })
    });
    rows.collect()
}

/// Returns the milliseconds of the gradient of 16 rows on one GPU. The mailbox kernel polls
/// for a state that may have been published early: it `waits` for the value, or the load is `sent`
/// ahead with a tile.
///
/// # Errors
///
/// Returns an error if the file is unreadable, or has no such line.
pub fn asked_early(how: &str) -> Result<f64, Box<dyn std::error::Error + Send + Sync>> {
    for row in Table::read(&recorded::table(H100, ASKED)?)?.rows() {
        let of = (row.text("pass")?, row.text("num_seqs")?, row.text("way")?);
        if row.text("asked")?.starts_with(how) && of == ("backward", "16", "1") {
            return row.number("ms");
        }
    }
    Err(format!("nothing was measured that is `{how}`").into())
}

/// Returns the median milliseconds of a kernel of two passes for 2^29 steps in `pieces` pieces.
///
/// # Errors
///
/// Returns an error if the file is unreadable, or has no such line.
pub fn in_pieces(
    what: &str,
    pieces: usize,
) -> Result<f64, Box<dyn std::error::Error + Send + Sync>> {
    let mut runs = Vec::new();
    for row in Table::read(&recorded::table(H100, PIECES)?)?.rows() {
        if (row.text("what")?, row.number("pieces")?) == (what, pieces) {
            runs.push(row.number("ms")?);
        }
    }
    if runs.is_empty() {
        return Err(format!("`{what}` in {pieces} pieces was not measured").into());
    }
    Ok(median(runs))
}

/// Returns the measurement in `unit` over two processes that are `how`: asleep or awake.
///
/// # Errors
///
/// Returns an error if the file is unreadable, or has no such line.
pub fn of_processes(
    how: &str,
    unit: &str,
) -> Result<f64, Box<dyn std::error::Error + Send + Sync>> {
    for row in Table::read(&recorded::table(H100, AWAKE)?)?.rows() {
        if (row.text("ranks")?, row.text("how")?, row.text("unit")?) == ("2", how, unit) {
            return row.number("value");
        }
    }
    Err(format!("nothing was measured in {unit} of processes {how}").into())
}

/// The performance of this library in one case.
#[derive(Debug, Clone, PartialEq)]
pub struct Reached {
    /// The day, and the GPUs.
    pub measured: (String, String),
    /// `forward` or `backward`.
    pub pass: String,
    /// The number of sequences, and their length.
    pub shape: (usize, usize),
    /// The least and the largest coefficient: `0.98 to 1`.
    pub coeffs: String,
    /// The number of GPUs.
    pub gpus: usize,
    /// True if each GPU had its own process.
    pub is_spread: bool,
    /// `rows`, or the name of a way when it was measured: of a [`Way`](linrec::device::Way) of the
    /// library, `pipeline of 10`, or `passes by mail`.
    pub way: String,
    /// The median milliseconds of all runs.
    pub ms: f64,
    /// The time on one GPU, divided by the time on all of them and by their number.
    pub efficiency: f64,
}

impl Reached {
    /// Returns true for this way: `mailboxes`, or `pipeline` with any number of groups.
    pub fn is_by(&self, way: &str) -> bool {
        self.way.split(" of ").next() == Some(way)
    }
}

/// Reads all cases, in the order of the files, without the times of one GPU alone.
///
/// # Errors
///
/// Returns an error if a file is unreadable.
pub fn reached() -> Result<Vec<Reached>, Box<dyn std::error::Error + Send + Sync>> {
    let mut all = Vec::new();
    for record in RECORDS {
        // The order of the first measurement of each case.
        let mut order = Vec::new();
        let mut runs: BTreeMap<_, Vec<Row>> = BTreeMap::new();
        for row in csv::read::<Row>(&recorded::text(record)?)? {
            let case = (row.pass.to_string(), row.num_seqs, row.seq_len, row.engine.clone());
            if !runs.contains_key(&case) {
                order.push(case.clone());
            }
            runs.entry(case).or_default().push(row);
        }
        for case in &order {
            let (pass, num_seqs, seq_len, engine) = case;
            // `2 processes x mailboxes; coefficients 0.98 to 1`
            let Some((gpus, named)) = engine.split_once(" x ") else { continue };
            let (way, coeffs) = named.split_once("; coefficients ").unwrap_or((named, ""));
            let (count, is_spread) = gpus.split_once(' ').map_or((gpus, false), |(n, _)| (n, true));
            let gpus: usize = count.parse()?;
            let runs = &runs[case];
            all.push(Reached {
                measured: (runs[0].date.clone(), runs[0].machine.clone()),
                pass: pass.clone(),
                shape: (*num_seqs, *seq_len),
                coeffs: coeffs.to_owned(),
                gpus,
                is_spread,
                way: way.to_owned(),
                ms: median(runs.iter().map(|row| row.ms.value)),
                efficiency: median(runs.iter().map(|row| row.ratio.value)) / gpus as f64,
            });
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::MESSAGE;
    use linrec::device::Links;

    #[test]
    fn the_library_has_the_measured_times_of_links() {
        let trials = trials().unwrap();
        let value =
            |case: &str| trials.iter().find(|trial| trial.case.starts_with(case)).unwrap().value;
        for (case, unit, taken) in [
            ("NCCL send and receive of 8 bytes", 1e-6, MESSAGE),
            ("NCCL send and receive of 64 MiB", 1e9, Links::H200.link),
            ("NCCL all-gather", 1e-6, Links::H200.all_gather),
            ("store of a kernel", 1e-6, Links::H200.store),
        ] {
            assert!((value(case) * unit / taken - 1.0).abs() < 1e-9, "{case}");
        }
    }

    #[test]
    fn every_measurement_has_a_date_a_machine_and_a_source() {
        let table = Table::read(&recorded::table(H200, TRIALS).unwrap()).unwrap();
        for row in table.rows() {
            assert!(
                ["date", "machine", "source"]
                    .iter()
                    .all(|column| !row.get(column).unwrap().is_empty())
            );
        }
    }

    #[test]
    fn every_way_was_measured_in_one_process_and_in_several() {
        let reached = reached().unwrap();
        for is_spread in [false, true] {
            for pass in ["forward", "backward"] {
                for way in [
                    "rows",
                    "passes",
                    "tail first",
                    "pipeline",
                    "passes by mail",
                    "mailboxes",
                    "tail by mail",
                ] {
                    let is_it = |one: &&Reached| {
                        one.is_spread == is_spread && one.pass == pass && one.is_by(way)
                    };
                    let of_way: Vec<_> = reached.iter().filter(is_it).collect();
                    assert!(of_way.len() >= 5, "{pass} by {way}: {}", of_way.len());
                    assert!(of_way.iter().all(|one| one.efficiency > 0.0 && one.efficiency < 1.1));
                }
            }
        }
    }
}
