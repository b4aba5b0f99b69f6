//! The run of the chapter: it computes, checks and records every number that the page quotes.
//!
//! A [`Gallery`] solves the problem of every model twice, by the library and by a kernel on the
//! device, and keeps both errors for a table at the end. The models themselves are in `models`, the
//! game with the cups in `cups`; this file has the sunspots, Newton's iteration, and the counts of
//! bytes. All random data has a fixed seed.

mod cups;
mod models;

use bench::clock::medians;
use lesson::clock;
use lesson::plot::{self, Chart};
use lesson::{Kind, Lesson, Table};
use linrec::contract::Domain;
use linrec::contract::golden::{self, array_distance};
use linrec::cpu::Cpu;
use linrec::device::{Device, KernelEngine};
use linrec::kernels::{KernelChoice, PipeConfig};
use linrec::reference::{self, Rounding};
use linrec::{Direction, Element, Engine};
use ndarray::{Array1, Array2, ArrayView1, s};
use num_complex::Complex;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::bytes::{H200_BALANCE, table};
use crate::models::iir::bank as bank_of;
use crate::models::iir::bank_direct;
use crate::models::s4d::S4d;
use crate::newton::{Gated, Slopes, errors};
use crate::sunspots::smooth as walk;
use crate::sunspots::{self, FIRST_YEAR, fit, forecast, numbers, smooth_both_ways, surprises};
use crate::{Problem, catalogue};

pub(crate) fn run(lesson: &mut Lesson) -> lesson::Result {
    let device = Device::auto()?;
    lesson.engine(&format!("cpu, pipe:8x64:0@{}", device.label()));
    let mut gallery = Gallery::open(&device)?;
    what_is_what(lesson)?;
    models::interest(lesson, &mut gallery)?;
    models::returns(lesson, &mut gallery)?;
    models::filter(lesson, &mut gallery)?;
    smooth(lesson)?;
    bank(lesson, &mut gallery)?;
    predict(lesson, &mut gallery)?;
    models::s4d(lesson, &mut gallery)?;
    models::s5(lesson, &mut gallery)?;
    models::lru(lesson, &mut gallery)?;
    models::rg_lru(lesson, &mut gallery)?;
    models::slstm(lesson, &mut gallery)?;
    models::min_rnn(lesson, &mut gallery)?;
    models::gate_loop(lesson, &mut gallery)?;
    models::rwkv(lesson, &mut gallery)?;
    gallery.close(lesson)?;
    cups::counted(lesson)?;
    cups::trained(lesson)?;
    newton(lesson)?;
    bytes(lesson)?;
    fused(lesson)
}

/// The largest `max |a − b| / max |b|` of a model from its formula: the limit for golden data.
const LIMIT: f64 = 1e-11;

fn what_is_what(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("table", "What x and c are")?;
    lesson.say("Every line is a problem for one and the same function, linrec::forward.");
    lesson.table("models.csv", Kind::Computed, &catalogue::table())
}

/// Solves every model's problem by the library and by a kernel, and records both.
struct Gallery {
    real: KernelEngine<f64>,
    complex: KernelEngine<Complex<f64>>,
    books: Table,
    worst: [f64; 2],
}

impl Gallery {
    fn open(device: &Device) -> lesson::Result<Gallery> {
        let pipe = KernelChoice::Pipe(PipeConfig::DEFAULT);
        let header = [
            "model",
            "numbers",
            "rows",
            "steps",
            "from the formula",
            "library / bound",
            "kernel / bound",
        ];
        Ok(Gallery {
            real: KernelEngine::new(device, pipe)?,
            complex: KernelEngine::new(device, pipe)?,
            books: Table::new(header),
            worst: [0.0; 2],
        })
    }

    /// Solves a real problem.
    fn real(&self, problem: &Problem<f64>) -> lesson::Result<Solved<f64>> {
        solve(problem, &self.real)
    }

    /// Solves a complex problem.
    fn complex(&self, problem: &Problem<Complex<f64>>) -> lesson::Result<Solved<Complex<f64>>> {
        solve(problem, &self.complex)
    }

    /// Checks the distance of the outputs from the formula, and records the model.
    fn enter<T: Element>(
        &mut self,
        lesson: &mut Lesson,
        (model, formula): (&str, &str),
        solved: &Solved<T>,
        distance: f64,
    ) {
        lesson.check(&format!("{model} and {formula}, relative"), distance, LIMIT);
        let [library, kernel] = solved.ratios;
        self.worst = [self.worst[0].max(library), self.worst[1].max(kernel)];
        let (rows, steps) = solved.states.dim();
        self.books.row([
            model.to_owned(),
            if T::NAME.starts_with("Complex") { "complex" } else { "real" }.to_owned(),
            rows.to_string(),
            steps.to_string(),
            format!("{distance:.0e}"),
            format!("{library:.2}"),
            format!("{kernel:.2}"),
        ]);
    }

