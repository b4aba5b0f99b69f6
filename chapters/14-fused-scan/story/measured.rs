//! The measurements on an H200, next to Mamba's own kernel.
//!
//! Nothing is timed here. The records in `results/h200` were taken by the examples `rungs` of this
//! chapter and `fused` of the crate `bench`; this module reads them, checks them against the aims,
//! and publishes every value that the page quotes. A repeated run therefore prints the same numbers
//! on any machine. The crate `bench` tests the format of the records.

use bench::csv::{Row, Table as Csv};
use bench::recorded;
use lesson::{Kind, Lesson, Table};

use crate::roofs::{Gpu, Work, roofs};

/// The library's public interface, by `bench`'s example `fused`: medians of nine.
const SCAN: &str = "scan.csv";
/// The rungs of the ladder, by `examples/rungs.rs`.
const LADDER: &str = "fused.csv";
/// Mamba's own kernel, quoted from this project's reference measurements.
const MAMBA: &str = "mamba.csv";
/// Kernels that do one thing only, quoted from trials.
const ROOFS: &str = "roofs.csv";

/// The inner loops as assembled for the GPU: the number of instructions for some states and steps,
/// and the number of powers among them.
const ASSEMBLED: &str = "assembled.csv";

fn read(file: &str) -> lesson::Result<Csv> {
    Csv::read(&recorded::table(include_str!("../results/h200/tables.json"), file)?)
}

/// The aims: pass, batch, steps, element, multiples of Mamba's speed.
const AIMS: [(&str, &str, &str, &str, f64); 15] = [
    ("forward", "8", "1024", "f32", 5.0),
    ("forward", "8", "16384", "f32", 6.0),
    ("forward", "8", "1024", "bf16", 2.6),
    ("forward", "8", "16384", "bf16", 3.4),
    ("forward", "1", "65536", "f32", 3.8),
    ("backward", "8", "1024", "f32", 3.4),
    ("backward", "8", "16384", "f32", 3.4),
    ("backward", "8", "1024", "bf16", 3.1),
    ("backward", "8", "16384", "bf16", 3.1),
    ("backward", "1", "65536", "f32", 3.0),
    ("backward", "1", "65536", "bf16", 3.0),
    ("step", "8", "1024", "f32", 3.5),
    ("step", "8", "16384", "f32", 3.5),
    ("step", "8", "1024", "bf16", 3.0),
    ("step", "8", "16384", "bf16", 3.0),
];

/// Returns Mamba's ms for a pass and a shape, if known.
fn mamba(row: &Row, table: &Csv, pass: &str) -> lesson::Result<Option<f64>> {
    if row.get("states").is_some_and(|states| states != "16") {
        return Ok(None);
    }
    let mut sum = 0.0;
    for direction in ["forward", "backward"] {
        if pass != "step" && pass != direction {
            continue;
        }
        let mut wanted = vec![("direction", direction)];
        for column in ["batch", "channels", "seq_len", "element"] {
            wanted.push((column, row.text(column)?));
        }
        let Some(found) = table.rows_with(&wanted).next() else { return Ok(None) };
        sum += found.number::<f64>("ms")?;
    }
    Ok(Some(sum))
}

/// Returns the forward kernel that the library chose for a row of the record.
fn kernel_of(states: &str, exponential: &str) -> &'static str {
    if matches!(states, "8" | "16") && exponential == "fast" { "plain" } else { "general" }
}

/// Tabulates some passes of the record next to Mamba's times, and publishes all values.
fn beside_mamba(lesson: &mut Lesson, passes: &[&str]) -> lesson::Result<Table> {
    let (scan, theirs) = (read(SCAN)?, read(MAMBA)?);
    // A table of several passes names the pass; a table of the forward pass alone names the kernel.
    let first = if passes.len() > 1 { "pass" } else { "kernel" };
    let header = ["shape", "states", "element", "exponential", "ms", "Mamba's ms", "times", "aim"];
    let mut table = Table::new([first].into_iter().chain(header));
    let cell = |number: Option<f64>, digits: usize| match number {
        Some(number) => format!("{number:.digits$}"),
        None => String::from("–"),
    };
    for pass in passes {
        for row in scan.rows_with(&[("pass", pass)]) {
            let ms: f64 = row.number("ms")?;
            let (exponential, states) = (row.text("exponential")?, row.text("states")?);
            let (batch, channels, len) =
                (row.text("batch")?, row.text("channels")?, row.text("seq_len")?);
            let element = row.text("element")?;
            let known = mamba(&row, &theirs, pass)?;
            let times = known.map(|known| known / ms);
            let is_aimed = exponential == "fast" && channels == "2048" && states == "16";
            let aim = AIMS.into_iter().find(|aim| {
                is_aimed && (aim.0, aim.1, aim.2, aim.3) == (pass, batch, len, element)
            });
            let cells = [
                format!("{batch} x {channels} x {len}"),
                states.to_owned(),
                element.to_owned(),
                exponential.to_owned(),
                format!("{ms:.3}"),
                cell(known, 3),
                cell(times, 2),
                cell(aim.map(|aim| aim.4), 1),
            ];
            let first = if passes.len() > 1 { *pass } else { kernel_of(states, exponential) };
            table.row([first.to_owned()].into_iter().chain(cells));
            let key = format!("{element}_{exponential}_{pass}_{batch}_{channels}_{len}_{states}");
            lesson.value(&format!("{key}_ms"), format!("{ms:.2}"), Kind::Computed);
            lesson.value(&format!("{key}_times"), cell(times, 2), Kind::Computed);
        }
    }
    Ok(table)
}

