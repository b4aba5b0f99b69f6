//! Measured time, against the length and against the number of threads.

use std::hint::black_box;

use ch01_sequential_loop::linrec_into;
use linrec::lesson::plot::{self, Chart};
use linrec::lesson::{self, Kind, Lesson, Result, Table, clock};
use ndarray::Array1;

use super::around_one;
use super::pieces::Pieces;
use crate::{Part, many_threads, two_threads};

/// The loop, two threads, and four threads, from short to long sequences.
pub fn against_length(lesson: &mut Lesson, pieces: &Pieces) -> Result {
    lesson.step("length", "Measured: how long must a sequence be?")?;
    let exponents = lesson.size(10..=22, 10..=26);
    let bar = lesson::progress(exponents.clone().count(), "measuring");
    let mut table = Table::new(["L", "loop", "two threads", "four threads", "loop / two threads"]);
    let mut lines: [Vec<(f64, f64)>; 3] = Default::default();
    let mut gains = Vec::new();
    for exponent in exponents {
        let len = 1_usize << exponent;
        let times = measure(len)?;
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
    // Two threads save half of the plain loop, less half of a combining loop.
    let saved = pieces.plain - (pieces.scan + pieces.combine) / 2.0;
    let predicted = (saved > 0.0).then(|| format!("{:.0}", pieces.thread / saved));
    let predicted = predicted.unwrap_or("no number of".to_owned());
    let thread = clock::text(std::time::Duration::from_secs_f64(pieces.thread));
    lesson.say(&format!(
        "By the pieces above: two threads that have a core each save half of the loop, less the \
         combining, and pay {thread} for a thread. That should even out at {predicted} elements."
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
        .measured("two threads", two)
        .measured("four threads", four);
    lesson.figure("length.svg", "time against length", Kind::Timed, &plot::svg(&[&chart])?)
}

fn measure(len: usize) -> Result<[std::time::Duration; 3]> {
    let (x, c) = around_one(len);
    let mut y: [Array1<f32>; 3] = std::array::from_fn(|_| Array1::zeros(len));
    let [y1, y2, y3] = &mut y;
    let (mut failure, mut other) = (None, None);
    let times = clock::medians(
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

/// One length, on more and more threads.
pub fn against_threads(lesson: &mut Lesson) -> Result {
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
        let [looped, time] = clock::medians(
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