    fn close(self, lesson: &mut Lesson) -> lesson::Result {
        lesson.step("kernels", "Through library and kernel")?;
        lesson.say(&format!(
            "Every problem above was solved twice, in double precision: by the library, and by {}, the \
             kernel of chapter 7. The last two columns are the largest error against the loop, in units of \
             chapter 1's bound.",
            Engine::<f64>::name(&self.real),
        ));
        // Errors depend on the width of the processor's vectors.
        lesson.table("kernels.csv", Kind::Timed, &self.books)?;
        let [library, kernel] = self.worst;
        lesson.check("library, largest error / bound", library, 1.0);
        lesson.check("kernel, largest error / bound", kernel, 1.0);

        let cases = golden::complex()?;
        lesson.say(&format!(
            "And {} complex recurrences with their gradients, as PyTorch computed them:",
            cases.len(),
        ));
        let engines: [(&str, &dyn Engine<Complex<f64>>); 2] =
            [("library", &Cpu::new()), ("kernel", &self.complex)];
        for (name, engine) in engines {
            let distances = cases.iter().map(|case| golden::distance(engine, case));
            let distances: Vec<f64> = distances.collect::<Result<_, _>>()?;
            let worst = distances.into_iter().fold(0.0, f64::max);
            lesson.check(&format!("{name} and complex golden data, relative"), worst, LIMIT);
        }
        Ok(())
    }
}

/// The solution of a problem.
struct Solved<T> {
    /// The library's states.
    states: Array2<T>,
    /// The largest error relative to its bound, of the library and of the kernel.
    ratios: [f64; 2],
}

fn solve<T: Element>(problem: &Problem<T>, kernel: &dyn Engine<T>) -> lesson::Result<Solved<T>> {
    let states = problem.solve()?;
    let library = ratio(problem, &states)?;
    let kernel = ratio(problem, &problem.solve_with(kernel)?)?;
    Ok(Solved { states, ratios: [library, kernel] })
}

/// Returns the largest error against the reference, relative to the bound.
fn ratio<T: Element>(problem: &Problem<T>, states: &Array2<T>) -> lesson::Result<f64> {
    let (inputs, coeffs) = (problem.inputs.view(), problem.coeffs.view());
    let rounding = Rounding { levels: Domain::tree_levels(inputs.ncols()), exp_ulps: 1.0 };
    let exact = reference::forward(inputs, coeffs, &problem.options)?.outputs;
    let bound = reference::forward_bound(inputs, coeffs, &problem.options, rounding)?.outputs;
    let mut worst: f64 = 0.0;
    for ((got, exact), bound) in states.iter().zip(&exact).zip(&bound) {
        let error = (got.widen() - *exact).modulus();
        if error > 0.0 || error.is_nan() {
            let ratio = error / bound;
            worst = if ratio.is_nan() { f64::INFINITY } else { worst.max(ratio) };
        }
    }
    Ok(worst)
}

/// Returns the points of a real series, by year.
fn points(series: ArrayView1<f64>, first_year: usize) -> Vec<(f64, f64)> {
    series.iter().enumerate().map(|(l, &y)| ((first_year + l) as f64, y)).collect()
}

/// Smooths the series in one direction, and in both.
fn smooth(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("sunspots", "Three centuries of sunspots")?;
    let series = numbers();
    lesson.say(&format!(
        "The mean sunspot number of each year from {FIRST_YEAR} to {}: {} numbers, of which the largest is \
         {}. A moving average with c = 0.8 takes the cycles off, and comes late. Walking back over its result \
         in reverse makes up for that.",
        FIRST_YEAR + series.len() - 1,
        series.len(),
        series.fold(0.0, |a: f64, &b| a.max(b)),
    ));
    let keep = 0.8;
    let one_way = walk(series.view(), keep, Direction::Forward)?;
    let both_ways = smooth_both_ways(series.view(), keep)?;
    let from = 1880 - FIRST_YEAR;
    let part = |series: &Array1<f64>| points(series.slice(s![from..]), FIRST_YEAR + from);
    let chart = Chart::new("Sunspots since 1880")
        .axes("year", "sunspot number")
        .line("the series", part(&series))
        .line("forward", part(&one_way))
        .line("there and back", part(&both_ways));
    lesson.figure("sunspots.svg", "Sunspots, smoothed", Kind::Computed, &plot::svg(&[&chart])?)?;

    // In the middle of a long series, a 1 becomes c^|l − k| (1 − c) / (1 + c).
    let middle = 200;
    let mut impulse = Array1::zeros(2 * middle + 1);
    impulse[middle] = 1.0;
    let answer = smooth_both_ways(impulse.view(), keep)?;
    let formula = Array1::from_shape_fn(impulse.len(), |l: usize| {
        keep.powi(l.abs_diff(middle) as i32) * (1.0 - keep) / (1.0 + keep)
    });
    let (answer, formula) = (answer.slice(s![100..301]), formula.slice(s![100..301]));
    lesson.check(
        "there and back, and its formula, relative",
        array_distance(&answer, &formula),
        LIMIT,
    );
    Ok(())
}

