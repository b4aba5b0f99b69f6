//! The measurements of the package on a GPU, from its records.
//!
//! This module times nothing: the programs in `python/benches` and `python/peers` took the records
//! in `results/h200`. The module shows the records as tables and a figure, and publishes every
//! value that the page quotes. It reports an empty record as not measured yet, so the chapter runs
//! before its measurements exist.

use std::collections::BTreeMap;

use bench::csv::Table as Csv;
use bench::{median, recorded};
use lesson::plot::{self, Chart};
use lesson::{Kind, Lesson, Table};

use super::trained::origin;

/// The record of `python/benches/overhead.py`: all runs.
const CALLS: &str = "overhead.csv";
/// The cost of a call before plain calls bypassed the dispatcher: medians.
const BEFORE: &str = "before.csv";
/// The record of `python/benches/figure.py`: all runs.
const FIGURE: &[u8] = include_bytes!("../results/h200/figure.csv.gz");
const TWO_SUMS: &str = "heinsen.csv";
/// The record of `python/benches/selective.py`: all runs.
const SELECTIVE: &str = "selective.csv";
/// Chapter 14's record: the fused scan, launched from Rust.
const FROM_RUST: &str = "scan.csv";
/// The record of `python/peers/run.py`: the counts of each suite.
const PEERS: &str = "peers.csv";
const H200: &str = include_str!("../results/h200/tables.json");
const CHAPTER_14: &str = include_str!("../../14-fused-scan/results/h200/tables.json");

/// Reads a record; returns `None` and a sentence if nothing has been measured yet.
fn measured(lesson: &mut Lesson, text: &str) -> lesson::Result<Option<Csv>> {
    let record = Csv::read(text)?;
    if record.rows().next().is_none() {
        lesson.say(
            "This has not been measured on a GPU yet: its record in results/h200 has no rows.",
        );
        return Ok(None);
    }
    Ok(Some(record))
}

/// Returns the medians of a column for each word of another one, in the order of the record.
fn medians(
    record: &Csv,
    wanted: &[(&str, &str)],
    (name, number): (&str, &str),
) -> lesson::Result<Vec<(String, f64)>> {
    let mut names = Vec::new();
    let mut runs: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for row in record.rows_with(wanted) {
        let of = runs.entry(row.text(name)?.to_owned()).or_default();
        if of.is_empty() {
            names.push(row.text(name)?.to_owned());
        }
        of.push(row.number(number)?);
    }
    Ok(names.into_iter().map(|name| (name.clone(), median(runs[&name].iter().copied()))).collect())
}

/// The aim, in microseconds above an empty operator.
const AIM: f64 = 8.0;

pub(super) fn calls(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("calls", "What a call costs")?;
    let Some(record) = measured(lesson, &recorded::table(H200, CALLS)?)? else { return Ok(()) };
    lesson.say(&format!(
        "Microseconds of a call on four rows of 32 steps, by the clock on the wall: the kernel is shorter than the call \
         ({}).",
        origin(&record)?
    ));
    let kinds = ["call", "call, recorded", "both passes"];
    let mut columns = Vec::new();
    for kind in kinds {
        columns.push(medians(&record, &[("what", kind)], ("name", "microseconds"))?);
    }
    let mut table = Table::new(["what", "a call", "recorded for gradients", "both passes"]);
    for (name, _) in &columns[0] {
        let cell = |column: &Vec<(String, f64)>| {
            let found = column.iter().find(|(one, _)| one == name);
            found.map_or("–".to_owned(), |(_, us)| format!("{us:.1}"))
        };
        table.row([name.clone(), cell(&columns[0]), cell(&columns[1]), cell(&columns[2])]);
    }
    lesson.table("calls.csv", Kind::Computed, &table)?;
    let of = |column: usize, wanted: &str| -> lesson::Result<f64> {
        let found = columns[column].iter().find(|(name, _)| name == wanted);
        Ok(found.ok_or("a name is missing in overhead.csv")?.1)
    };
    let mut above =
        Table::new(["call", "linrec", "an empty operator with gradients", "above it", "aim"]);
    for (column, kind) in kinds.into_iter().enumerate() {
        let (ours, empty) =
            (of(column, "linrec")?, of(column, "an empty operator with gradients")?);
        above.row([
            kind.to_owned(),
            format!("{ours:.1}"),
            format!("{empty:.1}"),
            format!("{:+.1}", ours - empty),
            format!("{AIM:.0}"),
        ]);
        let key = ["call", "recorded", "both"][column];
        lesson.value(&format!("{key}_linrec"), format!("{ours:.1}"), Kind::Computed);
        lesson.value(&format!("{key}_empty"), format!("{empty:.1}"), Kind::Computed);
        lesson.value(&format!("{key}_above"), format!("{:+.1}", ours - empty), Kind::Computed);
    }
    for (key, column, name) in [
        ("call_add", 0, "torch.add"),
        ("call_nothing", 0, "an empty operator"),
        ("call_operator", 0, "torch.ops.linrec.scan"),
        ("recorded_operator", 1, "torch.ops.linrec.scan"),
        ("both_function", 2, "an empty autograd.Function"),
    ] {
        lesson.value(key, format!("{:.1}", of(column, name)?), Kind::Computed);
    }
    lesson.say("Above an operator that does nothing, in the three cases:");
    lesson.table("above.csv", Kind::Computed, &above)?;
    let before = Csv::read(&recorded::table(H200, BEFORE)?)?;
    let mut table = Table::new(["before, on the same kind of machine", "microseconds"]);
    for row in before.rows() {
        table.row([row.text("name")?, row.text("microseconds")?]);
    }
    lesson.say(&format!("Before calls went past the dispatcher ({}):", origin(&before)?));
    lesson.table("before.csv", Kind::Computed, &table)
}

