//! The measurements of chapter 2: the cost of a thread and of a step, then time against the length
//! and the number of threads.
//!
//! Counted steps predict that T threads take a T-th of the time. Measured time adds the cost of
//! starting threads and of loops that do more per element, so this part measures these pieces first
//! and derives from them the length at which two threads win. Times are not compared with the
//! record.

use std::hint::black_box;
use std::thread;

use bench::clock::{median, medians};
use ch01_sequential_loop::linrec_into;
use lesson::plot::{self, Chart, kernels};
use lesson::{Kind, Lesson, Result, Table, clock};
use ndarray::Array1;

use super::{around_one, random};
use crate::{Part, many_threads, two_threads};

/// The seconds of one thread and of one element of each loop.
pub(super) struct Pieces {
    /// Starting a thread and waiting for its end.
    pub thread: f64,
    /// The plain loop of chapter 1.
    pub plain: f64,
    /// The loop that stores products as well.
    pub scan: f64,
    /// The loop that adds the contribution of the state before.
    pub combine: f64,
}

pub(super) fn cost_of_a_thread(lesson: &mut Lesson) -> Result {
    lesson.step("threads", "What a thread costs")?;
    let cores = thread::available_parallelism().map_or(1, |n| n.get());
    lesson.say(&format!(
        "This machine has {cores} cores. Threads with nothing to do, started and waited for:"
    ));
    let mut table = Table::new(["threads", "all of them", "each"]);
    for threads in [1, 4, 16, 64] {
        let all = median(21, || start(threads));
        table.row([threads.to_string(), clock::text(all), clock::text(all / threads)]);
    }
    lesson.value("cores", cores, Kind::Timed);
    lesson.table("threads.csv", Kind::Timed, &table)
}

fn start(threads: u32) {
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| black_box(()));
        }
    });
}

/// Measures one element of the plain loop, of the loop that stores products, and of the combining
/// loop.
pub(super) fn cost_of_a_step(lesson: &mut Lesson) -> Result<Pieces> {
    lesson.step("pieces", "What a step costs")?;
    lesson.say("One thread, 65,536 elements, nanoseconds per element:");
    let around = measure_pieces(around_one(1 << 16))?;
    let fading = measure_pieces(random(1 << 16, 0.98..1.0))?;
    let mut table = Table::new(["loop", "c in [0.99, 1.01)", "c in [0.98, 1)"]);
    let names = ["plain (chapter 1)", "with products", "combining"];
    for (i, name) in names.into_iter().enumerate() {
        table.row([name.to_owned(), format!("{:.3}", around[i]), format!("{:.3}", fading[i])]);
    }
    lesson.table("pieces.csv", Kind::Timed, &table)?;
    let [plain, scan, combine] = around;
    lesson.say(&format!(
        "A step is not a step: combining took {:.2} of the time of the plain loop. Its elements do \
         not wait for each other. Keeping the products took {:.2} times the plain loop with \
         coefficients around 1, and {:.2} times with coefficients below 1.",
        combine / plain,
        scan / plain,
        fading[1] / fading[0],
    ));
    let normal = smallest_normal(1 << 16);
    lesson.say(&format!(
        "Below 1 the products shrink. Here they leave the range of normal f32 numbers after \
         {normal} elements; from there on they are subnormal numbers, for which many processors \
         take extra time."
    ));
    lesson.value("normal_until", normal, Kind::Computed);
    lesson.value("combine_share", format!("{:.2}", combine / plain), Kind::Timed);
    lesson.value("scan_share", format!("{:.2}", scan / plain), Kind::Timed);
    lesson.value("fading_share", format!("{:.2}", fading[1] / fading[0]), Kind::Timed);
    let [plain, scan, combine] = around.map(|nanos| nanos * 1e-9);
    let thread = median(51, || start(1)).as_secs_f64();
    Ok(Pieces { thread, plain, scan, combine })
}

