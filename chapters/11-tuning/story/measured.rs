//! The races of chapter 11: the kernels and their peers, the library's rule, the CPU, and this
//! machine.
//!
//! Speeds of different machines and programs can be compared only as ratios to an addition in the
//! same run. This part therefore shows the record of `tour bench` as fractions of the roof, and
//! quotes the peers in the same way. It then shows the kernels that the rule selects, and measures
//! vectors and threads on this machine's processor and the library's choice on its GPU, if it has
//! one. `cargo xtask record --check` compares the values from records, but not the times of this
//! machine.

use bench::field::{Field, Roof, Runner};
use bench::turns::in_turns;
use bench::{LENGTHS, Peer, clock, figure, median, race};
use lesson::{Kind, Lesson, Table};
use linrec::cpu::{Cpu, Simd, roof};
use linrec::device::Device;
use linrec::kernels::{ElementType, KernelChoice, Pass, Query, Tuned, shipped_as};
use linrec::{Engine, Error, Options};
use ndarray::{ArrayView2, ArrayViewMut2};

use super::{NOTHING, cell};
use crate::record;

/// Shows the record of `tour bench`, as tables and as a figure.
pub(super) fn race(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("race", "Every kernel beside the roof")?;
    let record = record::race()?;
    let (few, many) =
        (record.count(Pass::Forward, "roof", 65_536), record.count(Pass::Forward, "roof", 16));
    lesson.say(&format!(
        "An H200, 13200 sequences of f32, medians of {few} runs, and of {many} where a run takes microseconds. Of each \
         kernel the fastest configuration runs, as a part of the roof in the same round. {}",
        if record.is_empty() { NOTHING } else { "" }
    ));
    for pass in Pass::ALL {
        lesson.say(&format!("The {} pass:", pass.name()));
        let table = race::table(&record, pass, &LENGTHS);
        lesson.table(&format!("race-{}.csv", pass.name()), Kind::Computed, &table)?;
        for name in ["pipe", "fastest"] {
            let of = |name: &str, len: usize| match name {
                "fastest" => record.fastest(pass, len).map(|(_, run)| run),
                _ => record.kernel(pass, name, len).map(|(_, run)| run),
            };
            let ratios: Vec<f64> =
                LENGTHS.iter().filter_map(|&len| Some(of(name, len)?.ratio)).collect();
            let least = ratios.iter().copied().reduce(f64::min);
            lesson.value(&format!("{name}_{}", pass.name()), cell(least, 2), Kind::Computed);
            let long = of(name, 4096).map(|run| run.ratio);
            lesson.value(&format!("{name}_{}_4096", pass.name()), cell(long, 2), Kind::Computed);
        }
    }
    lesson.value("bench_runs", few, Kind::Computed);
    lesson.value("bench_runs_short", many, Kind::Computed);
    let svg = figure::figure(&record, &record::peers()?, linrec::kernels::ElementType::F32)?;
    lesson.figure("bench.svg", "Every kernel beside the roof", Kind::Computed, &svg)
}

/// The compared peers: a part of the name in the record, and the column's name.
const PEERS: [(&str, &str); 5] = [
    ("CUDA ref", "post: ref"),
    ("CUDA pipe default", "post: pipe, default"),
    ("CUDA pipe best", "post: pipe, best"),
    ("Triton pipe", "post: Triton"),
    ("accelerated-scan", "accelerated-scan"),
];

/// Shows one row for each length: theirs relative to their addition, ours relative to our roof.
pub(super) fn peers(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("peers", "Beside others")?;
    let (peers, race) = (record::peers()?, record::race()?);
    lesson.say(
        "On H200s, 13200 sequences of f32. Two records come from two runs, so each speed is divided by that of an \
         addition in its own run: torch.add for the peers, the roof for ours. There was no torch operation with the \
         bytes of the backward pass; the addition of the same length replaces it.",
    );
    let mut slower = 0;
    for pass in Pass::ALL {
        lesson.say(&format!("The {} pass:", pass.name()));
        let columns = PEERS.iter().map(|&(_, column)| column);
        let mut table = Table::new(
            ["length"].into_iter().chain(columns).chain(["ours: pipe", "ours: fastest"]),
        );
        let mut lengths: Vec<usize> = peers.iter().map(|peer| peer.seq_len).collect();
        lengths.sort_unstable();
        lengths.dedup();
        for len in lengths {
            let ours = |name: &str| race.kernel(pass, name, len).map(|(_, run)| run.gb_per_s);
            let roof = race.median(Pass::Forward, "roof", len).map(|run| run.gb_per_s);
            let ratio = |speed: Option<f64>| speed.zip(roof).map(|(speed, roof)| speed / roof);
            let theirs = PEERS.map(|(part, _)| quoted(&peers, pass, len, part));
            let fastest = ratio(race.fastest(pass, len).map(|(_, run)| run.gb_per_s));
            slower += theirs
                .iter()
                .flatten()
                .filter(|&&theirs| fastest.is_some_and(|ours| ours <= theirs))
                .count();
            let cells = theirs.into_iter().chain([ratio(ours("pipe")), fastest]);
            table.row([len.to_string()].into_iter().chain(cells.map(|ratio| cell(ratio, 3))));
        }
        lesson.table(&format!("peers-{}.csv", pass.name()), Kind::Computed, &table)?;
    }
    lesson.value("slower_than_peers", slower, Kind::Computed);
    lesson.value("of_the_post", of_the_post(&peers), Kind::Computed);
    Ok(())
}

