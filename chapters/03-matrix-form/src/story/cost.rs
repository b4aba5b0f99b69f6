//! What the loop, the matrix and the Fourier transform cost.

use std::hint::black_box;
use std::time::Duration;

use ch01_sequential_loop as ch01;
use linrec::lesson::{self, Kind, Lesson, Table, clock, plot, plot::Chart};
use ndarray::Array1;

use crate::convolution::Convolution;
use crate::mixing::{mix, mixing_matrix};

/// Medians of one length; the matrix's only where it was built.
struct Times {
    seq_len: usize,
    looped: f64,
    matrix: Option<(f64, f64)>,
    convolved: f64,
}

/// Measures, shows the table and the figure, and says where the lines cross.
pub fn measure(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("cost", "What each form costs")?;
    let longest_matrix = lesson.size(2048, 8192);
    let longest = lesson.size(1 << 16, 1 << 20);
    lesson.say(&format!(
        "One sequence of f32 with one shared coefficient, on one core, medians of several runs in \
         turn. The matrix is built up to L = {longest_matrix}; the transforms are planned before the clock starts.",
    ));
    let lengths: Vec<usize> =
        std::iter::successors(Some(16), |l| Some(l * 2)).take_while(|&l| l <= longest).collect();
    let bar = linrec::lesson::progress(lengths.len(), "measuring");
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
    // What goes wrong (memory, say) must not be taken for speed: it is computed once before.
    let matrix = if with_matrix { mixing_matrix(coeffs.view())? } else { Default::default() };
    convolution.apply(inputs.view(), coeff)?;

    // Short sequences are repeated, so that one measurement takes microseconds and more.
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
        clock::medians(7, [&mut looped, &mut convolved, &mut built, &mut mixed]);
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
        .measured("matrix, built and multiplied", points(&|t| t.matrix.map(|(b, m)| b + m)))
        .measured("FFT", points(&|t| Some(t.convolved)))
        .measured("matrix, multiplied only", points(&|t| t.matrix.map(|(_, m)| m)));
    lesson.figure("cost.svg", "Cost of each form", Kind::Timed, &plot::svg(&[&chart])?)
}

/// Says what the measurements show, whatever it is.
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