/// Returns the length at which products of coefficients in [0.98, 1) cease to be normal numbers.
fn smallest_normal(len: usize) -> usize {
    let products = random(len, 0.98..1.0).1.cumprod(ndarray::Axis(0));
    products.iter().take_while(|product| product.is_normal()).count()
}

fn measure_pieces((x, c): (Array1<f32>, Array1<f32>)) -> Result<[f64; 3]> {
    let [mut y, mut local] = [Array1::zeros(x.len()), Array1::zeros(x.len())];
    let mut added = Array1::zeros(x.len());
    let mut part = Part::new(x.view(), c.view(), local.view_mut())?;
    let mut other = Part::new(x.view(), c.view(), added.view_mut())?;
    other.scan(0.0);
    let times = medians(
        15,
        [
            &mut || _ = black_box(linrec_into(x.view(), c.view(), 0.0, y.view_mut())),
            &mut || _ = black_box(part.scan(0.0)),
            &mut || other.combine(black_box(1e-9)),
        ],
    );
    Ok(times.map(|time| time.as_secs_f64() * 1e9 / x.len() as f64))
}

/// Measures the loop, two threads and four threads, from short to long sequences.
pub(super) fn against_length(lesson: &mut Lesson, pieces: &Pieces) -> Result {
    lesson.step("length", "Measured: how long must a sequence be?")?;
    let exponents = lesson.size(10..=22, 10..=26);
    let bar = lesson::progress(exponents.clone().count(), "measuring");
    let mut table = Table::new(["L", "loop", "two threads", "four threads", "loop / two threads"]);
    let mut lines: [Vec<(f64, f64)>; 3] = Default::default();
    let mut gains = Vec::new();
    for exponent in exponents {
        let len = 1_usize << exponent;
        let times = measure_length(len)?;
        let gain = times[0].as_secs_f64() / times[1].as_secs_f64();
        gains.push((len, gain));
        if exponent % 2 == 0 {
            let texts = times.map(clock::text);
            table.row([&[len.to_string()][..], &texts, &[format!("{gain:.2}")]].concat());
        }
        for (line, time) in lines.iter_mut().zip(times) {
            line.push((len as f64 / 1024.0, time.as_secs_f64() * 1e9 / len as f64));
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    lesson.table("length.csv", Kind::Timed, &table)?;

    let wins = gains.iter().rev().take_while(|(_, gain)| *gain > 1.0);
    let crossover = wins.last().map(|(len, _)| *len);
    let best = gains.iter().fold(0.0_f64, |best, (_, gain)| best.max(*gain));
    lesson.say(&match crossover {
        Some(len) => format!(
            "Of these lengths (and the powers of two between them), two threads beat the loop from \
             {len} elements on. The largest gain was a factor of {best:.2}."
        ),
        None => format!(
            "At the longest of these lengths two threads did not beat the loop; the most they \
             reached was {best:.2} times its speed."
        ),
    });
    // Two threads save half of the plain loop, minus half of a combining loop.
    let saved = pieces.plain - (pieces.scan + pieces.combine) / 2.0;
    let predicted = (saved > 0.0).then(|| format!("{:.0}", pieces.thread / saved));
    let predicted = predicted.unwrap_or("no number of".to_owned());
    let thread = clock::text(std::time::Duration::from_secs_f64(pieces.thread));
    lesson.say(&format!(
        "By the pieces above: two threads that have a core each save half of the loop, less the \
         combining, and pay {thread} for a thread (measured once more). That should even out at {predicted} elements."
    ));
    let text = crossover.map_or("no length".to_owned(), |len| len.to_string());
    lesson.value("crossover", text, Kind::Timed);
    lesson.value("best_gain", format!("{best:.2}"), Kind::Timed);
    lesson.value("predicted_crossover", predicted, Kind::Timed);
    let [plain, two, four] = lines;
    let chart = Chart::new("Time per element")
        .axes("length L in units of 1024", "ns per element")
        .log_x(2.0)
        .log_y(10.0)
        .measured("loop", plain)
        .color(kernels::color("loop"))
        .measured("two threads", two)
        .measured("four threads", four);
    lesson.figure("length.svg", "time against length", Kind::Timed, &plot::svg(&[&chart])?)
}

fn measure_length(len: usize) -> Result<[std::time::Duration; 3]> {
    let (x, c) = around_one(len);
    let mut y: [Array1<f32>; 3] = std::array::from_fn(|_| Array1::zeros(len));
    let [y1, y2, y3] = &mut y;
    let (mut failure, mut other) = (None, None);
    let times = medians(
        if len > 1 << 20 { 7 } else { 21 },
        [
            &mut || _ = black_box(linrec_into(x.view(), c.view(), 0.0, y1.view_mut())),
            &mut || {
                keep(&mut failure, || {
                    two_threads(Part::new(x.view(), c.view(), y2.view_mut())?, 0.0, len / 2)?;
                    Ok(())
                })
            },
            &mut || {
                keep(&mut other, || {
                    many_threads(Part::new(x.view(), c.view(), y3.view_mut())?, 0.0, 4)?;
                    Ok(())
                })
            },
        ],
    );
    match failure.or(other) {
        Some(error) => Err(error),
        None => Ok(times),
    }
}

fn keep(failure: &mut Option<lesson::Error>, work: impl FnOnce() -> Result) {
    if let Err(error) = work() {
        *failure = Some(error);
    }
}

/// Measures one length on an increasing number of threads.
pub(super) fn against_threads(lesson: &mut Lesson) -> Result {
    lesson.step("many", "Measured: how many threads?")?;
    let len = lesson.size(1 << 20, 1 << 24);
    lesson.say(&format!("{len} elements on T threads:"));
    let (x, c) = around_one(len);
    let (mut y, mut plain) = (Array1::zeros(len), Array1::zeros(len));
    let all = [1, 2, 3, 4, 8, 16, 32, 64];
    let bar = lesson::progress(all.len(), "measuring");
    let mut table = Table::new(["T", "time", "loop / T threads", "L / steps one after another"]);
    let (mut times, mut ideal) = (Vec::new(), Vec::new());
    let mut best = (1, 0.0);
    for threads in all {
        let mut result = Ok(Default::default());
        let [looped, time] = medians(
            9,
            [
                &mut || _ = black_box(linrec_into(x.view(), c.view(), 0.0, plain.view_mut())),
                &mut || {
                    let part = Part::new(x.view(), c.view(), y.view_mut());
                    result = part
                        .map_err(lesson::Error::from)
                        .and_then(|part| Ok(many_threads(part, 0.0, threads)?));
                },
            ],
        );
        let (_, steps) = result?;
        let gain = looped.as_secs_f64() / time.as_secs_f64();
        let counted = len as f64 / steps.sequential() as f64;
        table.row([
            threads.to_string(),
            clock::text(time),
            format!("{gain:.2}"),
            format!("{counted:.2}"),
        ]);
        times.push((threads as f64, gain));
        ideal.push((threads as f64, counted));
        if gain > best.1 {
            best = (threads, gain);
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    lesson.table("many.csv", Kind::Timed, &table)?;
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    lesson.say(&format!(
        "The best was T = {} with {:.2} times the speed of the loop, on {cores} cores. The count \
         promises more and more; but threads beyond the cores only take turns, and each has to be \
         started twice.",
        best.0, best.1
    ));
    lesson.value("best_threads", best.0, Kind::Timed);
    lesson.value("best_many_gain", format!("{:.2}", best.1), Kind::Timed);
    let chart = Chart::new(&format!("Times the speed of the loop, L = {len}"))
        .axes("threads T", "times the loop's speed")
        .log_x(2.0)
        .log_y(2.0)
        .measured("measured", times)
        .dashed("by counted steps", ideal);
    lesson.figure("many.svg", "speed against threads", Kind::Timed, &plot::svg(&[&chart])?)
}