fn bank(lesson: &mut Lesson, gallery: &mut Gallery) -> lesson::Result {
    lesson.step("bank", "A bank of resonators")?;
    let series = numbers();
    let mean = series.mean().unwrap_or(0.0);
    let centred = &series - mean;
    let (memory, count) = (60.0, 181);
    let periods = Array1::from_shape_fn(count, |row| 4.0 + 0.1 * row as f64);
    lesson.say(&format!(
        "{count} rows over the same series, each with a coefficient that turns once in its period, from {} to \
         {} years, and remembers {memory} years.",
        periods[0],
        periods[count - 1],
    ));
    let solved = gallery.complex(&bank_of(centred.view(), periods.view(), memory))?;
    // In the first years the states still grow from zero.
    let settled = solved.states.slice(s![.., memory as usize..]);
    let strength: Array1<f64> = settled
        .rows()
        .into_iter()
        .map(|row| (row.iter().map(|y| y.norm_sqr()).sum::<f64>() / row.len() as f64).sqrt())
        .collect();
    let peak = (0..count).max_by(|&a, &b| strength[a].total_cmp(&strength[b])).unwrap_or(0);
    let chart = Chart::new("How far each row swings")
        .axes("period in years", "root mean square of |y|")
        .line("", periods.iter().copied().zip(strength.iter().copied()));
    lesson.figure("bank.svg", "Periods of the sunspots", Kind::Computed, &plot::svg(&[&chart])?)?;
    lesson.say(&format!(
        "The row of {:.1} years swings farthest, by {:.0}.",
        periods[peak], strength[peak],
    ));
    lesson.value("peak_period", format!("{:.1}", periods[peak]), Kind::Computed);
    let last = series.len() - 1;
    let got = solved.states.column(last).to_owned();
    let formula = periods.mapv(|period| bank_direct(centred.view(), period, memory, last));
    let error = array_distance(&got, &formula);
    gallery.enter(lesson, ("bank of resonators", "sum over the past"), &solved, error);
    Ok(())
}

fn predict(lesson: &mut Lesson, gallery: &mut Gallery) -> lesson::Result {
    lesson.step("yule", "A filter that was found in data")?;
    let series = numbers();
    let seen = 1979 - FIRST_YEAR;
    let mean = series.slice(s![..seen]).mean().unwrap_or(0.0);
    let centred = &series - mean;
    let past = centred.slice(s![..seen]);
    let Some(filter) = fit(past) else {
        return Err("the series does not determine a filter".into());
    };
    let (radius, angle) = filter.poles()[0].to_polar();
    let period = std::f64::consts::TAU / angle.abs();
    lesson.say(&format!(
        "Fitted to the years up to 1978: y_l = {:.3} y_(l−1) − {:.3} y_(l−2), around the mean of {mean:.1}. Its \
         poles turn once in {period:.2} years, and a swing keeps {radius:.3} of its size from year to year.",
        filter.a1, -filter.a2,
    ));
    lesson.value("yule_a1", format!("{:.3}", filter.a1), Kind::Computed);
    lesson.value("yule_a2", format!("{:.3}", -filter.a2), Kind::Computed);
    lesson.value("yule_period", format!("{period:.2}"), Kind::Computed);
    lesson.value("yule_radius", format!("{radius:.3}"), Kind::Computed);

    let solved = gallery.complex(&filter.problem(surprises(past, filter).view()))?;
    let again = filter.read(solved.states.view())?;
    let error = array_distance(&again, &past.to_owned());
    gallery.enter(
        lesson,
        ("sunspots' filter", "series that its surprises give back"),
        &solved,
        error,
    );

    let ahead = series.len() - seen;
    let expected = forecast(past, filter, ahead)?;
    let truth = centred.slice(s![seen..]);
    let rms = |errors: Array1<f64>| errors.mapv(|e| e * e).mean().unwrap_or(f64::NAN).sqrt();
    let (first, all) = (3, ahead);
    let of_model = |n: usize| rms(&expected.slice(s![..n]) - &truth.slice(s![..n]));
    let of_mean = |n: usize| rms(truth.slice(s![..n]).to_owned());
    lesson.say(&format!(
        "What it expects of the years from 1979 on is off by {:.0} in the first {first} years and by {:.0} in \
         all {all}; expecting the mean all the time is off by {:.0} and {:.0}.",
        of_model(first),
        of_model(all),
        of_mean(first),
        of_mean(all),
    ));
    for (key, value) in [
        ("model_first", of_model(first)),
        ("model_all", of_model(all)),
        ("mean_first", of_mean(first)),
        ("mean_all", of_mean(all)),
    ] {
        lesson.value(key, format!("{value:.0}"), Kind::Computed);
    }
    let one_ahead = rms(surprises(centred.view(), filter).slice(s![seen..]).to_owned());
    lesson.say(&format!("One year ahead, it is off by {one_ahead:.0} over the same years."));
    lesson.value("one_ahead", format!("{one_ahead:.0}"), Kind::Computed);
    let from = 1940 - FIRST_YEAR;
    let chart = Chart::new("What a filter of the second order expects")
        .axes("year", "sunspot number")
        .line("the series", points(series.slice(s![from..]), sunspots::FIRST_YEAR + from))
        .line("forecast in 1978", points((expected + mean).view(), FIRST_YEAR + seen));
    lesson.figure("forecast.svg", "A forecast", Kind::Computed, &plot::svg(&[&chart])?)
}

