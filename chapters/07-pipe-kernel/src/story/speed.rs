//! Configurations over lengths, as measured on an H200.

use linrec::lesson::{self, Kind, Lesson, Table, plot, plot::Chart};

use super::RECORD;
use crate::measured::Runs;

/// In the figure: the name in the record, and that in the legend.
const DRAWN: [(&str, &str); 5] = [
    ("pipe:4x128:0", "4 x 128"),
    ("pipe:8x32:0", "8 x 32"),
    ("pipe:8x64:0", "8 x 64"),
    ("pipe:16x64:0", "16 x 64"),
    ("ref:64", "the reference kernel"),
];

/// Medians of the record, as a figure and as tables.
pub fn speed(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("speed", "Tiles of many sizes")?;
    let runs = Runs::read(RECORD)?;
    let ratio = |engine: &str, seq_len| runs.median(engine, seq_len).map(|run| run.ratio);
    let cell = |ratio: Option<f64>| ratio.map_or_else(|| String::from("–"), |r| format!("{r:.2}"));
    let count = runs.count("roof", 4096);
    lesson.say(&format!(
        "From the record of an H200: 13200 sequences in f32, forward; medians of {count} runs, as a part of the roof \
         in the same round. The roof adds two arrays. Sequences of 4096, by elements per thread (down) and threads \
         per block (across):",
    ));
    let mut sizes = Table::new(["elements", "32", "64", "128", "256"]);
    for elems in [4, 8, 16] {
        let of = |threads: u32| cell(ratio(&format!("pipe:{elems}x{threads}:0"), 4096));
        sizes.row([elems.to_string()].into_iter().chain([32, 64, 128, 256].map(of)));
    }
    lesson.table("sizes.csv", Kind::Computed, &sizes)?;

    lesson.say("And by length:");
    let header = ["length", "roof, GB/s"].into_iter().chain(DRAWN.map(|(_, name)| name));
    let mut table = Table::new(header);
    for seq_len in runs.lengths() {
        let roof = runs.median("roof", seq_len).map_or(0.0, |run| run.gb_per_s);
        let cells = DRAWN.map(|(engine, _)| cell(ratio(engine, seq_len)));
        table.row([seq_len.to_string(), format!("{roof:.0}")].into_iter().chain(cells));
    }
    lesson.table("lengths.csv", Kind::Computed, &table)?;

    let mut chart = Chart::new("The pipe kernel beside the roof, forward, on an H200")
        .axes("length of a sequence", "speed / speed of the roof")
        .log_x(2.0)
        .y_range(0.0, 1.6);
    // Lengths just off the others are in the table.
    let lengths: Vec<_> = runs.lengths().into_iter().filter(|len| len.is_power_of_two()).collect();
    for (engine, name) in DRAWN {
        let points = lengths.iter().filter_map(|&len| Some((len as f64, ratio(engine, len)?)));
        chart = chart.measured(name, points);
    }
    chart = chart.dashed("the roof", [(16.0, 1.0), (65_536.0, 1.0)]);
    let svg = plot::svg(&[&chart])?;
    lesson.figure("speed.svg", "Configurations over lengths", Kind::Computed, &svg)?;

    let percent = |ratio: Option<f64>| format!("{:.0} %", 100.0 * ratio.unwrap_or(0.0));
    lesson.value("best_long", percent(ratio("pipe:4x128:0", 4096)), Kind::Computed);
    lesson.value("default_long", percent(ratio("pipe:8x64:0", 4096)), Kind::Computed);
    let shortest = runs.median("roof", 16).map_or(0.0, |run| 1e3 * run.milliseconds);
    lesson.value("shortest", format!("{shortest:.1}"), Kind::Computed);
    let fastest = runs.median("roof", 65_536).map_or(f64::NAN, |run| run.gb_per_s);
    let bytes = 12.0 * 16.0 * 13_200.0;
    lesson.value("shortest_bytes", format!("{:.1}", bytes / fastest / 1e3), Kind::Computed);
    lesson.value("runs", count, Kind::Computed);
    Ok(())
}