/// The engines of the figure in the order of its legend, and the heads of their columns.
const ENGINES: [(&str, &str); 10] = [
    ("linrec", "linrec"),
    ("accelerated-scan warp", "accel. warp"),
    ("accelerated-scan Triton", "accel. Triton"),
    ("Triton tile", "Triton tile"),
    ("Triton pipe", "Triton pipe"),
    ("mamba-ssm", "mamba-ssm"),
    ("torch associative_scan", "torch assoc."),
    ("jax.lax.associative_scan", "JAX assoc."),
    ("Heinsen's two sums", "two sums"),
    ("a loop in Python", "loop"),
];

pub(super) fn race(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("race", "The post's figure from Python")?;
    let Some(record) = measured(lesson, &recorded::text(FIGURE)?)? else { return Ok(()) };
    let first = record.rows().next().ok_or("figure.csv is empty")?;
    lesson.say(&format!(
        "{} rows of f32: the time of torch.add as a part of each one's time in the same round, the median of the rounds, in one process ({}). JAX is timed by the \
         wall, over calls that are queued; the others by events on the GPU, and a blank is a length that it does not take or \
         that was left out.",
        first.text("num_seqs")?,
        origin(&record)?
    ));
    let mut lengths: Vec<usize> = Vec::new();
    for row in record.rows() {
        lengths.push(row.number("seq_len")?);
    }
    lengths.sort_unstable();
    lengths.dedup();
    let mut table = Table::new(
        ["length", "torch.add, ms"].into_iter().chain(ENGINES.iter().map(|(_, short)| *short)),
    );
    let mut curves = vec![Vec::new(); ENGINES.len()];
    let mut behind = Vec::new();
    let mut least = f64::INFINITY;
    for &length in &lengths {
        let length_text = length.to_string();
        let wanted = [("seq_len", length_text.as_str())];
        let times = medians(&record, &wanted, ("engine", "ms"))?;
        // Medians of the rounds' ratios, as the GPU's speed may change from one round to the next.
        let ratios = medians(&record, &wanted, ("engine", "ratio"))?;
        let of = |all: &[(String, f64)], engine: &str| {
            all.iter().find(|(name, _)| name == engine).map(|(_, number)| *number)
        };
        let add = of(&times, "torch.add").ok_or("torch.add is missing in figure.csv")?;
        let ours = of(&ratios, "linrec").ok_or("linrec is missing in figure.csv")?;
        let mut cells = vec![length_text.clone(), format!("{add:.4}")];
        for (number, (engine, _)) in ENGINES.into_iter().enumerate() {
            let ratio = of(&ratios, engine);
            cells.push(ratio.map_or(String::new(), |ratio| format!("{ratio:.3}")));
            if let Some(ratio) = ratio {
                if engine == "torch associative_scan" {
                    let key = format!("associative_{length}");
                    lesson.value(&key, format!("{ratio:.2}"), Kind::Computed);
                }
                curves[number].push((length as f64, ratio));
                if engine != "linrec" && ratio > ours {
                    behind.push(format!("{engine} at {length}"));
                }
            }
        }
        if length >= 1024 {
            least = least.min(ours);
        }
        table.row(cells);
    }
    lesson.table("race.csv", Kind::Computed, &table)?;
    lesson.value("least_from_1024", format!("{least:.3}"), Kind::Computed);
    let behind = if behind.is_empty() { "none".to_owned() } else { behind.join(", ") };
    lesson.say(&format!("Faster than linrec in this run: {behind}."));
    lesson.value("faster", behind, Kind::Computed);
    let mut chart = Chart::new("Parts of the speed of torch.add, from Python")
        .axes("length of the rows", "torch.add's time / the time")
        .log_x(2.0)
        .y_range(0.0, 1.2);
    for ((number, (engine, _)), curve) in ENGINES.into_iter().enumerate().zip(curves) {
        chart = match number {
            0..=5 => chart.line(engine, curve),
            _ => chart.dashed(engine, curve),
        };
        chart = chart.color(plot::COLORS[number % plot::COLORS.len()]);
    }
    lesson.figure("race.svg", "From Python", Kind::Computed, &plot::svg(&[&chart])?)
}

