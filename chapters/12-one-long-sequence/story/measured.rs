//! The measurements of chapter 12 on an H200, next to other implementations.
//!
//! A single row keeps one block busy and the rest of the GPU idle, so the question is how many
//! blocks can share it, and at what cost. This part shows the time of one block per row, then all
//! ways over lengths, forward and backward, as fractions of the roof. The speed of CUB's device
//! scan, with an operator on pairs, is quoted. All numbers come from committed records. `cargo
//! xtask record --check` compares the values with the committed run.

use bench::csv::{self, Table as Csv};
use bench::figure::H200_GB_PER_S;
use bench::{Peer, Race, Run, recorded};
use lesson::plot::{self, Chart, Dot, kernels};
use lesson::{Kind, Lesson, Table};
use linrec::kernels::Pass;

/// Every run of `examples/long.rs`; empty if nothing has been measured.
const RECORD: &[u8] = include_bytes!("../results/h200/long.csv.gz");
/// The speeds of other implementations, in GB/s.
const PEERS: &str = "peers.csv";
/// Better ways to call CUB, as fractions of the roof, from a trial.
const CUB: &str = "cub.csv";
const H200: &str = include_str!("../results/h200/tables.json");
const CHAPTER_11: &str = include_str!("../../11-tuning/results/h200/tables.json");

/// The ways in the order of the page: the beginning of their names in the record, and their names
/// here.
const WAYS: [(&str, &str); 6] = [
    ("wide", "a block for the row"),
    ("three", "three launches"),
    ("chained", "chained"),
    ("decoupled", "decoupled"),
    ("waves", "waves"),
    ("once", "once"),
];

/// The text in place of a number that was not measured.
const MISSING: &str = "–";

struct Record(Race);

impl Record {
    fn read() -> lesson::Result<Record> {
        Ok(Record(Race::read(&recorded::text(RECORD)?)?))
    }

    fn best(&self, pass: Pass, way: &str, seq_len: usize) -> Option<(&str, Run)> {
        self.0.of(pass).best(seq_len, |engine| engine.split(':').next() == Some(way))
    }

    fn ratio(&self, pass: Pass, way: &str, seq_len: usize) -> Option<f64> {
        self.best(pass, way, seq_len).map(|(_, run)| run.ratio)
    }

    /// Returns true, and reports it, if nothing was measured.
    fn is_missing(&self, lesson: &mut Lesson) -> bool {
        if self.0.is_empty() {
            lesson.say(
                "Not measured yet: results/h200/long.csv.gz has no rows. `examples/long.rs` fills it on a machine with an \
                 H200.",
            );
        }
        self.0.is_empty()
    }

    fn origin() -> Option<(String, String)> {
        let table = Csv::read(&recorded::text(RECORD).ok()?).ok()?;
        let row = table.rows().next()?;
        Some((row.get("machine")?.to_owned(), row.get("date")?.to_owned()))
    }
}

fn cell(ratio: Option<f64>, digits: usize) -> String {
    match ratio {
        Some(ratio) if ratio.is_finite() => format!("{ratio:.digits$}"),
        _ => MISSING.to_owned(),
    }
}

/// Formats the length as a power of two: `2^20`.
fn power(seq_len: usize) -> String {
    if seq_len.is_power_of_two() { format!("2^{}", seq_len.ilog2()) } else { seq_len.to_string() }
}

pub(super) fn problem(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("problem", "One block for one row")?;
    let record = Record::read()?;
    let seq_len = 1 << 26;
    let alone = record.best(Pass::Forward, "wide", seq_len);
    if !record.is_missing(lesson) {
        let mut table = Table::new(["kernel", "ms", "part of the roof"]);
        let roof = record.0.median(Pass::Forward, "roof", seq_len);
        for (name, run) in [roof.map(|run| ("the roof", run)), alone].into_iter().flatten() {
            table.row([name.to_owned(), format!("{:.3}", run.ms), format!("{:.3}", run.ratio)]);
        }
        lesson.say(&format!(
            "One sequence of {} steps on an H200, forward, in f32. The fastest kernel that we have with a block for each \
             row, beside the roof:",
            power(seq_len),
        ));
        lesson.table("problem.csv", Kind::Computed, &table)?;
    }
    let percent = alone.map(|(_, run)| format!("{:.1} %", 100.0 * run.ratio));
    lesson.value("alone", percent.unwrap_or(MISSING.to_owned()), Kind::Computed);
    Ok(())
}

