//! The models trained in PyTorch, from their records.

use bench::csv::Table as Csv;
use bench::recorded;
use lesson::plot::{self, Chart};
use lesson::{Kind, Lesson, Table};

/// The record of `python/examples/selective_copying.py`: the share of right answers during training
/// and at the end.
const COPYING: &str = "copying.csv";
const COPIED: &str = "copied.csv";
/// The results of chapter 13 in Rust.
const CHAPTER_13: &str = include_str!("../../13-mamba/results/run.json");
/// The record of `python/examples/characters.py`.
const CHARACTERS: &str = "characters.csv";
const BASELINES: &str = "baselines.csv";
const PACE: &str = "pace.csv";
const SAMPLE: &str = include_str!("../results/python/sample.txt");

fn read(file: &str) -> lesson::Result<Csv> {
    Csv::read(&recorded::table(include_str!("../results/python/tables.json"), file)?)
}

/// Returns the machine, version and date of a record, from its first row.
pub(super) fn origin(record: &Csv) -> lesson::Result<String> {
    let row = record.rows().next().ok_or("the record is empty")?;
    let (machine, torch, date) = (row.text("machine")?, row.text("torch")?, row.text("date")?);
    Ok(format!("{machine}, PyTorch {torch}, {date}"))
}

/// Returns two columns of some rows as points.
fn points(
    record: &Csv,
    wanted: &[(&str, &str)],
    (x, y): (&str, &str),
) -> lesson::Result<Vec<(f64, f64)>> {
    record.rows_with(wanted).map(|row| Ok((row.number(x)?, row.number(y)?))).collect()
}

pub(super) fn copying(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("copying", "Chapter 13's block, in PyTorch")?;
    let (record, ends) = (read(COPYING)?, read(COPIED)?);
    lesson.say(&format!(
        "The block and the task of chapter 13, with selective_scan in place of the scan in Rust ({}). Right answers to each \
         question, to all, and to all for sequences twice as long:",
        origin(&ends)?
    ));
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let columns = ["last", "before", "third", "all", "twice_as_long"];
    let mut table = Table::new([
        "by",
        "block",
        "seed",
        "last",
        "last but one",
        "before that",
        "all",
        "twice as long",
    ]);
    for row in Csv::read(&recorded::table(CHAPTER_13, "training.csv")?)?.rows() {
        let cells =
            ["block", "seed", "last", "last but one", "before that", "all", "twice as long"];
        let cells: lesson::Result<Vec<_>> = cells.iter().map(|name| row.text(name)).collect();
        table.row(["Rust"].into_iter().chain(cells?));
    }
    for row in ends.rows() {
        let mut cells: Vec<String> = vec!["PyTorch".into()];
        cells.extend([row.text("block")?.to_owned(), row.text("seed")?.to_owned()]);
        for name in columns {
            cells.push(percent(row.number(name)?));
        }
        table.row(cells);
    }
    lesson.table("copied.csv", Kind::Computed, &table)?;
    for row in ends.rows() {
        let (block, seed, all) = (row.text("block")?, row.text("seed")?, row.number::<f64>("all")?);
        let (name, value, limit) = match block {
            "selective" => ("share of wrong answers", 1.0 - all, 0.05),
            _ => ("share of right answers", all, 0.6),
        };
        lesson.check(&format!("seed {seed}, {block}: {name}"), value, limit);
    }
    let mean = |block: &str| -> lesson::Result<f64> {
        let wanted = [("block", block)];
        let shares: lesson::Result<Vec<f64>> =
            ends.rows_with(&wanted).map(|row| row.number("all")).collect();
        let shares = shares?;
        Ok(shares.iter().sum::<f64>() / shares.len().max(1) as f64)
    };
    lesson.value("selective", format!("{:.1}", 100.0 * mean("selective")?), Kind::Computed);
    lesson.value("fixed", format!("{:.1}", 100.0 * mean("fixed")?), Kind::Computed);

    let mut chart = Chart::new("Right answers to sequences that are not trained with, in PyTorch")
        .axes("step", "share of right answers")
        .y_range(0.0, 1.0);
    for (number, seed) in ["11", "12", "13"].into_iter().enumerate() {
        for (block, color) in [("selective", plot::COLORS[0]), ("fixed", plot::COLORS[1])] {
            let wanted = [("block", block), ("seed", seed)];
            let curve = points(&record, &wanted, ("step", "right"))?;
            chart = match number {
                // One legend entry for each kind; further seeds are dashed.
                0 => chart.line(block, curve),
                _ => chart.dashed("", curve),
            };
            chart = chart.color(color);
        }
    }
    lesson.figure("copying.svg", "Training", Kind::Computed, &plot::svg(&[&chart])?)
}

