//! How long it takes, from the record of an H200.

use std::collections::{BTreeMap, BTreeSet};

use linrec::lesson::{self, Kind, Lesson, Table, plot, plot::Chart};

/// Every measurement: see `examples/excerpt.rs`.
const RECORD: &str = include_str!("../../results/h200/speed.csv");

/// The engines of the record, and what they are called here.
const ENGINES: [(&str, &str); 3] =
    [("roof", "roof"), ("ref:64", "thread per sequence"), ("tile:4x256:0", "one tile")];

/// Medians of the measurements, beside the roof.
pub fn speed(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("speed", "What an H200 says")?;
    let mut runs = BTreeMap::<(&str, u32), Vec<f64>>::new();
    let (mut columns, mut machine, mut num_seqs) = (Vec::new(), "", "");
    for line in RECORD.lines() {
        let cells: Vec<&str> = line.split(',').collect();
        if columns.is_empty() {
            columns = cells;
            continue;
        }
        let cell = |name: &str| columns.iter().zip(&cells).find(|(column, _)| **column == name);
        let cell = |name: &str| cell(name).map(|(_, cell)| *cell).ok_or("a column is missing");
        (machine, num_seqs) = (cell("machine")?, cell("num_seqs")?);
        let key = (cell("engine")?, cell("seq_len")?.parse()?);
        runs.entry(key).or_default().push(cell("gb_per_s")?.parse()?);
    }
    let median = |engine: &str, seq_len: u32| -> f64 {
        let mut runs = runs.get(&(engine, seq_len)).cloned().unwrap_or_default();
        runs.sort_by(f64::total_cmp);
        runs.get(runs.len() / 2).copied().unwrap_or(f64::NAN)
    };
    let lengths: BTreeSet<u32> = runs.keys().map(|&(_, seq_len)| seq_len).collect();
    let measured = runs.values().map(Vec::len).min().unwrap_or(0);
    lesson.say(&format!(
        "From the record of an {machine}: {num_seqs} sequences in f32, forward, medians of {measured} runs with cold caches. GB/s \
         counts 12 bytes for each element; the roof adds two arrays.",
    ));
    let header = ["length", "roof, GB/s", "thread per sequence / roof", "one tile / roof"];
    let mut table = Table::new(header);
    let ratio = |engine: &str, seq_len: u32| median(engine, seq_len) / median("roof", seq_len);
    for &seq_len in &lengths {
        table.row([
            seq_len.to_string(),
            format!("{:.0}", median("roof", seq_len)),
            format!("{:.2}", ratio(ENGINES[1].0, seq_len)),
            format!("{:.2}", ratio(ENGINES[2].0, seq_len)),
        ]);
    }
    lesson.table("speed.csv", Kind::Computed, &table)?;
    for seq_len in [16, 256, 1000] {
        for ((engine, _), key) in ENGINES[1..].iter().zip(["ref", "tile"]) {
            let text = format!("{:.2}", ratio(engine, seq_len));
            lesson.value(&format!("{key}_speed_{seq_len}"), text, Kind::Computed);
        }
    }
    let gain = median(ENGINES[2].0, 1000) / median(ENGINES[1].0, 1000);
    lesson.value("gain_1000", format!("{gain:.0}"), Kind::Computed);

    let points = |engine: &str| -> Vec<(f64, f64)> {
        lengths.iter().map(|&seq_len| (f64::from(seq_len), ratio(engine, seq_len))).collect()
    };
    let mut chart = Chart::new("Speed beside the roof, on an H200")
        .axes("length of a row", "kernel / roof")
        .log_x(2.0)
        .y_range(0.0, 1.05);
    for (engine, name) in &ENGINES[1..] {
        chart = chart.measured(name, points(engine));
    }
    let svg = plot::svg(&[&chart])?;
    lesson.figure("speed.svg", "Speed beside the roof", Kind::Computed, &svg)
}
