//! The story of chapter 3: builds the matrix, draws it, and measures each form.
//!
//! The story first unrolls a short sequence and draws matrices of six kinds of coefficients. It
//! then shows that a split lets only one number pass, checks the matrix engine by the test
//! contract, and compares convolution with the loop: within its bound, wrapped around, and under
//! the noise floor. Last come the times of loop, matrix and Fourier transform. `cargo xtask record
//! --check` compares the checks and values of a run with the committed record.

mod pictures;

use std::hint::black_box;
use std::time::Duration;

use bench::clock::medians;
use ch01_sequential_loop as ch01;
use lesson::plot::{self, Chart};
use lesson::{Kind, Lesson, Table, clock};
use linrec::reference::{self, Rounding};
use linrec::{Element, Options, contract};
use ndarray::{Array1, Axis, array, s};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use realfft::FftNum;

use crate::Matrix;
use crate::convolution::{Convolution, error_bound, kernel};
use crate::mixing::{mix, mixing_matrix, rank_one_block};

pub(crate) fn run(lesson: &mut Lesson) -> lesson::Result {
    lesson.engine("matrix");
    unrolled(lesson)?;
    pictures(lesson)?;
    across_a_split(lesson)?;
    every_case(lesson)?;
    shared_coefficient(lesson)?;
    wrapped_around(lesson)?;
    noise_floor(lesson)?;
    measure(lesson)
}

fn unrolled(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("unrolled", "Five steps as one matrix")?;
    let (inputs, coeffs) = (array![1.0, 1.0, 2.0, 0.0, 1.0], array![7.0, 2.0, 3.0, 5.0, 4.0]);
    lesson.say(
        "The coefficients are c = (7, 2, 3, 5, 4), the inputs x = (1, 1, 2, 0, 1). Here is C̃ᵀ with \
         the output that each of its rows makes:",
    );
    let matrix = mixing_matrix(coeffs.view())?;
    let outputs = mix(matrix.view(), inputs.view())?;
    let mut table = Table::new(["", "x_0", "x_1", "x_2", "x_3", "x_4", "y"]);
    for (l, column) in matrix.columns().into_iter().enumerate() {
        let entries = column.iter().chain([&outputs[l]]).map(f64::to_string);
        table.row([format!("y_{l}")].into_iter().chain(entries));
    }
    lesson.table("unrolled.csv", Kind::Computed, &table)?;
    lesson.say(
        "Ones on the diagonal; below them c_1 to c_4; below these their products. c_0 = 7 is \
         nowhere: it would multiply the initial state, which is zero.",
    );
    let looped = ch01::linrec(&inputs.to_vec(), &coeffs.to_vec(), 0.0);
    let difference = largest_difference(&outputs, &looped);
    lesson.check("matrix and loop agree on whole numbers", difference, 0.0);
    Ok(())
}

fn pictures(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("pictures", "What coefficients look like")?;
    lesson.say(
        "Six matrices C̃ᵀ of 32 by 32. Follow a column downwards: that is one input, fading. Follow a \
         row leftwards: that is one output, looking back.",
    );
    let svg = pictures::kinds(32)?;
    lesson.figure("kinds.svg", "Six kinds of coefficients", Kind::Computed, &svg)?;
    lesson.say(
        "A coefficient of zero cuts the matrix into triangles that know nothing of each other. Where \
         all coefficients are equal, every diagonal has one value.",
    );
    Ok(())
}