// A recurrence that is not linear, by linear ones.

/// The largest error at which an iteration counts as converged.
const ARRIVED: f64 = 1e-10;

/// The largest error in the figure.
const CUT: f64 = 1e6;

/// The number of states of the network.
const SIZE: usize = 16;

fn newton(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("newton", "A network that is not linear")?;
    let (seq_len, most) = lesson.size((512, 512), (4096, 200));
    lesson.say(&format!(
        "A gated network with {SIZE} states, {seq_len} positions, and weights whose sizes add up to a gain in \
         each row. Each guess of all its states, beginning with zero, gives a linear recurrence; its solution is the \
         next guess.",
    ));
    let gains = [0.5, 2.0, 4.0, 8.0, 32.0];
    let header = ["gain", "exponent", "with the diagonal", "error left", "without", "error left "];
    let mut table = Table::new(header);
    let mut chart = Chart::new("Largest error of a guess, with the diagonal")
        .axes("iteration", "largest error")
        .log_y(10.0)
        .y_range(1e-17, CUT);
    let mut wild = Chart::new("Positions that are right from the start on, gain 32")
        .axes("iteration", "positions");
    let mut peak = 0.0;
    for gain in gains {
        let network = Gated::draw(&mut StdRng::seed_from_u64(140), (SIZE, seq_len), gain);
        let states = network.sequential()?;
        let mut cells = vec![format!("{gain}")];
        for slopes in [Slopes::Diagonal, Slopes::Zero] {
            let guesses = network.iterate(slopes, most)?;
            let at: Vec<_> =
                guesses.iter().map(|guess| errors(guess.view(), states.view())).collect();
            let largest: Vec<f64> =
                at.iter().map(|e| e.iter().fold(0.0, |a: f64, &b| a.max(b))).collect();
            let first = largest.iter().position(|&error| error < ARRIVED);
            cells.push(first.map_or(format!("> {most}"), |i| (i + 1).to_string()));
            cells.push(match largest.last() {
                Some(&error) if error > 0.0 => format!("{error:.0e}"),
                _ => String::from("0"),
            });
            if slopes == Slopes::Diagonal {
                let points = largest.iter().enumerate().take(100);
                let points = points.map(|(i, &e)| ((i + 1) as f64, e.min(CUT)));
                chart = chart.line(&format!("gain {gain}"), points.collect::<Vec<_>>());
            }
            if gain == gains[4] && slopes == Slopes::Diagonal {
                peak = largest.iter().fold(0.0, |a: f64, &b| a.max(b));
            }
            if gain == gains[4] {
                let right = at.iter().map(|e| e.iter().take_while(|e| **e < 1e-6).count() as f64);
                let label =
                    if slopes == Slopes::Diagonal { "with the diagonal" } else { "without" };
                let points: Vec<_> = right.enumerate().map(|(i, n)| ((i + 1) as f64, n)).collect();
                wild = wild.line(label, points);
            }
            if gain == gains[0] && slopes == Slopes::Diagonal {
                let [.., last, guess] = guesses.as_slice() else { continue };
                let bound =
                    network.error_bound(slopes, last.view(), guess.view(), states.view())?;
                let error = errors(guess.view(), states.view());
                let ratio = error.iter().zip(&bound).fold(0.0, |a: f64, (e, b)| a.max(e / b));
                lesson.check("tame network, error of the last guess / bound", ratio, 1.0);
                let limit = bound.iter().fold(0.0, |a: f64, &b| a.max(b));
                lesson.say(&format!("There the bound is {limit:.0e}."));
                lesson.value("newton_bound", format!("{limit:.0e}"), Kind::Timed);
            }
        }
        let exponent = network.lyapunov(states.view())?;
        cells.insert(1, format!("{exponent:.3}"));
        table.row(cells);
    }
    wild = wild.dashed("one a step", (1..=most).map(|i| (i as f64, i as f64)));
    lesson.say(&format!(
        "Iterations until the largest error is below {ARRIVED:.0e}, and the average growth of a small \
         difference from step to step, as a logarithm:",
    ));
    // The last digits depend on the width of the processor's vectors.
    lesson.table("newton.csv", Kind::Timed, &table)?;
    lesson.say(&format!("The wildest network's guesses are off by up to {peak:.0e} on their way."));
    lesson.value("newton_peak", format!("{peak:.0e}"), Kind::Timed);
    let svg = plot::grid(&[&chart, &wild], 1)?;
    lesson.figure("newton.svg", "Convergence", Kind::Timed, &svg)
}