pub(super) fn forward(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("speed", "How fast it is")?;
    let scan = read(SCAN)?;
    let origin = scan.rows().next();
    let origin = origin.map(|row| Ok(format!("{}, {}", row.text("machine")?, row.text("date")?)));
    let origin: String =
        origin.transpose().map_err(|error: lesson::Error| error)?.unwrap_or_default();
    lesson.say(&format!(
        "{origin}: the forward pass of the library, medians of nine. The first column names the kernel that it launched: \
         plain is selective_scan_fwd_plain, general is selective_scan_fwd. Mamba's kernel (mamba-ssm with PyTorch 2.11) was \
         measured on an H200 earlier in the month, and not in the same rounds. The aim is what this project set itself:",
    ));
    let table = beside_mamba(lesson, &["forward"])?;
    lesson.table("speed.csv", Kind::Computed, &table)?;
    for (pass, batch, len, element, times) in AIMS {
        let key = format!("aim_{pass}_{element}_{batch}_{len}");
        lesson.value(&key, format!("{times:.1}"), Kind::Computed);
    }
    lesson.value("measured_on", origin, Kind::Computed);

    let of = |pass, len| time(&scan, "f32", "fast", pass, len);
    let kept = of("forward, kept", 16384)? / of("forward", 16384)?;
    lesson.value("kept_ratio", format!("{kept:.2}"), Kind::Computed);
    for element in ["f32", "bf16"] {
        let of = |len| time(&scan, element, "fast", "backward", len);
        let ratio = of(4093)? / of(4096)?;
        lesson.value(&format!("bwd_odd_ratio_{element}"), format!("{ratio:.2}"), Kind::Computed);
    }
    // As the library's user sees it: fast is the plain kernel, exact the general one.
    let (plain, exact) = (shipped(&scan, "fast")?, shipped(&scan, "exact")?);
    lesson.value("exact_ratio", format!("{:.2}", plain / exact), Kind::Computed);
    let general = rung("shipped")?;
    let ratio = general / rung("shipped, exact")?;
    lesson.value("general_exact_ratio", format!("{ratio:.2}"), Kind::Computed);
    for row in read(ROOFS)?.rows() {
        let (roof, least): (_, f64) = (row.text("roof")?, row.number("ms")?);
        let key = roof.replace(' ', "_");
        lesson.value(&format!("measured_{key}_ms"), format!("{least:.2}"), Kind::Computed);
        if roof == "issue" {
            lesson.value("plain_part_of_bare", format!("{:.2}", least / plain), Kind::Computed);
            lesson.value("general_part_of_bare", format!("{:.2}", least / general), Kind::Computed);
        }
    }
    Ok(())
}

/// Returns the ms of a rung at the size of the roofs' picture.
fn rung(name: &str) -> lesson::Result<f64> {
    let record = read(LADDER)?;
    let wanted = [("kernel", name), ("batch", "8"), ("seq_len", "16384")];
    let row = record.rows_with(&wanted).next();
    row.ok_or("the record has no such rung")?.number("ms")
}

/// Returns the ms of the library's scan at the size of the roofs' picture.
fn shipped(scan: &Csv, exponential: &str) -> lesson::Result<f64> {
    time(scan, "f32", exponential, "forward", 16384)
}

/// Returns the ms of a pass over 8 x 2048 channels with 16 states.
fn time(
    scan: &Csv,
    element: &str,
    exponential: &str,
    pass: &str,
    len: usize,
) -> lesson::Result<f64> {
    let len = len.to_string();
    let wanted = [
        ("pass", pass),
        ("batch", "8"),
        ("channels", "2048"),
        ("seq_len", &len),
        ("states", "16"),
        ("element", element),
        ("exponential", exponential),
    ];
    scan.rows_with(&wanted).next().ok_or("the record has no such row")?.number("ms")
}

