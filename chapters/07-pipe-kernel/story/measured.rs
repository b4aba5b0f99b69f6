//! The measurements of chapter 7: traffic, time, and other people's kernels.
//!
//! The number of steps per thread decides how often a sector is requested and whether the caches
//! still contain it. This part therefore shows the speed of many tile sizes on an H200 together
//! with the traffic that a profiler counted, and compares the kernel with the post's own in one
//! run. All of it comes from committed records. Only the last step measures, if this machine has a
//! GPU. `cargo xtask record --check` compares the values from records with the committed run.

use std::collections::BTreeMap;

use bench::field::against_roof;
use bench::figure::with_roof;
use bench::traffic::{self, Traffic};
use bench::{Runs, recorded};
use lesson::plot::{self, Chart, Dot, kernels};
use lesson::{Kind, Lesson, Table};
use linrec::device::Device;
use linrec::kernels::Pass;

use super::RECORD;
use crate::PIPE;

/// The configurations in the figure: the name in the record, and the name in the legend.
const DRAWN: [(&str, &str); 5] = [
    ("pipe:4x128:0", "4 x 128"),
    ("pipe:8x32:0", "8 x 32"),
    ("pipe:8x64:0", "8 x 64"),
    ("pipe:16x64:0", "16 x 64"),
    ("ref:64", "the reference kernel"),
];

/// Shows medians of the record, as a figure and as tables.
pub(super) fn speed(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("speed", "Tiles of many sizes")?;
    let runs = Runs::read(&recorded::text(RECORD)?)?;
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
        .y_range(0.0, 1.25);
    // Lengths just off a power of two are only in the table.
    let lengths: Vec<_> = runs.lengths().into_iter().filter(|len| len.is_power_of_two()).collect();
    for (number, (engine, name)) in DRAWN.into_iter().enumerate() {
        let points = lengths.iter().filter_map(|&len| Some((len as f64, ratio(engine, len)?)));
        chart = chart.measured(name, points);
        chart = match engine.starts_with("pipe") {
            true => chart.color(kernels::variant("pipe", number)).dot(Dot::ALL[number]),
            false => chart.color(kernels::color(engine)),
        };
    }
    let roof = |&len: &usize| Some((len as f64, runs.median("roof", len)?.gb_per_s));
    chart = with_roof(chart, lengths.iter().filter_map(roof), 1.25);
    let svg = plot::svg(&[&chart])?;
    lesson.figure("speed.svg", "Configurations over lengths", Kind::Computed, &svg)?;

    let percent = |ratio: Option<f64>| format!("{:.0} %", 100.0 * ratio.unwrap_or(0.0));
    lesson.value("best_long", percent(ratio("pipe:4x128:0", 4096)), Kind::Computed);
    lesson.value("default_long", percent(ratio("pipe:8x64:0", 4096)), Kind::Computed);
    let shortest = runs.median("roof", 16).map_or(0.0, |run| 1e3 * run.ms);
    lesson.value("shortest", format!("{shortest:.1}"), Kind::Computed);
    let fastest = runs.median("roof", 65_536).map_or(f64::NAN, |run| run.gb_per_s);
    let bytes = 12.0 * 16.0 * 13_200.0;
    lesson.value("shortest_bytes", format!("{:.1}", bytes / fastest / 1e3), Kind::Computed);
    lesson.value("runs", count, Kind::Computed);
    Ok(())
}

/// The file with the counts of Nsight Compute; `examples/traffic.rs` made it.
const COUNTED: &str = "traffic.csv";
const H200: &str = include_str!("../results/h200/tables.json");

/// The length of the sequences in these tables.
const TRAFFIC_LEN: usize = 4096;