fn across_a_split(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("split", "One number crosses a split")?;
    let mut rng = StdRng::seed_from_u64(31);
    let coeffs = Array1::from_shape_simple_fn(24, || rng.random_range(0.8..1.0));
    let svg = pictures::split(&coeffs, 12)?;
    lesson.figure("split.svg", "C̃ᵀ split between two threads", Kind::Computed, &svg)?;

    let seq_len = lesson.size(512, 2048);
    let coeffs = Array1::from_shape_simple_fn(seq_len, || rng.random_range(-1.2..1.2_f64));
    let matrix = mixing_matrix(coeffs.view())?;
    let split = seq_len / 3;
    let product = rank_one_block(matrix.view(), split)?;
    let block = matrix.slice(s![..split, split..]).reversed_axes();
    lesson.say(&format!(
        "A larger one: {seq_len} signed coefficients, split at {split}. The block below the split has \
         {} by {split} entries. If it is the outer product of one column and one row, nothing is left \
         of their difference but rounding:",
        seq_len - split,
    ));
    // Entry and product have l - k - 1 roundings each, so they differ by at most twice that many.
    let mut worst = 0.0_f64;
    for ((row, k), &entry) in block.indexed_iter() {
        let limit = 2.0 * (split + row - k) as f64 * f64::UNIT_ROUNDOFF * entry.abs();
        let difference = (entry - product[[row, k]]).abs();
        if difference > f64::MIN_POSITIVE {
            worst = worst.max(difference / limit);
        }
    }
    lesson.value("rank_len", seq_len, Kind::Computed);
    lesson.check("the block is an outer product, error / rounding", worst, 1.0);
    lesson.say(
        "So whatever the first part holds, the second part hears of it through one number: the state at \
         the split, which is chapter 2's carry.",
    );
    Ok(())
}

fn every_case(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("cases", "The same table of cases as every engine")?;
    let domain = contract::Domain { max_len: 64, ..Matrix::domain() };
    let report = contract::run::<f32>(&Matrix, &domain);
    lesson.say(&format!(
        "Lengths up to 64, both directions, initial states, logarithms, strided arrays: {} cases. \
         Every single output and gradient is compared with the loop in double precision.",
        report.cases
    ));
    let worst = if report.passed() { report.worst } else { f64::INFINITY };
    lesson.check("f32 matrix, largest error / derived bound", worst, 1.0);
    Ok(())
}

fn shared_coefficient(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("toeplitz", "One coefficient for all positions")?;
    let matrix = mixing_matrix(Array1::from_elem(256, 0.99_f32).view())?;
    let kernel = kernel(0.99_f32, 256);
    let entry = |k: usize, l: usize| if l >= k { kernel[l - k] } else { 0.0 };
    let difference =
        matrix.indexed_iter().fold(0.0, |m: f32, ((k, l), &c)| m.max((c - entry(k, l)).abs()));
    lesson.say(
        "With c = 0.99 everywhere the entry in row k and column l depends on l - k alone. The first \
         row, the kernel K = (1, c, c², …), is all there is to know:",
    );
    lesson.check("every entry is K at l - k", difference.into(), 0.0);

    let seq_len = lesson.size(4093, 65_536);
    lesson.say(&format!(
        "So y = K * x, a convolution, and the Fourier transform turns it into an element-wise \
         product. For L = {seq_len} the transform has length {}.",
        Convolution::<f32>::padded(seq_len).transform_len(),
    ));
    let single = convolution_error::<f32>(seq_len)?;
    let double = convolution_error::<f64>(seq_len)?;
    lesson.check("f32 convolution, largest error / derived bound", single, 1.0);
    lesson.check("f64 convolution, largest error / derived bound", double, 1.0);
    lesson.value("toeplitz_len", seq_len, Kind::Computed);
    Ok(())
}