/// Returns a peer's speed as a fraction of the addition's in its own record.
fn quoted(peers: &[Peer], pass: Pass, len: usize, part: &str) -> Option<f64> {
    let speed = |pass: Pass, part: &str| {
        let mut mine = peers.iter().filter(|peer| peer.pass == pass && peer.seq_len == len);
        mine.find(|peer| peer.name.contains(part)).map(|peer| peer.gb_per_s)
    };
    Some(speed(pass, part)? / speed(Pass::Forward, "torch.add")?)
}

/// Formats the smallest and the largest fraction of the addition that the post's best pipe reaches.
fn of_the_post(peers: &[Peer]) -> String {
    let lengths = LENGTHS.iter();
    let all: Vec<f64> =
        lengths.filter_map(|&len| quoted(peers, Pass::Forward, len, "CUDA pipe best")).collect();
    let least = all.iter().copied().fold(f64::INFINITY, f64::min);
    let most = all.iter().copied().fold(0.0, f64::max);
    format!("{:.0} to {:.0} %", 100.0 * least, 100.0 * most)
}

/// Shows the library's choice for some shapes.
pub(super) fn pick(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("pick", "The rule")?;
    let rule = Tuned::measured();
    lesson.say(&format!(
        "The library's table has {} finalists. What KernelChoice::best takes for 13200 sequences of f32: any \
         configuration, for rows of whole vectors; any, for rows that begin anywhere; and of the shipped ones.",
        rule.len()
    ));
    let mut table = Table::new(["pass", "length", "rows of whole vectors", "any rows", "shipped"]);
    for pass in Pass::ALL {
        for len in [16, 64, 256, 1024, 4096, 65_536] {
            let best = |whole, shipped| {
                KernelChoice::best(Query {
                    element: ElementType::F32,
                    pass,
                    num_seqs: 13_200,
                    seq_len: len,
                    whole,
                    shipped_only: shipped,
                })
                .to_string()
            };
            let names = [best(true, false), best(false, false), best(true, true)];
            table.row([pass.name().to_owned(), len.to_string()].into_iter().chain(names));
        }
    }
    lesson.table("pick.csv", Kind::Computed, &table)?;
    let known = ElementType::ALL.into_iter().all(|element| {
        let choice = KernelChoice::best(Query {
            element,
            pass: Pass::Forward,
            num_seqs: 100,
            seq_len: 1000,
            whole: false,
            shipped_only: true,
        });
        shipped_as(&choice.program(element)).is_some()
    });
    lesson.check("types without a shipped kernel", f64::from(u8::from(!known)), 0.0);
    lesson.value("finalists", rule.len(), Kind::Computed);
    Ok(())
}

/// The number of elements of arrays that stay in a core's cache, and of arrays that fit into no
/// cache.
const SIZES: [(&str, usize); 2] = [("in cache", 1 << 15), ("in memory", 1 << 24)];