/// Shows traffic and load of every configuration.
pub(super) fn traffic(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("traffic", "From cache to cache")?;
    let counted = traffic::read(&recorded::table(H200, COUNTED)?)?;
    let runs = Runs::read(&recorded::text(RECORD)?)?;
    let kernels: Vec<(&Traffic, f64)> = ["4x32", "4x64", "4x128", "4x256"]
        .into_iter()
        .chain(["8x32", "8x64", "8x128", "8x256"])
        .chain(["16x32", "16x64", "16x128", "16x256"])
        .map(|size| format!("pipe:{size}:0"))
        .chain([String::from("ref:64")])
        .filter_map(|engine| {
            let ratio = runs.median(&engine, TRAFFIC_LEN)?.ratio;
            Some((find(&counted, &engine, TRAFFIC_LEN)?, ratio))
        })
        .collect();

    lesson.say(&format!(
        "Counted by Nsight Compute on the H200, for sequences of {TRAFFIC_LEN}. Of the sectors that loads ask for, the \
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

    lesson.say("How much of the time each of them is busy, and how many warps an SM holds:");
    let mut table = Table::new(["kernel", "warps", "L1", "input of L2", "DRAM", "speed / roof"]);
    for (one, ratio) in &kernels {
        let busy = one.busy.map(|percent| format!("{percent:.0} %"));
        let ends = [name(&one.engine), format!("{:.0}", one.warps)];
        table.row(ends.into_iter().chain(busy).chain([format!("{ratio:.2}")]));
    }
    lesson.table("busy.csv", Kind::Computed, &table)?;

    let mut chart = Chart::new("Speed against stores that arrive in the L2 cache, on an H200")
        .axes("sectors written to L2 / sectors of the outputs", "speed / speed of the roof")
        .y_range(0.0, 1.25);
    for (number, elems) in ["4", "8", "16"].into_iter().enumerate() {
        let mine =
            kernels.iter().filter(|(one, _)| name(&one.engine).starts_with(&format!("{elems} x")));
        let points = mine.map(|(one, ratio)| (one.written[0], *ratio));
        chart = chart.measured(&format!("{elems} elements per thread"), points);
        chart = chart.color(kernels::variant("pipe", number)).dot(Dot::ALL[number]);
    }
    let most = kernels.iter().map(|(one, _)| one.written[0]).fold(1.0, f64::max);
    let roof = runs.median("roof", TRAFFIC_LEN).map_or(f64::NAN, |run| run.gb_per_s);
    chart = with_roof(chart, [(1.0, roof), (most, roof)], 1.25);
    let svg = plot::svg(&[&chart])?;
    lesson.figure("stores.svg", "Speed against stores", Kind::Computed, &svg)?;

    for (key, engine) in [
        ("written_few", "pipe:4x128:0"),
        ("written_many", "pipe:16x256:0"),
        ("written_alone", "pipe:8x32:0"),
        ("written_default", "pipe:8x64:0"),
    ] {
        let written = find(&counted, engine, TRAFFIC_LEN).map_or(f64::NAN, |one| one.written[0]);
        lesson.value(key, format!("{written:.2}"), Kind::Computed);
    }
    Ok(())
}

/// Shows one kernel whose threads have more steps the longer the sequence is.
pub(super) fn one_kernel(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("one-kernel", "One kernel, more and more steps per thread")?;
    let counted = traffic::read(&recorded::table(H200, COUNTED)?)?;
    let runs = Runs::read(&recorded::text(RECORD)?)?;
    let ratio = |seq_len| runs.median("pipe:16x32:0", seq_len).map_or(f64::NAN, |run| run.ratio);
    lesson.say(
        "16 x 32 gives each of its 32 threads more steps the longer the sequence is, up to 16. Its stores were \
         counted at some of these lengths:",
    );
    let mut table = Table::new(["length", "steps per thread", "written to L2", "speed / roof"]);
    for seq_len in [64, 128, 256, 512, 1024, TRAFFIC_LEN] {
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

/// Returns the name that the page uses.
fn name(engine: &str) -> String {
    match engine.strip_prefix("pipe:").and_then(|size| size.strip_suffix(":0")) {
        Some(size) => spelled(size),
        None => String::from("reference kernel"),
    }
}

/// Both pipes in the twelve sizes of the post, measured by `crates/bench/post/run`.
const POST: &[u8] = include_bytes!("../results/h200/post.csv.gz");

/// The size that the post chose.
const POST_SIZE: &str = "8x64:0";

/// The speeds of both kernels, as fractions of the roof.
struct Contest {
    seq_len: usize,
    ours: BTreeMap<String, f64>,
    theirs: BTreeMap<String, f64>,
}

impl Contest {
    /// Returns the size with the largest fraction, and the fraction.
    fn best(sizes: &BTreeMap<String, f64>) -> (&str, f64) {
        let best = sizes.iter().max_by(|a, b| a.1.total_cmp(b.1));
        best.map_or(("", 0.0), |(size, &ratio)| (size, ratio))
    }

    /// Returns our best as a multiple of theirs.
    fn lead(&self) -> f64 {
        Self::best(&self.ours).1 / Self::best(&self.theirs).1
    }
}

/// Reads one contest for each length.
fn contests(pass: &str, direction: &str) -> lesson::Result<Vec<Contest>> {
    let mut contests: BTreeMap<usize, Contest> = BTreeMap::new();
    let table = bench::csv::Table::read(&recorded::text(POST)?)?;
    for row in table.rows_with(&[("pass", pass), ("direction", direction)]) {
        let (seq_len, ratio) = (row.number("seq_len")?, row.number("ratio")?);
        let contest = contests.entry(seq_len).or_insert_with(|| Contest {
            seq_len,
            ours: BTreeMap::new(),
            theirs: BTreeMap::new(),
        });
        match row.text("engine")?.split_once(':') {
            Some(("pipe", size)) => contest.ours.insert(size.to_owned(), ratio),
            Some(("post", size)) => contest.theirs.insert(size.to_owned(), ratio),
            _ => None,
        };
    }
    Ok(contests.into_values().collect())
}

/// Compares both kernels at the post's size, and each at its best.
pub(super) fn peers(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("peers", "Beside the post's kernel")?;
    lesson.say(&format!(
        "Both pipes on an H200, in one run: 13200 sequences in f32, memcode 0, as parts of the roof. Once at the \
         post's size of {}, and once each in the fastest of the twelve sizes.",
        spelled(POST_SIZE)
    ));
    for pass in ["forward", "backward"] {
        let header = ["length", "post", "here", "post, best", "size", "here, best", "size"];
        let mut table = Table::new(header);
        for contest in contests(pass, "standard")? {
            let ((theirs, post), (ours, here)) =
                (Contest::best(&contest.theirs), Contest::best(&contest.ours));
            let at_their_size = |sizes: &BTreeMap<String, f64>| {
                sizes.get(POST_SIZE).map_or(String::new(), |ratio| format!("{ratio:.3}"))
            };
            table.row([
                contest.seq_len.to_string(),
                at_their_size(&contest.theirs),
                at_their_size(&contest.ours),
                format!("{post:.3}"),
                spelled(theirs),
                format!("{here:.3}"),
                spelled(ours),
            ]);
            if contest.seq_len == 4096 {
                for (key, sizes) in [("post", &contest.theirs), ("here", &contest.ours)] {
                    lesson.value(&format!("{key}_{pass}"), at_their_size(sizes), Kind::Computed);
                }
            }
        }
        lesson.say(&format!("The {pass} pass:"));
        lesson.table(&format!("post-{pass}.csv"), Kind::Computed, &table)?;
    }
    let mut least = f64::INFINITY;
    for pass in ["forward", "backward"] {
        for direction in ["standard", "reverse"] {
            for contest in contests(pass, direction)? {
                least = least.min(contest.lead());
            }
        }
    }
    lesson.check("largest share by which the post's best is faster", (1.0 - least).max(0.0), 0.0);
    lesson.value("least", format!("{least:.2}"), Kind::Computed);
    Ok(())
}

/// Formats `8x64:0` as `8 x 64`.
fn spelled(size: &str) -> String {
    size.trim_end_matches(":0").replace('x', " x ")
}

/// The number of measurements of each length; their median counts.
const CLOCK_RUNS: usize = 9;

/// Measures the kernel and the roof on a GPU.
pub(super) fn clock(lesson: &mut Lesson, device: &Device) -> lesson::Result {
    lesson.step("clock", "On this machine")?;
    if device.is_simt() {
        lesson.say(
            "There is no GPU here, and an emulator cannot tell how long one takes. Where there is one, this step times \
             the kernel beside the roof.",
        );
        return Ok(());
    }
    let num_seqs = 100 * device.attributes().multiprocessors as usize;
    lesson.say(&format!(
        "{} with {num_seqs} sequences in f32, forward, medians of {CLOCK_RUNS} runs. GB/s counts 12 bytes per element.",
        device.name(),
    ));
    let header = ["length", "kernel, ms", "kernel, GB/s", "roof, GB/s", "kernel / roof"];
    let mut table = Table::new(header);
    for seq_len in [64, 1024, 4096] {
        let shape = (num_seqs, seq_len);
        let [ours, theirs] = against_roof::<f32>(device, PIPE, Pass::Forward, shape, CLOCK_RUNS)?;
        let speed = |ms: f64| 12.0 * (num_seqs * seq_len) as f64 / ms / 1e6;
        table.row([
            seq_len.to_string(),
            format!("{ours:.4}"),
            format!("{:.0}", speed(ours)),
            format!("{:.0}", speed(theirs)),
            format!("{:.2}", theirs / ours),
        ]);
    }
    lesson.table("clock.csv", Kind::Timed, &table)
}