/// Returns the largest difference between convolution and loop, in units of the rounding bound.
fn convolution_error<R: FftNum + Element<Wide = f64>>(seq_len: usize) -> lesson::Result<f64> {
    let mut rng = StdRng::seed_from_u64(32);
    let inputs: Array1<R> =
        Array1::from_shape_simple_fn(seq_len, || R::from_real(rng.random_range(-1.0..1.0)));
    let coeff = R::from_real(0.99);
    let outputs = Convolution::padded(seq_len).apply(inputs.view(), coeff)?;
    let (x, c) = (inputs.mapv(R::widen), Array1::from_elem(seq_len, coeff.widen()));
    let looped = ch01::linrec(&x.to_vec(), &c.to_vec(), 0.0);
    // The loop in f64 rounds, too.
    let loop_rounding = Rounding { levels: 0, exp_ulps: 0.0 };
    let (x, c) = (x.insert_axis(Axis(0)), c.insert_axis(Axis(0)));
    let loop_bound =
        reference::forward_bound(x.view(), c.view(), &Options::default(), loop_rounding)?;
    let bound = error_bound(inputs.view(), coeff);
    let errors = outputs.iter().zip(&looped).zip(&loop_bound.outputs);
    Ok(errors.fold(0.0, |m, ((y, exact), loop_bound)| {
        m.max((y.widen() - exact).abs() / (bound + loop_bound))
    }))
}

fn wrapped_around(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("wrap", "Toeplitz is not circulant")?;
    let (seq_len, coeff) = (64, 0.9);
    let mut inputs = Array1::zeros(seq_len);
    inputs[52] = 1.0;
    let padded = Convolution::padded(seq_len).apply(inputs.view(), coeff)?;
    let circular = Convolution::circular(seq_len).apply(inputs.view(), coeff)?;
    lesson.say(
        "A single input of 1 at position 52 of 64. With zeros behind it, the transform gives the \
         recurrence. Without, it computes with a circulant matrix: the tail that runs off the end \
         comes in again at the start, as if the past could hear of the future.",
    );
    let chart = Chart::new("An impulse at position 52, c = 0.9")
        .axes("position l", "output y")
        .line("padded with zeros", points(&padded))
        .dashed("not padded: circulant", points(&circular));
    lesson.figure(
        "wrap.svg",
        "A circulant matrix wraps around",
        Kind::Computed,
        &plot::svg(&[&chart])?,
    )?;

    let leak = coeff.powi(64 - 52);
    let tolerance = error_bound(inputs.view(), coeff);
    lesson.say(&format!(
        "y_0 must be 0. The padded transform says {:.4}, the other one {:.4}: that is c^12 = {leak:.4}, \
         the impulse twelve steps later.",
        padded[0].abs(), circular[0],
    ));
    lesson.value("wrap_leak", format!("{leak:.4}"), Kind::Computed);
    lesson.check("padded, |y_0|", padded[0].abs(), tolerance);
    lesson.check("not padded, |y_0 - c^12|", (circular[0] - leak).abs(), tolerance);
    Ok(())
}

fn noise_floor(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("floor", "What the transform cannot see")?;
    let (seq_len, coeff) = (200, 0.5);
    let mut inputs = Array1::zeros(seq_len);
    inputs[0] = 1.0;
    let convolved = Convolution::padded(seq_len).apply(inputs.view(), coeff)?;
    let looped = ch01::linrec(&inputs.to_vec(), &vec![coeff; seq_len], 0.0);
    lesson.say(
        "Now an impulse at 0 and c = 0.5, so that y_l = 2^-l. Every step of the loop is exact. The \
         transform adds numbers of size one to make all outputs, the tiny ones, too, and its rounding \
         errors are of that size.",
    );
    let chart = Chart::new("An impulse, halved at every step")
        .axes("position l", "|y|")
        .log_y(10.0)
        .line("loop (exact)", points(&looped))
        .color(plot::kernels::color("loop"))
        .dots("FFT", points(&convolved.abs()));
    lesson.figure(
        "floor.svg",
        "The noise floor of the FFT",
        Kind::Timed,
        &plot::svg(&[&chart])?,
    )?;
    let exact = |l: usize| 0.5_f64.powi(l as i32);
    let loop_error =
        looped.iter().enumerate().fold(0.0, |m: f64, (l, y)| m.max((y - exact(l)).abs()));
    let error = largest_difference(&convolved, &looped);
    lesson.check("loop, largest error", loop_error, 0.0);
    lesson.check("FFT, largest error", error, error_bound(inputs.view(), coeff));
    lesson.say(
        "Both are right by their own measure: the loop's error is small beside every output, the \
         transform's beside the largest one.",
    );
    Ok(())
}