pub(super) fn speed(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("speed", "How fast they are")?;
    let record = Record::read()?;
    let lengths = record.0.lengths(Pass::Forward);
    values(lesson, &record);
    drawn(lesson, &record)?;
    if record.is_missing(lesson) {
        return Ok(());
    }
    let (machine, date) = Record::origin().unwrap_or_default();
    let most = lengths.last().copied().unwrap_or(0);
    let runs = record.0.count(Pass::Forward, "roof", most);
    lesson.say(&format!(
        "{machine}, {date} (results/h200/long.csv.gz). One sequence in f32, forward, as a part of the roof in the same round; \
         medians of {runs} runs or more:",
    ));
    let header = ["steps", "roof, ms"].into_iter().chain(WAYS.map(|(_, name)| name));
    let mut table = Table::new(header);
    for &seq_len in &lengths {
        let roof = record.0.median(Pass::Forward, "roof", seq_len).map(|run| run.ms);
        let cells = WAYS.map(|(way, _)| cell(record.ratio(Pass::Forward, way, seq_len), 3));
        table.row([power(seq_len), cell(roof, 4)].into_iter().chain(cells));
    }
    lesson.table("speed.csv", Kind::Computed, &table)?;

    let named = WAYS.iter().filter_map(|(way, _)| record.best(Pass::Forward, way, most));
    let named: Vec<&str> = named.map(|(engine, _)| engine).collect();
    lesson.say(&format!("At {} they are {}.", power(most), named.join(", ")));

    Ok(())
}

/// Draws all ways as curves, with a quoted curve of CUB.
fn drawn(lesson: &mut Lesson, record: &Record) -> lesson::Result {
    let lengths = record.0.lengths(Pass::Forward);
    let x = |len: usize| (len as f64).log2();
    let mut chart = Chart::new("One sequence, forward, on an H200")
        .axes("steps, as a power of two", "GB/s")
        .y_range(0.0, 5000.0);
    let (from, to) = (kernels::color("pipe"), kernels::color("wide"));
    for (number, (way, name)) in WAYS.into_iter().enumerate() {
        let points = lengths
            .iter()
            .filter_map(|&len| Some((x(len), record.best(Pass::Forward, way, len)?.1.gb_per_s)));
        let color = kernels::mixed(from, to, number as f64 / 5.0);
        let points: Vec<_> = points.collect();
        // A way without points gets no entry in the legend.
        let name = if points.is_empty() { "" } else { name };
        chart = chart.measured(name, points).color(color).dot(Dot::ALL[number % Dot::ALL.len()]);
    }
    let cub = cub()?;
    let quoted = cub.iter().map(|&(len, gb_per_s)| (x(len), gb_per_s));
    chart = chart.dashed("CUB's device scan (quoted)", quoted).color(kernels::color("post"));
    let roof = lengths
        .iter()
        .filter_map(|&len| Some((x(len), record.0.median(Pass::Forward, "roof", len)?.gb_per_s)));
    let roof: Vec<_> = roof.collect();
    let name = if roof.is_empty() { "" } else { "the roof" };
    chart = chart.dashed(name, roof).color(kernels::color("roof"));
    let ends = [lengths.iter().copied().min(), lengths.iter().copied().max()];
    let ends = [ends[0].unwrap_or(1 << 16), ends[1].unwrap_or(1 << 28)];
    chart = chart
        .dashed("4.8 TB/s: the data sheet", ends.map(|len| (x(len), H200_GB_PER_S)))
        .color(kernels::BANDWIDTH);
    let svg = plot::svg(&[&chart])?;
    lesson.figure("speed.svg", "Ways to one sequence over lengths", Kind::Computed, &svg)
}

