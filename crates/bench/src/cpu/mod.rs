//! `tour bench` on a processor: measures the library's engine, the plain loop and the roof in one
//! run.
//!
//! The roof is an element-wise kernel that moves the same bytes: an add of two arrays into a third
//! for the forward pass (12 bytes per f32 element), three arrays combined into two for the backward
//! pass (20 bytes). There is a version with ordinary and a version with streaming stores; the
//! faster one is the roof. No recurrence can be faster, and a recurrence that is as fast costs
//! nothing beyond its memory traffic.
//!
//! Arrays larger than the caches are measured on all cores, arrays inside the caches on one. The
//! engines take turns, so that a disturbance affects all of them, and every run is recorded.

mod buffers;
mod plain;
mod round;
mod summary;

use std::path::PathBuf;

use lesson::plot::{self, Panel};
use lesson::{Kind, Lesson, machine};
use linrec::contract::{self, Domain};
use linrec::cpu::{Cpu, Simd};
use linrec::kernels::{ElementType, Pass};

use crate::row::{Baseline, Measured, Row};
use crate::{bytes, csv::Decimal};
use buffers::{Buffers, Problem};
use round::{ENGINES, Round};
use summary::Summary;

/// The settings of the measurement.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The number of runs of each engine.
    pub runs: u32,
    /// The memory of all arrays together where they must exceed the caches, in MiB.
    pub memory: u32,
    /// The memory of all arrays together where they must fit into a core's own cache, in KiB.
    pub cache: u32,
    /// The vector instructions to use instead of this machine's widest. A choice that this machine
    /// lacks is ignored.
    pub simd: Option<Simd>,
    /// The folder for tables and figures.
    pub out: PathBuf,
}

/// The exponents of the sequence lengths, which are the powers of two from 16 to 65536.
const POWERS: std::ops::RangeInclusive<u32> = 4..=16;

/// Measures everything, prints the tables, and writes them with their figures. Returns true if the
/// engine was right, together with every run.
///
/// # Errors
///
/// Returns an error if the output folder cannot be written, or there is not enough memory.
pub fn run(settings: &Settings) -> lesson::Result<(bool, Vec<Row>)> {
    let cpu = settings.simd.and_then(|simd| Cpu::new().with_simd(simd)).unwrap_or_default();
    let lesson_settings = lesson::Settings { full: false, step: false, out: settings.out.clone() };
    let title = "The speed of this CPU";
    let mut rows = Vec::new();
    let record = lesson::tell(0, "00-start-here", title, &lesson_settings, |lesson| {
        lesson.command("cargo run --release -- bench");
        lesson.engine("cpu");
        tell(lesson, settings, &cpu, &mut rows)
    })?;
    Ok((record.passed(), rows))
}

fn tell(
    lesson: &mut Lesson,
    settings: &Settings,
    cpu: &Cpu,
    rows: &mut Vec<Row>,
) -> lesson::Result {
    lesson.step("before", "First, is it right?")?;
    lesson.say(
        "What is measured must be right. Without its longest sequences the contract takes a second.",
    );
    let domain = Domain { max_len: 5000, levels: Domain::tree_levels, ..Domain::default() };
    let report = contract::run::<f32>(cpu, &domain);
    lesson.check("cases of the contract that failed", report.failures.len() as f64, 0.0);
    lesson.check("largest error in units of its bound", report.worst, 1.0);

    let threads = rayon::current_num_threads();
    let mut panels = Vec::new();
    for pass in Pass::ALL {
        let [beyond_caches, inside_caches] = tables(pass);
        let elements = settings.memory as usize * (1 << 20) / bytes_per_element(pass);
        let problems =
            lengths().chain([elements]).map(|length| Problem::new(elements, length, threads));
        let place = format!("{} MiB, all cores", settings.memory);
        let (summary, rounds) = measure(pass, &place, problems.collect(), cpu, settings.runs)?;
        lesson.step(beyond_caches, &format!("The {pass} pass beyond the caches"))?;
        lesson.say(&format!(
            "The arrays take {} MiB together, and all {threads} threads work. Throughput in GB/s, \
             medians of {} runs; the last line is one single row. The engine uses {} vectors. There is a roof with \
             ordinary stores and one with streaming stores, which go past the caches; the ratio is to the faster one.",
            settings.memory,
            settings.runs,
            cpu.simd()
        ));
        summary.show(lesson, beyond_caches)?;
        panels.push(summary.chart(&format!("{pass}, {place}")));
        keep(rows, cpu, &rounds);

        let elements = settings.cache as usize * (1 << 10) / bytes_per_element(pass);
        let fitting = lengths().filter(|&length| length <= elements);
        let problems = fitting.map(|length| Problem::new(elements, length, 1));
        let place = format!("{} KiB, one core", settings.cache);
        let (summary, rounds) = measure(pass, &place, problems.collect(), cpu, settings.runs)?;
        lesson.step(inside_caches, &format!("The {pass} pass inside the caches"))?;
        lesson.say(&format!(
            "The arrays take {} KiB together, and one thread works: here arithmetic and waiting show.",
            settings.cache
        ));
        summary.show(lesson, inside_caches)?;
        panels.push(summary.chart(&format!("{pass}, {place}")));
        keep(rows, cpu, &rounds);
    }
    let panels: Vec<&dyn Panel> = panels.iter().map(|panel| panel as &dyn Panel).collect();
    let svg = plot::grid(&panels, 2)?;
    lesson.figure("bench.svg", "Throughput of both roofs, cpu and loop", Kind::Timed, &svg)
}