fn points<'a>(y: impl IntoIterator<Item = &'a f64>) -> Vec<(f64, f64)> {
    y.into_iter().enumerate().map(|(l, &y)| (l as f64, y)).collect()
}

fn largest_difference(a: &Array1<f64>, b: &[f64]) -> f64 {
    let differences = a.iter().zip(b).map(|(a, b)| (a - b).abs());
    differences.fold(0.0, f64::max)
}

/// The median times of one length; the matrix's only if it was built.
struct Times {
    seq_len: usize,
    looped: f64,
    matrix: Option<(f64, f64)>,
    convolved: f64,
}

/// Measures, shows the table and the figure, and reports where the lines cross.
fn measure(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("cost", "What each form costs")?;
    let longest_matrix = lesson.size(2048, 8192);
    let longest = lesson.size(1 << 16, 1 << 20);
    lesson.say(&format!(
        "One sequence of f32 with one shared coefficient, on one core, medians of several runs in \
         turn. The matrix is built up to L = {longest_matrix}; the transforms are planned before the clock starts.",
    ));
    let lengths: Vec<usize> =
        std::iter::successors(Some(16), |l| Some(l * 2)).take_while(|&l| l <= longest).collect();
    let bar = lesson::progress(lengths.len(), "measuring");
    let mut all = Vec::new();
    for &seq_len in &lengths {
        all.push(times(seq_len, seq_len <= longest_matrix)?);
        bar.inc(1);
    }
    bar.finish_and_clear();

    let mut table = Table::new(["L", "loop", "build matrix", "multiply by it", "FFT"]);
    for t in all.iter().filter(|t| t.seq_len.ilog2() % 2 == 0 || t.seq_len == longest_matrix) {
        let (build, multiply) =
            t.matrix.map_or(("–".into(), "–".into()), |(b, m)| (text(b), text(m)));
        table.row([t.seq_len.to_string(), text(t.looped), build, multiply, text(t.convolved)]);
    }
    lesson.table("cost.csv", Kind::Timed, &table)?;
    figure(lesson, &all)?;
    conclusions(lesson, &all);
    Ok(())
}

fn times(seq_len: usize, with_matrix: bool) -> lesson::Result<Times> {
    let coeff = 0.99_f32;
    let inputs = Array1::from_shape_fn(seq_len, |l| ((l * 7919) % 1000) as f32 / 1000.0 - 0.5);
    let coeffs = Array1::from_elem(seq_len, coeff);
    let (x, c) = (inputs.to_vec(), coeffs.to_vec());
    let convolution = Convolution::padded(seq_len);
    // Everything is computed once before, so that a failure (out of memory, for example) does not
    // pass for speed.
    let matrix = if with_matrix { mixing_matrix(coeffs.view())? } else { Default::default() };
    convolution.apply(inputs.view(), coeff)?;

    // Short sequences are repeated so that a measurement takes at least microseconds.
    let linear = (1 << 16) / seq_len.min(1 << 16);
    let square = ((1 << 20) / (seq_len * seq_len)).max(1);
    let mut looped = || {
        for _ in 0..linear.max(1) {
            black_box(ch01::linrec(black_box(&x), &c, 0.0));
        }
    };
    let mut convolved = || {
        for _ in 0..linear.max(1) {
            let _ = black_box(convolution.apply(black_box(inputs.view()), coeff));
        }
    };
    let mut built = || {
        for _ in 0..if with_matrix { square } else { 0 } {
            let _ = black_box(mixing_matrix(black_box(coeffs.view())));
        }
    };
    let mut mixed = || {
        for _ in 0..if with_matrix { square } else { 0 } {
            let _ = black_box(mix(matrix.view(), black_box(inputs.view())));
        }
    };
    let [looped, convolved, built, mixed] =
        medians(7, [&mut looped, &mut convolved, &mut built, &mut mixed]);
    let per = |time: Duration, times: usize| time.as_secs_f64() / times.max(1) as f64;
    Ok(Times {
        seq_len,
        looped: per(looped, linear),
        matrix: with_matrix.then(|| (per(built, square), per(mixed, square))),
        convolved: per(convolved, linear),
    })
}

