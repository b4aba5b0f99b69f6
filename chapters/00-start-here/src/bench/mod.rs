//! `tour bench`: the library's engines beside the roof, all in one run: the kernels on a GPU where there is
//! one (chapter 9), and else the CPU engine and the plain loop.
//!
//! The roof is an element-wise kernel that moves the same bytes: an add of two arrays into a third for
//! the forward pass (12 bytes per f32 element), three arrays combined into two for the backward pass
//! (20 bytes). No recurrence can be faster, and one that is as fast costs nothing beyond its memory.
//!
//! Arrays beyond the caches are measured on all cores, arrays inside them on one. The engines take
//! turns, so that a disturbance meets all of them, and every run is kept.

mod buffers;
mod csv;
mod plain;
mod round;
mod summary;

use std::path::PathBuf;

use ch09_tuning::{element, race};
use linrec::contract::{self, Domain};
use linrec::cpu::{Cpu, Simd};
use linrec::device::Device;
use linrec::kernels::ElementType;
use linrec::lesson::plot::{self, Panel};
use linrec::lesson::{self, Kind, Lesson};

use buffers::{Buffers, Direction, Problem};
use csv::CsvFile;
use round::Round;
use summary::Summary;

/// What to measure.
#[derive(Debug, Clone, clap::Args)]
pub struct Settings {
    /// Write every single run to this file as CSV.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Replace the CSV file if there is one.
    #[arg(long, requires = "csv")]
    overwrite: bool,

    /// How many runs of each engine.
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,

    /// How much memory the arrays take together, in MiB, where they are to be larger than the caches.
    #[arg(long, value_name = "MIB", default_value_t = 480, value_parser = clap::value_parser!(u32).range(1..=65536))]
    memory: u32,

    /// How much memory they take, in KiB, where they are to stay inside a core's own cache.
    #[arg(long, value_name = "KIB", default_value_t = 384, value_parser = clap::value_parser!(u32).range(1..=65536))]
    cache: u32,

    /// Use narrower vector instructions than this machine's widest: AVX-512, AVX2 or portable.
    #[arg(long, value_name = "NAME", value_parser = simd)]
    simd: Option<Simd>,

    /// Where tables and figures go.
    #[arg(long, value_name = "FOLDER", default_value = "target/tour")]
    out: PathBuf,

    /// What to measure: cpu, cuda or cuda:1; the first GPU, or else the CPU, if none is given.
    #[arg(long, value_name = "NAME")]
    device: Option<String>,

    /// On a GPU: the element type.
    #[arg(long, value_name = "TYPE", default_value = "f32", value_parser = element::parse)]
    element: ElementType,

    /// On a GPU: the lengths, instead of 16 to 65536.
    #[arg(long, value_name = "L,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    lengths: Vec<u32>,

    /// On a GPU: which configurations run, a tuned.csv of `tour tune`, instead of the library's own rule.
    #[arg(long, value_name = "FILE")]
    tuned: Option<PathBuf>,
}

/// The GPU to measure; `None` for the CPU.
fn gpu(settings: &Settings) -> lesson::Result<Option<Device>> {
    let of_cpu = settings.csv.is_some() || settings.simd.is_some();
    let device = match settings.device.as_deref() {
        Some("cpu") => return Ok(None),
        None if of_cpu => return Ok(None),
        name => ch09_tuning::device(name)?,
    };
    match (device.is_simt(), &settings.device) {
        (false, _) => Ok(Some(device)),
        (true, None) => Ok(None),
        (true, Some(_)) => {
            Err("an emulator has no speed to be measured; write cpu, cuda or cuda:1".into())
        }
    }
}

/// The sequence lengths are the powers of two from 16 to 65536.
const POWERS: std::ops::RangeInclusive<u32> = 4..=16;

/// The vector instructions of a name, as `tour doctor` prints it.
fn simd(name: &str) -> Result<Simd, String> {
    let named = |simd: &Simd| simd.to_string().eq_ignore_ascii_case(name);
    let simd = Simd::ALL.into_iter().find(named);
    let simd =
        simd.ok_or_else(|| format!("choose from {}", Simd::ALL.map(|s| s.to_string()).join(", ")))?;
    simd.is_available().then_some(simd).ok_or_else(|| String::from("this machine does not have it"))
}