fn lengths() -> impl Iterator<Item = usize> {
    POWERS.map(|power| 1 << power)
}

type Runs = (Pass, Problem, Vec<Round>);

fn measure(
    pass: Pass,
    place: &str,
    problems: Vec<Problem>,
    cpu: &Cpu,
    runs: u32,
) -> lesson::Result<(Summary, Vec<Runs>)> {
    let largest = problems.iter().map(|problem| problem.elements()).max().unwrap_or(0);
    let mut buffers = Buffers::new(pass, largest)?;
    let mut summary = Summary::default();
    let mut measured = Vec::new();
    let progress = lesson::progress(problems.len(), &format!("{pass}, {place}"));
    for problem in problems {
        let rounds = round::rounds(&problem, &mut buffers, cpu, runs)?;
        summary.add(pass, &problem, &rounds);
        measured.push((pass, problem, rounds));
        progress.inc(1);
    }
    progress.finish_and_clear();
    Ok((summary, measured))
}

/// Returns the keys of a pass's two steps, which are also the names of their tables: for arrays
/// beyond the caches and inside them.
fn tables(pass: Pass) -> [&'static str; 2] {
    match pass {
        Pass::Forward => ["forward-memory", "forward-cache"],
        Pass::Backward => ["backward-memory", "backward-cache"],
    }
}

fn bytes_per_element(pass: Pass) -> usize {
    bytes(pass, 1, size_of::<f32>())
}

/// Adds the runs of several problems to the rows. The faster roof of each problem comes first.
fn keep(rows: &mut Vec<Row>, cpu: &Cpu, measured: &[Runs]) {
    for (pass, problem, rounds) in measured {
        let mut order: [usize; ENGINES.len()] = std::array::from_fn(|engine| engine);
        order[..2].rotate_left(round::roof(rounds));
        let engines = order.map(|engine| ENGINES[engine].to_owned());
        let ms = |engine: usize| rounds.iter().map(|round| 1e3 * round[engine]).collect();
        let times: [Vec<f64>; ENGINES.len()] = order.map(ms);
        let here = Measured {
            machine: &words(cpu, problem.threads),
            element: ElementType::F32,
            pass: *pass,
            shape: (problem.num_seqs, problem.seq_len),
        };
        let here = here.rows(&engines, &times, Baseline::Round).into_iter();
        // A processor's speeds are smaller numbers than a GPU's, so they get one more decimal.
        rows.extend(here.map(|row| Row { gb_per_s: Decimal { places: 2, ..row.gb_per_s }, ..row }));
    }
}

fn words(cpu: &Cpu, threads: usize) -> String {
    let plural = if threads == 1 { "" } else { "s" };
    let machine = machine::describe().replace('"', "'");
    format!("{machine}, {}, {threads} thread{plural}", cpu.simd())
}