pub(super) fn characters(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("characters", "A model of characters")?;
    let (curve, baselines) = (read(CHARACTERS)?, read(BASELINES)?);
    lesson.say(&format!(
        "Two layers of minGRU read the first half of Alice's Adventures in Wonderland but for its last tenth, on which they \
         are tested ({}). Bits per character, beside what is reached by counting what followed the last few characters:",
        origin(&curve)?
    ));
    let mut best = f64::INFINITY;
    let mut table = Table::new(["model", "bits per character"]);
    for row in baselines.rows() {
        let bits: f64 = row.number("bits")?;
        best = best.min(bits);
        table.row([
            format!("{} characters before, counted", row.text("before")?),
            format!("{bits:.2}"),
        ]);
    }
    let last = curve.rows().last().ok_or("no row in characters.csv")?;
    let (step, unseen) = (last.text("step")?, last.number::<f64>("unseen")?);
    table.row([format!("minGRU after {step} steps"), format!("{unseen:.2}")]);
    lesson.table("bits.csv", Kind::Computed, &table)?;
    lesson.check("bits per character of the model, over the best count's", unseen / best, 0.9);
    for (key, text) in [
        ("bits", format!("{unseen:.2}")),
        ("bits_counted", format!("{best:.2}")),
        ("bits_training", format!("{:.2}", last.number::<f64>("training")?)),
        ("character_steps", step.to_owned()),
        ("character_seconds", format!("{:.0}", last.number::<f64>("seconds")?)),
    ] {
        lesson.value(key, text, Kind::Computed);
    }
    let steps: f64 = last.number("step")?;
    let chart = Chart::new("Bits per character")
        .axes("step", "bits")
        .line("text that is trained with", points(&curve, &[], ("step", "training"))?)
        .line("text that is not", points(&curve, &[], ("step", "unseen"))?)
        .dashed("the best count", [(0.0, best), (steps, best)]);
    lesson.figure(
        "characters.svg",
        "Bits per character",
        Kind::Computed,
        &plot::svg(&[&chart])?,
    )?;
    lesson.say("What it writes after \"Alice was \", character by character:");
    for line in SAMPLE.trim().lines().map(str::trim).filter(|line| !line.is_empty()) {
        lesson.quote(line);
    }

    lesson.step("pace", "Beside a loop, on a CPU")?;
    let pace = read(PACE)?;
    lesson.say(&format!(
        "Both passes of the recurrence alone, as this model calls it (along the middle axis), and of a loop of PyTorch's \
         operations; the number of elements is always the same ({}):",
        origin(&pace)?
    ));
    let mut table = Table::new(["batch", "length", "linrec, ms", "a loop, ms", "times"]);
    for ours in pace.rows_with(&[("way", "linrec")]) {
        let wanted = [("way", "a loop"), ("length", ours.text("length")?)];
        let theirs = pace.rows_with(&wanted).next().ok_or("no loop of this length")?;
        let (ms, loop_ms) = (ours.number::<f64>("ms")?, theirs.number::<f64>("ms")?);
        table.row([
            ours.text("batch")?.to_owned(),
            ours.text("length")?.to_owned(),
            format!("{ms:.2}"),
            format!("{loop_ms:.2}"),
            format!("{:.1}", loop_ms / ms),
        ]);
    }
    lesson.table("pace.csv", Kind::Computed, &table)
}