/// Measures everything, prints the tables, and writes them with their figures.
///
/// # Errors
///
/// If the CSV file cannot be written (that is found out before anything is measured), or the output
/// folder, or if there is not enough memory.
pub fn run(settings: &Settings) -> lesson::Result<bool> {
    if let Some(device) = gpu(settings)? {
        let settings = race::Settings {
            element: settings.element,
            lengths: settings.lengths.iter().map(|&len| len as usize).collect(),
            runs: settings.runs as usize,
            tuned: settings.tuned.clone(),
            out: settings.out.clone(),
        };
        return race::run(&device, &settings);
    }
    // An instruction set that the machine lacks was refused with the command line.
    let cpu = settings.simd.and_then(|simd| Cpu::new().with_simd(simd)).unwrap_or_default();
    let csv = settings.csv.as_deref().map(|path| CsvFile::create(path, settings.overwrite));
    let mut csv = csv.transpose()?;
    let lesson_settings = lesson::Settings { full: false, step: false, out: settings.out.clone() };
    let title = "The speed of this CPU";
    let record = lesson::tell(0, "00-start-here", title, &lesson_settings, |lesson| {
        lesson.command("cargo run --release -- bench");
        lesson.engine("cpu");
        tell(lesson, settings, &cpu, csv.as_mut())
    })?;
    if let Some(csv) = csv {
        println!("Every run is in {}.", csv.path().display());
    }
    Ok(record.passed())
}

fn tell(
    lesson: &mut Lesson,
    settings: &Settings,
    cpu: &Cpu,
    mut csv: Option<&mut CsvFile>,
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
    for direction in [Direction::Forward, Direction::Backward] {
        let elements = settings.memory as usize * (1 << 20) / direction.bytes_per_element();
        let problems =
            lengths().chain([elements]).map(|length| Problem::new(elements, length, threads));
        let place = format!("{} MiB, all cores", settings.memory);
        let (summary, rounds) = measure(direction, &place, problems.collect(), cpu, settings.runs)?;
        lesson
            .step(direction.beyond_caches(), &format!("The {direction} pass beyond the caches"))?;
        lesson.say(&format!(
            "The arrays take {} MiB together, and all {threads} threads work. Throughput in GB/s, \
             medians of {} runs; the last line is one single row. The engine uses {} vectors.",
            settings.memory,
            settings.runs,
            cpu.simd()
        ));
        summary.show(lesson, direction.beyond_caches())?;
        panels.push(summary.chart(&format!("{direction}, {place}")));
        keep(&mut csv, cpu, &rounds)?;

        let elements = settings.cache as usize * (1 << 10) / direction.bytes_per_element();
        let fitting = lengths().filter(|&length| length <= elements);
        let problems = fitting.map(|length| Problem::new(elements, length, 1));
        let place = format!("{} KiB, one core", settings.cache);
        let (summary, rounds) = measure(direction, &place, problems.collect(), cpu, settings.runs)?;
        lesson
            .step(direction.inside_caches(), &format!("The {direction} pass inside the caches"))?;
        lesson.say(&format!(
            "The arrays take {} KiB together, and one thread works: here arithmetic and waiting show.",
            settings.cache
        ));
        summary.show(lesson, direction.inside_caches())?;
        panels.push(summary.chart(&format!("{direction}, {place}")));
        keep(&mut csv, cpu, &rounds)?;
    }
    let panels: Vec<&dyn Panel> = panels.iter().map(|panel| panel as &dyn Panel).collect();
    let svg = plot::grid(&panels, 2)?;
    lesson.figure("bench.svg", "Throughput of roof, cpu and loop", Kind::Timed, &svg)
}

fn lengths() -> impl Iterator<Item = usize> {
    POWERS.map(|power| 1 << power)
}

/// A problem and all runs of it.
type Measured = (Direction, Problem, Vec<Round>);

/// Measures problems of one kind.
fn measure(
    direction: Direction,
    place: &str,
    problems: Vec<Problem>,
    cpu: &Cpu,
    runs: u32,
) -> lesson::Result<(Summary, Vec<Measured>)> {
    let largest = problems.iter().map(|problem| problem.elements()).max().unwrap_or(0);
    let mut buffers = Buffers::new(direction, largest)?;
    let mut summary = Summary::default();
    let mut measured = Vec::new();
    let progress = lesson::progress(problems.len(), &format!("{direction}, {place}"));
    for problem in problems {
        let rounds = round::rounds(&problem, &mut buffers, cpu, runs)?;
        summary.add(direction, &problem, &rounds);
        measured.push((direction, problem, rounds));
        progress.inc(1);
    }
    progress.finish_and_clear();
    Ok((summary, measured))
}

fn keep(csv: &mut Option<&mut CsvFile>, cpu: &Cpu, measured: &[Measured]) -> lesson::Result {
    let Some(csv) = csv else { return Ok(()) };
    measured
        .iter()
        .try_for_each(|(direction, problem, rounds)| csv.write(cpu, *direction, problem, rounds))
}
