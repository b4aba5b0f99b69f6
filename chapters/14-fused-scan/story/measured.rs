//! What was measured on an H200, beside Mamba's own kernel.

use bench::csv::{Row, Table as Csv};
use lesson::{Kind, Lesson, Table};

use crate::roofs::{Gpu, Work, roofs};

/// The library's kernel by its public interface: medians of nine.
const FIRST: &str = include_str!("../results/h200/first.csv");
/// The rungs of the ladder, of `examples/rungs.rs`: empty until they have been measured.
const LADDER: &str = include_str!("../results/h200/fused.csv");
/// Mamba's own kernel, quoted from this project's reference measurements.
const MAMBA: &str = include_str!("../results/h200/mamba.csv");
/// Kernels that do nothing but one thing, quoted from trials.
const ROOFS: &str = include_str!("../results/h200/roofs.csv");

/// Loops that walk, as they were assembled for the GPU: instructions for so many states and steps, powers among them.
const ASSEMBLED: &str = include_str!("../results/h200/assembled.csv");

/// What was to be reached: batch, steps, element, multiples of Mamba's speed.
const AIMS: [(&str, &str, &str, f64); 5] = [
    ("8", "1024", "f32", 5.0),
    ("8", "16384", "f32", 6.0),
    ("8", "1024", "bf16", 2.6),
    ("8", "16384", "bf16", 3.4),
    ("1", "65536", "f32", 3.8),
];

/// Mamba's ms for a shape, if they are known.
fn mamba(row: &Row, table: &Csv, direction: &str) -> lesson::Result<Option<f64>> {
    if row.get("states").is_some_and(|states| states != "16") {
        return Ok(None);
    }
    let mut wanted = vec![("direction", direction)];
    for column in ["batch", "channels", "seq_len", "element"] {
        wanted.push((column, row.text(column)?));
    }
    let found = table.rows_with(&wanted).next();
    found.map(|row| row.number("ms")).transpose()
}

/// The library's kernel, forward.
pub(super) fn forward(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("speed", "How fast it is")?;
    let (first, theirs) = (Csv::read(FIRST)?, Csv::read(MAMBA)?);
    let origin = first.rows().next();
    let origin = origin.map(|row| Ok(format!("{}, {}", row.text("machine")?, row.text("date")?)));
    let origin: String =
        origin.transpose().map_err(|error: lesson::Error| error)?.unwrap_or_default();
    lesson.say(&format!(
        "{origin}: the forward pass of the library, medians of nine. Mamba's kernel (mamba-ssm with PyTorch 2.11) was \
         measured on an H200 earlier in the month, and not in the same rounds. The aim is what this project set itself:",
    ));
    let mut table = Table::new([
        "shape",
        "states",
        "element",
        "exponential",
        "ms",
        "Mamba's ms",
        "times",
        "aim",
    ]);
    for row in first.rows() {
        let ms: f64 = row.number("ms")?;
        let exponential = row.text("exponential")?;
        let known = mamba(&row, &theirs, "forward")?;
        let times = known.map(|known| known / ms);
        let aim = AIMS.into_iter().find(|aim| {
            exponential == "fast"
                && known.is_some()
                && row.get("batch") == Some(aim.0)
                && row.get("seq_len") == Some(aim.1)
                && row.get("element") == Some(aim.2)
        });
        let cell = |number: Option<f64>, digits: usize| match number {
            Some(number) => format!("{number:.digits$}"),
            None => String::from("–"),
        };
        let (batch, channels, len) =
            (row.text("batch")?, row.text("channels")?, row.text("seq_len")?);
        let element = row.text("element")?;
        table.row([
            format!("{batch} x {channels} x {len}"),
            row.text("states")?.to_owned(),
            element.to_owned(),
            exponential.to_owned(),
            format!("{ms:.3}"),
            cell(known, 3),
            cell(times, 2),
            cell(aim.map(|aim| aim.3), 1),
        ]);
        if row.get("states") == Some("16") {
            let key = format!("{element}_{exponential}_{batch}_{len}");
            lesson.value(&format!("{key}_ms"), format!("{ms:.2}"), Kind::Computed);
            lesson.value(&format!("{key}_times"), cell(times, 2), Kind::Computed);
        }
    }
    lesson.table("speed.csv", Kind::Computed, &table)?;
    for (_, len, element, times) in AIMS {
        lesson.value(&format!("aim_{element}_{len}"), format!("{times:.1}"), Kind::Computed);
    }
    lesson.value("measured_on", origin, Kind::Computed);

    let ms = |exponential| -> lesson::Result<f64> {
        let wanted = [("seq_len", "16384"), ("element", "f32"), ("exponential", exponential)];
        let row = first.rows_with(&wanted).next();
        row.ok_or("the record has no such row")?.number("ms")
    };
    let (fast, exact) = (ms("fast")?, ms("exact")?);
    lesson.value("exact_ratio", format!("{:.2}", fast / exact), Kind::Computed);
    for row in Csv::read(ROOFS)?.rows() {
        let (roof, least): (_, f64) = (row.text("roof")?, row.number("ms")?);
        let key = roof.replace(' ', "_");
        lesson.value(&format!("measured_{key}_ms"), format!("{least:.2}"), Kind::Computed);
        lesson.value(&format!("part_of_{key}"), format!("{:.2}", least / fast), Kind::Computed);
    }
    Ok(())
}

