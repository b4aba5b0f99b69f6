//! What was measured on an H200, as it lies in `results/h200`.

use std::collections::BTreeMap;

use linrec::kernels::Pass;
use linrec::lesson;

use crate::attrs::Taken;
use crate::log::{self, Line};

/// Tables of `tour attrs`.
const ATTRS: [&str; 5] = [
    include_str!("../results/h200/attrs-ref-f32.csv"),
    include_str!("../results/h200/attrs-tile-f32.csv"),
    include_str!("../results/h200/attrs-pipe-f32.csv"),
    include_str!("../results/h200/attrs-rows-f32.csv"),
    include_str!("../results/h200/attrs-wide-f32.csv"),
];

/// The GPU.
const MACHINE: &str = include_str!("../results/h200/machine.csv");

/// The record of `tour tune`.
const RUNS: &str = include_str!("../results/h200/runs.csv");

/// The record of `tour bench`.
const BENCH: &str = include_str!("../results/h200/bench.csv");

/// What others reach: quoted, with its source.
const PEERS: &str = include_str!("../results/h200/peers.csv");

/// What every configuration takes.
///
/// # Errors
///
/// A sentence, if the record cannot be read.
pub fn attrs() -> lesson::Result<Vec<Taken>> {
    let tables: Result<Vec<_>, _> = ATTRS.into_iter().map(Taken::read).collect();
    Ok(tables?.concat())
}

/// A property of the GPU by the name of its column; empty if it was not recorded.
pub fn machine(column: &str) -> &'static str {
    let mut lines = MACHINE.lines().map(|line| line.split(','));
    let (Some(mut header), Some(mut cells)) = (lines.next(), lines.next()) else { return "" };
    header.position(|name| name == column).and_then(|place| cells.nth(place)).unwrap_or("")
}

/// Every configuration at every length.
///
/// # Errors
///
/// A sentence, if the record cannot be read.
pub fn tuning() -> lesson::Result<Vec<Line>> {
    log::read(RUNS)
}

/// The fastest of each kernel beside the roof.
///
/// # Errors
///
/// A sentence, if the record cannot be read.
pub fn race() -> lesson::Result<Race> {
    Race::read(BENCH)
}

/// One measurement, or the medians of several.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Run {
    /// Milliseconds.
    pub ms: f64,
    /// Bytes that have to be moved, per second, in units of 10^9.
    pub gb_per_s: f64,
    /// The same as a part of the roof's in the same round.
    pub ratio: f64,
}

/// The runs of a race, by pass, engine and length.
#[derive(Debug, Clone, Default)]
pub struct Race(BTreeMap<(&'static str, String, usize), Vec<Run>>);

impl Race {
    /// Reads a record with the columns of [`HEADER`](crate::race::HEADER).
    ///
    /// # Errors
    ///
    /// A sentence with the line that cannot be read.
    pub fn read(csv: &str) -> lesson::Result<Race> {
        let mut race = Race::default();
        for line in csv.lines().skip(1) {
            let mut read = || -> Option<()> {
                let cells: Vec<&str> = line.split(',').collect();
                let [_, _, _, pass, engine, _, seq_len, ms, gb_per_s, ratio] = cells[..] else {
                    return None;
                };
                let pass: Pass = pass.parse().ok()?;
                let key = (pass.name(), engine.to_owned(), seq_len.parse().ok()?);
                let run = Run {
                    ms: ms.parse().ok()?,
                    gb_per_s: gb_per_s.parse().ok()?,
                    ratio: ratio.parse().ok()?,
                };
                race.0.entry(key).or_default().push(run);
                Some(())
            };
            read().ok_or_else(|| format!("`{line}` is no line of a race"))?;
        }
        Ok(race)
    }

    /// Whether nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Every length of a pass, in order.
    pub fn lengths(&self, pass: Pass) -> Vec<usize> {
        let of_pass = self.0.keys().filter(|(name, ..)| *name == pass.name());
        let mut lengths: Vec<usize> = of_pass.map(|&(.., len)| len).collect();
        lengths.sort_unstable();
        lengths.dedup();
        lengths
    }

    /// The medians of an engine's runs at a length.
    pub fn median(&self, pass: Pass, engine: &str, seq_len: usize) -> Option<Run> {
        self.0.get(&(pass.name(), engine.to_owned(), seq_len)).map(|runs| medians(runs))
    }

    /// How many runs there are of an engine at a length.
    pub fn count(&self, pass: Pass, engine: &str, seq_len: usize) -> usize {
        self.0.get(&(pass.name(), engine.to_owned(), seq_len)).map_or(0, Vec::len)
    }

    /// The fastest of all kernels at a length, and its medians.
    pub fn fastest(&self, pass: Pass, seq_len: usize) -> Option<(&str, Run)> {
        let kernels = crate::configs::KERNELS.iter();
        let runs = kernels.filter_map(|name| self.kernel(pass, name, seq_len));
        runs.max_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio))
    }

    /// The fastest configuration of a kernel that ran at a length, and its medians.
    pub fn kernel(&self, pass: Pass, name: &str, seq_len: usize) -> Option<(&str, Run)> {
        let of = |engine: &str| engine.split_once(':').is_some_and(|(kernel, _)| kernel == name);
        self.best(pass, seq_len, of)
    }

    /// The fastest of some engines at a length, and its medians.
    pub fn best(
        &self,
        pass: Pass,
        seq_len: usize,
        wanted: impl Fn(&str) -> bool,
    ) -> Option<(&str, Run)> {
        let here = self.0.iter().filter(|((of, engine, len), _)| {
            *of == pass.name() && *len == seq_len && wanted(engine)
        });
        let runs = here.map(|((_, engine, _), runs)| (engine.as_str(), medians(runs)));
        runs.max_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio))
    }
}

