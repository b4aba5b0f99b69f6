//! `tour bench` on a processor: the library's engine and the plain loop beside the roof, all in one
//! run.
//!
//! The roof is an element-wise kernel that moves the same bytes: an add of two arrays into a third
//! for the forward pass (12 bytes per f32 element), three arrays combined into two for the backward
//! pass (20 bytes). There are two, with ordinary and with streaming stores, and the roof is the
//! faster one. No recurrence can be faster, and one that is as fast costs nothing beyond its
//! memory.
//!
//! Arrays beyond the caches are measured on all cores, arrays inside them on one. The engines take
//! turns, so that a disturbance meets all of them, and every run is kept.

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

use crate::row::{Beside, Measured, Row};
use crate::{bytes, csv::Decimal};
use buffers::{Buffers, Problem};
use round::{ENGINES, Round};
use summary::Summary;

/// What to measure.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Runs of each engine.
    pub runs: u32,
    /// How much memory the arrays take together, in MiB, where they are to be larger than the
    /// caches.
    pub memory: u32,
    /// How much memory they take, in KiB, where they are to stay inside a core's own cache.
    pub cache: u32,
    /// Vector instructions, instead of this machine's widest; those that it lacks count as not
    /// given.
    pub simd: Option<Simd>,
    /// Where tables and figures go.
    pub out: PathBuf,
}

/// The sequence lengths are the powers of two from 16 to 65536.
const POWERS: std::ops::RangeInclusive<u32> = 4..=16;

/// Measures everything, prints the tables, and writes them with their figures; whether the engine
/// was right, and every run.
///
/// # Errors
///
/// If the output folder cannot be written, or there is not enough memory.
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

/// A problem and all runs of it.
type Runs = (Pass, Problem, Vec<Round>);

/// Measures problems of one kind.
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

/// The keys of a pass's two steps, and the names of their tables: beyond the caches, and inside
/// them.
fn tables(pass: Pass) -> [&'static str; 2] {
    match pass {
        Pass::Forward => ["forward-memory", "forward-cache"],
        Pass::Backward => ["backward-memory", "backward-cache"],
    }
}

/// The bytes that a pass over `f32` has to read and write for each element.
fn bytes_per_element(pass: Pass) -> usize {
    bytes(pass, 1, size_of::<f32>())
}

/// Keeps the runs of some problems; the roof of each is the faster one of both, and comes first.
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
        let here = here.rows(&engines, &times, Beside::Round).into_iter();
        // A processor's speeds are smaller numbers than a GPU's.
        rows.extend(here.map(|row| Row { gb_per_s: Decimal { places: 2, ..row.gb_per_s }, ..row }));
    }
}

/// The machine in words, with what of it is used.
fn words(cpu: &Cpu, threads: usize) -> String {
    let plural = if threads == 1 { "" } else { "s" };
    let machine = machine::describe().replace('"', "'");
    format!("{machine}, {}, {threads} thread{plural}", cpu.simd())
}
