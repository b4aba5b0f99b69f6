//! Reads the measurements of an H200 in `results/h200`.

use std::sync::LazyLock;

use bench::attrs::Taken;
use bench::csv::{self, Table};
use bench::{Peer, Race, Row, recorded};
use linrec::kernels::ElementType;

/// The tables of `tour attrs`.
const ATTRS: [&str; 5] = [
    "attrs-ref-f32.csv",
    "attrs-tile-f32.csv",
    "attrs-pipe-f32.csv",
    "attrs-rows-f32.csv",
    "attrs-wide-f32.csv",
];

/// The description of the GPU.
const MACHINE: &str = "machine.csv";

/// The record of `tour tune`: all runs over 13,200 sequences of `f32`, and the smallest, median and
/// largest time of other runs (`crates/bench/examples/shorten.rs`).
const RUNS: &[u8] = include_bytes!("../results/h200/runs.csv.gz");

/// The record of `tour bench`.
const BENCH: &[u8] = include_bytes!("../results/h200/bench.csv.gz");

/// Quoted speeds of other implementations, with their sources.
const PEERS: &str = "peers.csv";

const H200: &str = include_str!("../results/h200/tables.json");

/// Reads the resources that every configuration uses.
///
/// # Errors
///
/// Returns an error if the record cannot be read.
pub fn attrs() -> lesson::Result<Vec<Taken>> {
    let read = |file| csv::read(&recorded::table(H200, file)?);
    let tables: lesson::Result<Vec<_>> = ATTRS.into_iter().map(read).collect();
    Ok(tables?.concat())
}

/// Returns a property of the GPU by the name of its column, or an empty string if it was not
/// recorded.
pub fn machine(column: &str) -> String {
    let table = recorded::table(H200, MACHINE).and_then(|csv| Table::read(&csv));
    let row = table.iter().flat_map(Table::rows).next();
    row.and_then(|row| row.get(column)).unwrap_or_default().to_owned()
}

/// Reads every configuration at every length, for 13,200 sequences of `f32`.
///
/// # Errors
///
/// Returns an error if the record cannot be read.
pub fn tuning() -> lesson::Result<Vec<Row>> {
    let many = |line: &Row| (line.num_seqs, line.element) == (13_200, ElementType::F32);
    runs(many)
}

/// Reads all configurations in `f32`, over numbers of sequences and lengths.
///
/// # Errors
///
/// Returns an error if the record cannot be read.
pub fn plane() -> lesson::Result<Vec<Row>> {
    let of = |line: &Row| line.element == ElementType::F32;
    runs(of)
}

/// Returns the wanted lines of the record. The record is long, so it is parsed once.
fn runs(are_wanted: impl Fn(&Row) -> bool) -> lesson::Result<Vec<Row>> {
    static ALL: LazyLock<Result<Vec<Row>, String>> = LazyLock::new(|| {
        let lines = recorded::text(RUNS).and_then(|text| csv::read(&text));
        lines.map_err(|error| error.to_string())
    });
    let all = ALL.as_ref().map_err(Clone::clone)?;
    Ok(all.iter().filter(|line| are_wanted(line)).cloned().collect())
}

/// Reads the race of each kernel's fastest configuration against the roof.
///
/// # Errors
///
/// Returns an error if the record cannot be read.
pub fn race() -> lesson::Result<Race> {
    Race::read(&recorded::text(BENCH)?)
}

/// Reads the peers with 13,200 sequences.
///
/// # Errors
///
/// Returns an error if the record cannot be read.
pub fn peers() -> lesson::Result<Vec<Peer>> {
    let peers = csv::read::<Peer>(&recorded::table(H200, PEERS)?)?.into_iter();
    Ok(peers.filter(|peer| peer.num_seqs == 13_200).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use linrec::kernels::Pass;

    #[test]
    fn every_record_can_be_read() {
        attrs().unwrap();
        assert!(tuning().unwrap().len() < plane().unwrap().len());
        race().unwrap();
        let peers = peers().unwrap();
        assert!(peers.len() > 90, "{}", peers.len());
        let known = peers.iter().find(|peer| {
            peer.name.contains("CUDA pipe best")
                && peer.pass == Pass::Backward
                && peer.seq_len == 16
        });
        assert_eq!(known.map(|peer| peer.gb_per_s), Some(221.7));
        assert_eq!(machine("no such column"), "");
    }
}