fn figure(lesson: &mut Lesson, all: &[Times]) -> lesson::Result {
    let points = |f: &dyn Fn(&Times) -> Option<f64>| -> Vec<(f64, f64)> {
        all.iter().filter_map(|t| Some((t.seq_len as f64, 1e6 * f(t)?))).collect()
    };
    let chart = Chart::new("Time for one sequence, one core, f32")
        .axes("length L", "µs")
        .log_x(2.0)
        .log_y(10.0)
        .measured("loop", points(&|t| Some(t.looped)))
        .color(plot::kernels::color("loop"))
        .measured("matrix, built and multiplied", points(&|t| t.matrix.map(|(b, m)| b + m)))
        .measured("FFT", points(&|t| Some(t.convolved)))
        .measured("matrix, multiplied only", points(&|t| t.matrix.map(|(_, m)| m)));
    lesson.figure("cost.svg", "Cost of each form", Kind::Timed, &plot::svg(&[&chart])?)
}

/// Describes what the measurements show, whatever it is.
fn conclusions(lesson: &mut Lesson, all: &[Times]) {
    let growth = |f: &dyn Fn(&Times) -> Option<f64>| {
        let mut last = all.iter().rev().filter_map(f);
        let (long, half) = (last.next(), last.next());
        long.zip(half).map_or(f64::NAN, |(long, half)| long / half)
    };
    let (by_loop, by_matrix, by_fft) = (
        growth(&|t| Some(t.looped)),
        growth(&|t| t.matrix.map(|(b, m)| b + m)),
        growth(&|t| Some(t.convolved)),
    );
    lesson.say(&format!(
        "In the last doubling of the length the loop's time grew {by_loop:.1} times, the FFT's \
         {by_fft:.1} times, the matrix's {by_matrix:.1} times. The operations grow 2, a little more than \
         2, and 4 times.",
    ));
    let first = |wins: &dyn Fn(&Times) -> bool, what: &str| match all.iter().find(|t| wins(t)) {
        Some(t) => format!("{what} from L = {} on", t.seq_len),
        None => format!("{what} at no length measured"),
    };
    let fft_beats_matrix = first(
        &|t| t.matrix.is_none_or(|(build, multiply)| t.convolved < build + multiply),
        "faster than building and multiplying the matrix",
    );
    let fft_beats_loop = first(&|t| t.convolved < t.looped, "faster than the loop");
    lesson.say(&format!("The FFT is {fft_beats_matrix}, and {fft_beats_loop}."));
    if let Some(t) = all.last() {
        let ratio = t.convolved / t.looped;
        lesson.say(&format!("At L = {} it takes {ratio:.1} times the loop's time.", t.seq_len));
        lesson.value("fft_over_loop", format!("{ratio:.1}"), Kind::Timed);
        lesson.value("longest", t.seq_len, Kind::Computed);
    }
    lesson.value("growth_loop", format!("{by_loop:.1}"), Kind::Timed);
    lesson.value("growth_matrix", format!("{by_matrix:.1}"), Kind::Timed);
    lesson.value("growth_fft", format!("{by_fft:.1}"), Kind::Timed);
    lesson.say(
        "One core, one sequence: nothing here is done in parallel. What the matrix and the transform \
         have to offer is short chains of dependent steps, and hardware made for them.",
    );
}

fn text(seconds: f64) -> String {
    clock::text(Duration::from_secs_f64(seconds))
}