/// Publishes a rung's measured time, and the share of it that `issue` explains: the ms that follow
/// from the counted instructions of the same kernel.
pub(super) fn part_of_issue(lesson: &mut Lesson, name: &str, issue: f64) -> lesson::Result {
    let (key, ms) = (name.replace(", ", "_"), rung(name)?);
    lesson.value(&format!("{key}_ms"), format!("{ms:.2}"), Kind::Computed);
    lesson.value(&format!("{key}_part_of_issue"), format!("{:.2}", issue / ms), Kind::Computed);
    Ok(())
}

/// Shows the innermost loops in the GPU's own instructions, and their least time.
pub(super) fn assembled(lesson: &mut Lesson, outputs: f64) -> lesson::Result {
    lesson.say(
        "What the assembler made of the loops that walk (ptxas 12.9 for sm_90, disassembled), for each state and step, and the \
         least ms by the issue of these alone. The loop of lane contains loads, softplus and gate:",
    );
    let mut table = Table::new(["loop of", "instructions", "powers", "places", "ms"]);
    for row in read(ASSEMBLED)?.rows() {
        let (states, all, powers): (f64, f64, f64) =
            (row.number("states")?, row.number("instructions")?, row.number("powers")?);
        let each = crate::problem::STATES as f64 / states;
        let work = Work { bytes: 0.0, special: each * powers, instructions: each * all };
        let ms = roofs(&Gpu::H200, &work, outputs).issue;
        let places = (all + 3.0 * powers) / states;
        let cells = [all / states, powers / states, places, ms].map(|cell| format!("{cell:.2}"));
        let kernel = row.text("kernel")?;
        table.row([kernel.to_owned()].into_iter().chain(cells));
        let key = kernel.replace(", ", "_");
        lesson.value(&format!("{key}_loop"), format!("{:.1}", all / states), Kind::Computed);
        lesson.value(&format!("{key}_loop_places"), format!("{places:.1}"), Kind::Computed);
        lesson.value(&format!("{key}_loop_ms"), format!("{ms:.2}"), Kind::Computed);
    }
    lesson.table("assembled.csv", Kind::Computed, &table)
}

pub(super) fn ladder(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("rungs", "How fast the rungs are")?;
    let record = read(LADDER)?;
    lesson.say(
        "Each rung by itself, medians of nine: the kernels whose instructions are counted above. shipped is the general \
         kernel, selective_scan_fwd. With the fast exponential the library launches the plain one for these shapes:",
    );
    let mut table = Table::new(["kernel", "shape", "ms"]);
    for row in record.rows() {
        let shape = ["batch", "channels", "seq_len"].map(|name| row.text(name));
        let [batch, channels, len] = shape;
        let shape = format!("{} x {} x {}", batch?, channels?, len?);
        let ms: f64 = row.number("ms")?;
        table.row([row.text("kernel")?.to_owned(), shape, format!("{ms:.3}")]);
    }
    lesson.table("rungs.csv", Kind::Computed, &table)
}

pub(super) fn backward(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("speed-back", "How fast it is, backward")?;
    lesson.say(
        "The backward pass, and a step of training: the forward pass that leaves checkpoints and the backward pass behind it, \
         beside the sum of Mamba's two:",
    );
    let table = beside_mamba(lesson, &["backward", "step"])?;
    lesson.table("speed-back.csv", Kind::Computed, &table)
}

/// The times at the size of the roofs' picture: rungs, Mamba's kernel, and the unfused scan.
#[derive(Debug, Clone)]
pub(super) struct Marks {
    /// The times of the rungs with their names.
    pub(super) rungs: Vec<(String, f64)>,
    pub(super) mamba: f64,
    pub(super) unfused: f64,
}

impl Marks {
    pub(super) fn read() -> lesson::Result<Marks> {
        let ms = |file: &str, wanted: &[(&str, &str)]| -> lesson::Result<f64> {
            let table = read(file)?;
            let row = table.rows_with(wanted).next();
            row.ok_or("a record has no such row")?.number("ms")
        };
        let long = ("seq_len", "16384");
        let f32 = ("element", "f32");
        let rungs = read(LADDER)?;
        let rungs = rungs.rows_with(&[("seq_len", "16384"), ("batch", "8")]);
        let rungs = rungs.map(|row| Ok((row.text("kernel")?.to_owned(), row.number("ms")?)));
        Ok(Marks {
            rungs: rungs.collect::<lesson::Result<_>>()?,
            mamba: ms(MAMBA, &[long, f32, ("direction", "forward")])?,
            unfused: ms(ROOFS, &[long, f32, ("roof", "unfused")])?,
        })
    }
}