pub(super) fn cpu(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("cpu", "On the processor")?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    lesson.say(&format!(
        "The engine for processors, forward in f32, rows of 1024: its speed relative to the roof with the same vectors \
         and threads, and relative to one thread with no vector instructions beyond the usual. This \
         machine has {threads} threads.",
    ));
    let mut table = Table::new(["arrays", "vectors", "threads", "/ roof", "times faster"]);
    for (place, elements) in SIZES {
        let mut first = None;
        for simd in Simd::ALL.into_iter().rev() {
            let Some(cpu) = Cpu::new().with_simd(simd) else { continue };
            for single in [true, false] {
                // More threads do not help with arrays in one core's cache.
                if !single && elements == SIZES[0].1 {
                    continue;
                }
                let cpu = if single { cpu.clone().single_threaded() } else { cpu.clone() };
                let [ours, theirs] = race_cpu(&cpu, elements)?;
                let base = *first.get_or_insert(ours);
                table.row([
                    place.to_owned(),
                    simd.to_string(),
                    if single { String::from("1") } else { threads.to_string() },
                    format!("{:.2}", theirs / ours),
                    format!("{:.1}", base / ours),
                ]);
            }
        }
    }
    lesson.table("cpu.csv", Kind::Timed, &table)
}

/// Measures the seconds of the engine and of its roof.
fn race_cpu(cpu: &Cpu, elements: usize) -> Result<[f64; 2], Error> {
    let (x, c) = (vec![1.0_f32; elements], vec![0.5_f32; elements]);
    let (mut y, mut sums) = (vec![0.0_f32; elements], vec![0.0_f32; elements]);
    let shape = (elements / 1024, 1024);
    let options = Options::default();
    // Repeats until a measurement takes a few milliseconds.
    let repeats = (1_usize << 22).div_ceil(elements);
    let view = |array| ArrayView2::from_shape(shape, array).map_err(|_| too_large(elements));
    let (x_rows, c_rows) = (view(&x[..])?, view(&c[..])?);
    let mut failed = Ok(());
    let mut ours = || {
        for _ in 0..repeats {
            let rows = ArrayViewMut2::from_shape(shape, &mut y[..]);
            let run = rows
                .map_err(|_| too_large(elements))
                .and_then(|rows| cpu.forward_into(x_rows, c_rows, &options, rows).map(drop));
            if let Err(error) = run {
                failed = Err(error);
            }
        }
    };
    let mut theirs = || {
        for _ in 0..repeats {
            roof::forward(cpu, &x, &c, &mut sums);
        }
    };
    let times = clock::medians(9, [&mut ours, &mut theirs]);
    failed?;
    Ok(times.map(|time| time.as_secs_f64()))
}

fn too_large(elements: usize) -> Error {
    Error::OutOfMemory { operation: "forward", bytes: 4 * elements }
}

const RUNS: usize = 9;

/// On a GPU, compares the library's choice with the roof; elsewhere, explains how to count.
pub(super) fn here(lesson: &mut Lesson, device: &Device) -> lesson::Result {
    lesson.step("here", "On this machine")?;
    if device.is_simt() {
        lesson.say(
            "There is no GPU here. `cargo run --release -- tune pipe` counts instructions and sectors, and \
             `cargo run --release -- bench` measures the processor.",
        );
        return Ok(());
    }
    let num_seqs = 100 * device.attributes().multiprocessors as usize;
    lesson.say(&format!(
        "{} with {num_seqs} sequences of f32: what the library would take of the shipped kernels, beside the roof. \
         Medians of {RUNS} runs.",
        device.name()
    ));
    let mut field = Field::<f32>::new(device, num_seqs * 4096)?;
    let mut table = Table::new(["pass", "length", "kernel", "ms", "/ roof"]);
    for pass in Pass::ALL {
        for len in [64, 1024, 4096] {
            let choice = KernelChoice::best(Query {
                element: ElementType::F32,
                pass,
                num_seqs: num_seqs as u64,
                seq_len: len as u64,
                whole: true,
                shipped_only: true,
            });
            let runners = [Runner::Roof(Roof::Vectors), Runner::kernel(device, choice)?];
            let times = in_turns(runners.len(), RUNS, |place| {
                field.time_ms(&runners[place], pass, (num_seqs, len))
            })?;
            let [roof, ours] = [0, 1].map(|place| times[place].iter().copied());
            let ratios = roof.zip(ours.clone()).map(|(theirs, ms)| theirs / ms);
            table.row([
                pass.name().to_owned(),
                len.to_string(),
                choice.to_string(),
                format!("{:.4}", median(ours)),
                format!("{:.2}", median(ratios)),
            ]);
        }
    }
    lesson.table("here.csv", Kind::Timed, &table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_posts_pipe_is_a_fraction_of_its_addition() {
        assert_eq!(of_the_post(&record::peers().unwrap()), "39 to 81 %");
        let ratio =
            quoted(&record::peers().unwrap(), Pass::Forward, 65_536, "CUDA pipe best").unwrap();
        assert!((ratio - 3079.7 / 4365.4).abs() < 1e-9);
    }
}