// Operations and bytes.

fn bytes(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("bytes", "Operations for each byte")?;
    lesson.say(&format!(
        "For each channel and position, in f32. An H200 can do {H200_BALANCE:.0} operations while one byte \
         comes from its memory. 'alone' is the recurrence, in operations for each byte that it reads or writes; \
         'unfused' and 'fused' are the bytes of the whole model in three passes or in one, 'ops/byte' its \
         operations for each fused byte, and 'free' the states that a channel could have before arithmetic \
         takes as long as memory.",
    ));
    lesson.table("bytes.csv", Kind::Computed, &table())?;
    lesson.value("h200_balance", format!("{H200_BALANCE:.0}"), Kind::Computed);
    Ok(())
}

fn fused(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("fused", "One pass or three")?;
    let (seq_len, num_states) = lesson.size((1 << 15, 16), (1 << 18, 16));
    let mut rng = StdRng::seed_from_u64(141);
    let readout = Array1::from_shape_simple_fn(num_states, || {
        Complex::new(rng.random_range(-1.0..1.0), rng.random_range(-1.0..1.0))
    });
    let model = S4d::linear(readout, 0.01);
    let signal = Array1::from_shape_simple_fn(seq_len, || rng.random_range(-1.0..1.0));
    let problem = model.problem(signal.view())?;
    let states = problem.solve()?;
    let unfused = model.read(states.view());
    let once = model.fused(signal.view())?;
    lesson.say(&format!(
        "S4D with {num_states} states over {seq_len} positions: made, solved and read in three passes over \
         arrays, or in one walk that keeps the states at hand. Both in double precision.",
    ));
    let [make, recur, read, all] = medians(
        5,
        [
            &mut || drop(model.problem(signal.view())),
            &mut || drop(problem.solve()),
            &mut || drop(model.read(states.view())),
            &mut || drop(model.fused(signal.view())),
        ],
    );
    let mut table = Table::new(["pass", "time", "bytes that it reads and writes"]);
    let (state, signal) = (16 * num_states * seq_len, 8 * seq_len);
    let megabytes = |bytes: usize| format!("{:.1} MB", bytes as f64 / 1e6);
    table.row([
        "make, coefficients written out",
        &clock::text(make),
        &megabytes(signal + 2 * state),
    ]);
    table.row(["recur, on all cores", &clock::text(recur), &megabytes(3 * state)]);
    table.row(["read", &clock::text(read), &megabytes(state + signal)]);
    table.row(["all in one, on one core", &clock::text(all), &megabytes(2 * signal)]);
    lesson.table("fused.csv", Kind::Timed, &table)?;
    let ratio = (make + recur + read).as_secs_f64() / all.as_secs_f64();
    lesson.say(&format!("The three passes take {ratio:.1} times as long as the one."));
    lesson.value("fused_ratio", format!("{ratio:.1}"), Kind::Timed);
    lesson.check("one pass and three, relative", array_distance(&once, &unfused), LIMIT);
    Ok(())
}