/// Which part of the measured time the issue of instructions explains: of those that the emulator counted, for each state of
/// each output, when the kernels were measured.
pub(super) fn parts_of_issue(lesson: &mut Lesson, outputs: f64) -> lesson::Result {
    let first = Csv::read(FIRST)?;
    for (key, exponential) in [("shipped", "fast"), ("shipped_exact", "exact")] {
        let wanted = [("seq_len", "16384"), ("element", "f32"), ("exponential", exponential)];
        let row = first.rows_with(&wanted).next().ok_or("the record has no such row")?;
        let (ms, instructions, powers): (f64, f64, f64) =
            (row.number("ms")?, row.number("instructions")?, row.number("powers")?);
        let states = crate::problem::STATES as f64;
        let work =
            Work { bytes: 0.0, special: states * powers, instructions: states * instructions };
        let issue = roofs(&Gpu::H200, &work, outputs).issue;
        for (name, number) in [
            ("then_instructions", instructions),
            ("then_issue_ms", issue),
            ("part_of_issue", issue / ms),
        ] {
            lesson.value(&format!("{key}_{name}"), format!("{number:.2}"), Kind::Computed);
        }
    }
    Ok(())
}

/// The innermost loops in the GPU's own instructions, and the least time for so many outputs.
pub(super) fn assembled(lesson: &mut Lesson, outputs: f64) -> lesson::Result {
    lesson.say(
        "What the assembler made of the loops that walk (ptxas 12.9 for sm_90, disassembled), for each state and step, and the \
         least ms by the issue of these alone. That of lane has loads, softplus and gate in it:",
    );
    let mut table = Table::new(["loop of", "instructions", "powers", "places", "ms"]);
    for row in Csv::read(ASSEMBLED)?.rows() {
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

/// The rungs, if they have been measured.
pub(super) fn ladder(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("rungs", "How fast the rungs are")?;
    let record = Csv::read(LADDER)?;
    if record.rows().next().is_none() {
        lesson.say(
            "The rungs below the last have not been measured on a GPU yet: results/h200/fused.csv has no rows. \
             `examples/rungs.rs` fills it on a machine with an H200.",
        );
        return Ok(());
    }
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

/// Mamba's backward pass, which ours has to be compared with.
pub(super) fn backward(lesson: &mut Lesson) -> lesson::Result {
    lesson.say(
        "The backward pass has not been timed on a GPU yet. Mamba's, which it will be compared with, on an H200:",
    );
    let mut table = Table::new(["shape", "element", "Mamba's ms, backward"]);
    for row in Csv::read(MAMBA)?.rows_with(&[("direction", "backward"), ("channels", "2048")]) {
        let shape = ["batch", "channels", "seq_len"].map(|name| row.text(name));
        let [batch, channels, len] = shape;
        let ms: f64 = row.number("ms")?;
        if ["1024", "16384", "65536"].contains(&len.as_ref().copied().unwrap_or_default()) {
            let shape = format!("{} x {} x {}", batch?, channels?, len?);
            table.row([shape, row.text("element")?.to_owned(), format!("{ms:.2}")]);
        }
    }
    lesson.table("mamba.csv", Kind::Computed, &table)
}

/// Measured times at the size of the roofs' picture: of the library, of Mamba's kernel, and unfused.
#[derive(Debug, Clone)]
pub(super) struct Marks {
    /// Of rungs, by their names, where they have been measured.
    pub(super) rungs: Vec<(String, f64)>,
    pub(super) shipped: f64,
    pub(super) exact: f64,
    pub(super) mamba: f64,
    pub(super) unfused: f64,
}

impl Marks {
    pub(super) fn read() -> lesson::Result<Marks> {
        let ms = |text: &str, wanted: &[(&str, &str)]| -> lesson::Result<f64> {
            let table = Csv::read(text)?;
            let row = table.rows_with(wanted).next();
            row.ok_or("a record has no such row")?.number("ms")
        };
        let long = ("seq_len", "16384");
        let f32 = ("element", "f32");
        let rungs = Csv::read(LADDER)?;
        let rungs = rungs.rows_with(&[("seq_len", "16384"), ("batch", "8")]);
        let rungs = rungs.map(|row| Ok((row.text("kernel")?.to_owned(), row.number("ms")?)));
        Ok(Marks {
            rungs: rungs.collect::<lesson::Result<_>>()?,
            shipped: ms(FIRST, &[long, f32, ("exponential", "fast")])?,
            exact: ms(FIRST, &[long, f32, ("exponential", "exact")])?,
            mamba: ms(MAMBA, &[long, f32, ("direction", "forward")])?,
            unfused: ms(ROOFS, &[long, f32, ("roof", "unfused")])?,
        })
    }
}