pub(super) fn two_sums(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("sums", "Two cumulative sums, in torch")?;
    let Some(record) = measured(lesson, &recorded::table(H200, TWO_SUMS)?)? else { return Ok(()) };
    lesson.say(&format!(
        "Chapter 15's two sums of logarithms as PyTorch's users write them, beside the recurrence; inputs in (0, 1], \
         coefficients in (0.98, 1] ({}). Bytes are those that the operations read and write, the peak is memory beside the \
         inputs, both for an element; the error is a part of the largest output.",
        origin(&record)?
    ));
    let mut table =
        Table::new(["length", "by", "ms", "bytes", "kernels", "peak", "error", "digits"]);
    for row in record.rows() {
        let error: f64 = row.number("error")?;
        table.row([
            row.text("seq_len")?.to_owned(),
            row.text("engine")?.to_owned(),
            format!("{:.4}", row.number::<f64>("ms")?),
            format!("{:.0}", row.number::<f64>("bytes_per_element")?),
            row.text("launches")?.to_owned(),
            row.text("peak_bytes_per_element")?.to_owned(),
            format!("{error:.1e}"),
            format!("{:.1}", -error.log10()),
        ]);
    }
    lesson.table("two-sums.csv", Kind::Computed, &table)
}

pub(super) fn selective(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("selective", "Mamba's scan, by its own name")?;
    let Some(record) = measured(lesson, &recorded::table(H200, SELECTIVE)?)? else { return Ok(()) };
    let from_rust = Csv::read(&recorded::table(CHAPTER_14, FROM_RUST)?)?;
    lesson.say(&format!(
        "Milliseconds of selective_scan on 8 rows of 2048 channels with 16 states, forward, between two events on the GPU \
         ({}); and of the same kernel launched from Rust, from chapter 14's record.",
        origin(&record)?
    ));
    let mut shapes: Vec<(String, String)> = Vec::new();
    for row in record.rows() {
        let shape = (row.text("element")?.to_owned(), row.text("seq_len")?.to_owned());
        if !shapes.contains(&shape) {
            shapes.push(shape);
        }
    }
    let mut table = Table::new(["type", "length", "linrec", "mamba-ssm", "times", "from Rust"]);
    for (element, length) in shapes {
        let wanted = [("element", element.as_str()), ("seq_len", length.as_str())];
        let found = medians(&record, &wanted, ("engine", "ms"))?;
        let of = |engine: &str| found.iter().find(|(name, _)| name == engine).map(|(_, ms)| *ms);
        let of_chapter_14 = [
            ("element", element.as_str()),
            ("seq_len", length.as_str()),
            ("pass", "forward"),
            ("batch", "8"),
            ("channels", "2048"),
            ("states", "16"),
            ("exponential", "fast"),
        ];
        let rust = match from_rust.rows_with(&of_chapter_14).next() {
            Some(row) => Some(row.number::<f64>("ms")?),
            None => None,
        };
        let cell = |ms: Option<f64>, digits: usize| {
            ms.map_or(String::new(), |ms| format!("{ms:.digits$}"))
        };
        let ours = of("linrec");
        let times = of("mamba-ssm").zip(ours).map(|(theirs, ours)| theirs / ours);
        let cells = [cell(ours, 4), cell(of("mamba-ssm"), 4), cell(times, 2), cell(rust, 4)];
        table.row([element.clone(), length.clone()].into_iter().chain(cells));
    }
    lesson.table("selective.csv", Kind::Computed, &table)
}

pub(super) fn peers(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("peers", "Other people's tests")?;
    let Some(record) = measured(lesson, &recorded::table(H200, PEERS)?)? else { return Ok(()) };
    lesson.say(&format!(
        "Cases of the suites of other packages, with their operators replaced by ours ({}). What is left out is about other \
         things: an LPC of higher order, and the block around Mamba's scan.",
        origin(&record)?
    ));
    let mut table = Table::new(["suite", "revision", "passed", "failed", "skipped", "left out"]);
    for row in record.rows() {
        let column = |name: &str| row.text(name).map(str::to_owned);
        table.row([
            column("suite")?,
            column("revision")?,
            column("passed")?,
            column("failed")?,
            column("skipped")?,
            column("left_out")?,
        ]);
        let key = row.text("suite")?.replace('-', "_");
        lesson.value(&format!("{key}_passed"), row.text("passed")?, Kind::Computed);
    }
    lesson.table("peers.csv", Kind::Computed, &table)
}