fn values(lesson: &mut Lesson, record: &Record) {
    for (way, _) in WAYS {
        for bits in [16, 18, 20, 22, 24, 26, 28, 30] {
            let ratio = record.ratio(Pass::Forward, way, 1 << bits);
            lesson.value(&format!("{way}_{bits}"), cell(ratio, 2), Kind::Computed);
            let us = record.best(Pass::Forward, way, 1 << bits).map(|(_, run)| 1e3 * run.ms);
            lesson.value(&format!("{way}_{bits}_us"), cell(us, 1), Kind::Computed);
        }
    }
    for bits in [16, 20] {
        let us = record.0.median(Pass::Forward, "roof", 1 << bits).map(|run| 1e3 * run.ms);
        lesson.value(&format!("roof_{bits}_us"), cell(us, 1), Kind::Computed);
    }
    // The time that a tile of 8192 steps waits for the tile before it.
    let chained = record.best(Pass::Forward, "chained", 1 << 28).map(|(_, run)| run.ms);
    let hop = chained.map(|ms| 1e6 * ms / f64::from(1 << 15));
    lesson.value("chained_hop_ns", cell(hop, 0), Kind::Computed);
    for (way, measured) in [("waves", 18..=30), ("once", 18..=22)] {
        for bits in measured.step_by(2) {
            let ratio = record.ratio(Pass::Backward, way, 1 << bits);
            lesson.value(&format!("backward_{way}_{bits}"), cell(ratio, 2), Kind::Computed);
        }
    }
    let origin = match Record::origin() {
        Some((machine, date)) => format!("{machine}, {date}"),
        None => String::from("not measured yet, and its numbers are dashes on this page"),
    };
    lesson.value("measured_on", origin, Kind::Computed);
}

pub(super) fn backward(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("backward", "Backward")?;
    let record = Record::read()?;
    if record.is_missing(lesson) {
        return Ok(());
    }
    lesson.say("The same for the backward pass, whose roof reads three arrays and writes two:");
    let mut table = Table::new(["steps", "roof, ms", "a block for the row", "waves", "once"]);
    for seq_len in record.0.lengths(Pass::Backward) {
        let roof = record.0.median(Pass::Backward, "roof", seq_len).map(|run| run.ms);
        let cells = ["wide", "waves", "once"]
            .map(|way| cell(record.ratio(Pass::Backward, way, seq_len), 3));
        table.row([power(seq_len), cell(roof, 4)].into_iter().chain(cells));
    }
    lesson.table("backward.csv", Kind::Computed, &table)
}

/// Reads the lengths and GB/s of CUB's device scan.
fn cub() -> lesson::Result<Vec<(usize, f64)>> {
    let peers = csv::read::<Peer>(&recorded::table(CHAPTER_11, PEERS)?)?.into_iter();
    let mine = peers.filter(|peer| peer.num_seqs == 1 && peer.name.starts_with("CUB"));
    Ok(mine.map(|peer| (peer.seq_len, peer.gb_per_s)).collect())
}

pub(super) fn quoted(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("cub", "Beside CUB")?;
    let record = Record::read()?;
    lesson.say(
        "CUB's device scan with an operator on pairs, on an H200 in November 2026, quoted \
         (peers.csv in chapters/11-tuning/results/h200/tables.json); and the part of the roof of this chapter's record, which is of another \
         day:",
    );
    let mut table = Table::new(["steps", "GB/s", "part of the roof", "waves or once"]);
    for (seq_len, gb_per_s) in cub()? {
        let roof =
            record.0.median(Pass::Forward, "roof", seq_len).map(|run| gb_per_s / run.gb_per_s);
        let ours = ["waves", "once"].map(|way| record.ratio(Pass::Forward, way, seq_len));
        let ours = ours.into_iter().flatten().reduce(f64::max);
        table.row([power(seq_len), format!("{gb_per_s:.0}"), cell(roof, 2), cell(ours, 2)]);
    }
    lesson.table("cub.csv", Kind::Computed, &table)?;

    lesson.say("Better ways to call it, as parts of an addition's speed (cub.csv in results/h200/tables.json):");
    let mut table = Table::new(["CUB 3.6", "steps", "part of the roof"]);
    for row in Csv::read(&recorded::table(H200, CUB)?)?.rows() {
        let ratio = row.number("ratio")?;
        table.row([
            row.text("how")?.to_owned(),
            power(row.number("seq_len")?),
            cell(Some(ratio), 3),
        ]);
    }
    lesson.table("cub-called.csv", Kind::Computed, &table)
}