fn medians(runs: &[Run]) -> Run {
    Run {
        ms: crate::median(runs.iter().map(|run| run.ms)),
        gb_per_s: crate::median(runs.iter().map(|run| run.gb_per_s)),
        ratio: crate::median(runs.iter().map(|run| run.ratio)),
    }
}

/// A speed that somebody else's code reached.
#[derive(Debug, Clone, PartialEq)]
pub struct Peer {
    /// Which computation.
    pub pass: Pass,
    /// How many sequences.
    pub num_seqs: usize,
    /// How long they are.
    pub seq_len: usize,
    /// Whose it is.
    pub name: String,
    /// Its speed, with the same count of bytes as ours.
    pub gb_per_s: f64,
}

/// The peers with 13,200 sequences.
pub fn peers() -> Vec<Peer> {
    let read = |line: &str| -> Option<Peer> {
        let cells = unquoted(line);
        let [pass, num_seqs, seq_len, name, gb_per_s, _, _] = &cells[..] else { return None };
        Some(Peer {
            pass: pass.parse().ok()?,
            num_seqs: num_seqs.parse().ok()?,
            seq_len: seq_len.parse().ok()?,
            name: name.clone(),
            gb_per_s: gb_per_s.parse().ok()?,
        })
    };
    let peers = PEERS.lines().skip(1).filter_map(read);
    peers.filter(|peer| peer.num_seqs == 13_200).collect()
}

/// The cells of a line of CSV, some of them between quotation marks.
fn unquoted(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut quoted = false;
    for letter in line.chars() {
        match (letter, quoted) {
            ('"', _) => quoted = !quoted,
            (',', false) => cells.push(String::new()),
            _ => cells.last_mut().into_iter().for_each(|cell| cell.push(letter)),
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_recorded_can_be_read() {
        attrs().unwrap();
        tuning().unwrap();
        race().unwrap();
        let peers = peers();
        assert!(peers.len() > 90, "{}", peers.len());
        let known = peers.iter().find(|peer| {
            peer.name.contains("CUDA pipe best")
                && peer.pass == Pass::Backward
                && peer.seq_len == 16
        });
        assert_eq!(known.map(|peer| peer.gb_per_s), Some(221.7));
        assert_eq!(machine("no such column"), "");
    }

    #[test]
    fn medians_of_a_small_race() {
        let csv = "head\nd,m,f32,forward,pipe:8x64:0,10,16,3,1,0.5\nd,m,f32,forward,pipe:8x64:0,10,16,1,9,0.7\n\
                   d,m,f32,forward,pipe:8x64:0,10,16,2,5,0.6\n";
        let race = Race::read(csv).unwrap();
        let run = Run { ms: 2.0, gb_per_s: 5.0, ratio: 0.6 };
        assert_eq!(race.kernel(Pass::Forward, "pipe", 16), Some(("pipe:8x64:0", run)));
        assert_eq!(race.count(Pass::Forward, "pipe:8x64:0", 16), 3);
        assert_eq!(race.kernel(Pass::Backward, "pipe", 16), None);
        assert_eq!(race.lengths(Pass::Forward), [16]);
        let error = Race::read("head\n1,2\n").unwrap_err().to_string();
        assert!(error.contains("`1,2`"), "{error}");
    }

    #[test]
    fn cells_may_hold_commas() {
        assert_eq!(unquoted("a,\"b, c\",,d"), ["a", "b, c", "", "d"]);
    }
}
