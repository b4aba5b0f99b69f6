//! What moves between the caches and the memory, as a profiler counted it on an H200.

use linrec::lesson::{self, Kind, Lesson, Table, plot, plot::Chart};

use super::RECORD;
use crate::measured::Runs;
use crate::traffic::{self, Traffic};

/// What Nsight Compute counted; `examples/traffic.rs` made the table.
const COUNTED: &str = include_str!("../../results/h200/traffic.csv");

/// The length of the sequences that are looked at.
const SEQ_LEN: usize = 4096;

/// Traffic and load of every configuration.
pub fn traffic(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("traffic", "From cache to cache")?;
    let counted = traffic::read(COUNTED)?;
    let runs = Runs::read(RECORD)?;
    let kernels: Vec<(&Traffic, f64)> = ["4x32", "4x64", "4x128", "4x256"]
        .into_iter()
        .chain(["8x32", "8x64", "8x128", "8x256"])
        .chain(["16x32", "16x64", "16x128", "16x256"])
        .map(|size| format!("pipe:{size}:0"))
        .chain([String::from("ref:64")])
        .filter_map(|engine| {
            let ratio = runs.median(&engine, SEQ_LEN)?.ratio;
            Some((find(&counted, &engine, SEQ_LEN)?, ratio))
        })
        .collect();

    lesson.say(&format!(
        "Counted by Nsight Compute on the H200, for sequences of {SEQ_LEN}. Of the sectors that loads ask for, the \
         part that the L1 caches have; then what goes on to the L2 cache and to the memory, as a multiple of what \
         the arrays hold:",
    ));
    let header = ["kernel", "found in L1", "read from L2", "from DRAM", "written to L2", "to DRAM"];
    let mut table = Table::new(header);
    for (one, _) in &kernels {
        let [read_l2, read_dram] = one.read;
        let [written_l2, written_dram] = one.written;
        let moved = [read_l2, read_dram, written_l2, written_dram];
        let cells = moved.map(|multiple| format!("{multiple:.2}"));
        let found = format!("{:.1} %", one.loads_in_l1);
        table.row([name(&one.engine), found].into_iter().chain(cells));
    }
    lesson.table("traffic.csv", Kind::Computed, &table)?;

    lesson.say(
        "How much of the time each of them is busy, and how many warps a multiprocessor holds:",
    );
    let mut table = Table::new(["kernel", "warps", "L1", "input of L2", "DRAM", "speed / roof"]);
    for (one, ratio) in &kernels {
        let busy = one.busy.map(|percent| format!("{percent:.0} %"));
        let ends = [name(&one.engine), format!("{:.0}", one.warps)];
        table.row(ends.into_iter().chain(busy).chain([format!("{ratio:.2}")]));
    }
    lesson.table("busy.csv", Kind::Computed, &table)?;

    let mut chart = Chart::new("Speed against stores that arrive in the L2 cache, on an H200")
        .axes("sectors written to L2 / sectors of the outputs", "speed / speed of the roof")
        .y_range(0.0, 1.2);
    for elems in ["4", "8", "16"] {
        let mine =
            kernels.iter().filter(|(one, _)| name(&one.engine).starts_with(&format!("{elems} x")));
        let points = mine.map(|(one, ratio)| (one.written[0], *ratio));
        chart = chart.measured(&format!("{elems} elements per thread"), points);
    }
    let svg = plot::svg(&[&chart])?;
    lesson.figure("stores.svg", "Speed against stores", Kind::Computed, &svg)?;

    for (key, engine) in [
        ("written_few", "pipe:4x128:0"),
        ("written_many", "pipe:16x256:0"),
        ("written_alone", "pipe:8x32:0"),
    ] {
        let written = find(&counted, engine, SEQ_LEN).map_or(f64::NAN, |one| one.written[0]);
        lesson.value(key, format!("{written:.2}"), Kind::Computed);
    }
    Ok(())
}

/// One kernel whose threads have more steps the longer the sequence is.
pub fn one_kernel(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("one-kernel", "One kernel, more and more steps per thread")?;
    let (counted, runs) = (traffic::read(COUNTED)?, Runs::read(RECORD)?);
    let ratio = |seq_len| runs.median("pipe:16x32:0", seq_len).map_or(f64::NAN, |run| run.ratio);
    lesson.say(
        "16 x 32 gives each of its 32 threads more steps the longer the sequence is, up to 16. Its stores were \
         counted at some of these lengths:",
    );
    let mut table = Table::new(["length", "steps per thread", "written to L2", "speed / roof"]);
    for seq_len in [64, 128, 256, 512, 1024, SEQ_LEN] {
        let written = find(&counted, "pipe:16x32:0", seq_len);
        let written = written.map(|one| format!("{:.2}", one.written[0]));
        table.row([
            seq_len.to_string(),
            (seq_len / 32).min(16).to_string(),
            written.unwrap_or_else(|| String::from("–")),
            format!("{:.2}", ratio(seq_len)),
        ]);
    }
    lesson.table("one-kernel.csv", Kind::Computed, &table)?;
    lesson.value("few_steps", format!("{:.2}", ratio(256)), Kind::Computed);
    lesson.value("many_steps", format!("{:.2}", ratio(512)), Kind::Computed);
    Ok(())
}

fn find<'a>(counted: &'a [Traffic], engine: &str, seq_len: usize) -> Option<&'a Traffic> {
    counted.iter().find(|one| one.engine == engine && one.seq_len == seq_len)
}

/// As a reader calls it.
fn name(engine: &str) -> String {
    match engine.strip_prefix("pipe:").and_then(|size| size.strip_suffix(":0")) {
        Some(size) => size.replace('x', " x "),
        None => String::from("reference kernel"),
    }
}
