//! The story of chapter 1: runs every example of the page and checks it.
//!
//! A reader first follows six steps by hand. The story then splits, reverses and restarts the loop,
//! draws what coefficients do to a signal, compares single with double precision against a derived
//! bound, runs the test contract, and measures the loop against an addition. `cargo xtask record
//! --check` compares the checks and values of a run with the committed record.

use std::hint::black_box;
use std::time::Duration;

use bench::clock;
use lesson::plot::{self, Chart};
use lesson::{Kind, Lesson, Result, Table};
use linrec::contract::{self, Case, CoeffKind, Data, Domain, InputKind, Layout};
use linrec::reference::{self, Rounding};
use linrec::{Direction, Engine, Options};
use ndarray::{Array1, Array2, Axis, Zip, array, s};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Normal};

use crate::exercises::coeff_of_half_life;
use crate::side_by_side::side_by_side;
use crate::special_cases::restart as restart_at;
use crate::special_cases::{
    cumulative_product, cumulative_sum, exponential_average, gated_average, running_mean,
};
use crate::{Loop, linrec, linrec_into};

pub(crate) fn run(lesson: &mut Lesson) -> Result {
    lesson.engine("loop");
    first_steps(lesson)?;
    any_split(lesson)?;
    reverse(lesson)?;
    sums_and_products(lesson)?;
    averages(lesson)?;
    restart(lesson)?;
    impulse(lesson)?;
    signal(lesson)?;
    against_double_precision(lesson)?;
    contract(lesson)?;
    loop_against_add(lesson)
}

fn first_steps(lesson: &mut Lesson) -> Result {
    lesson.step("loop", "Six steps by hand")?;
    lesson.say(
        "The state before the first step is 2. In every step it is multiplied by a coefficient, \
         an input is added, and the result is both the output and the next state.",
    );
    let (x, c, initial) = ([1.0, 1.0, 1.0, 1.0, 1.0, 1.0], [0.5, 0.5, 0.0, 1.0, 1.0, -1.0], 2.0);
    let y = linrec(&x, &c, initial);
    let mut table = Table::new(["l", "y_{l-1}", "c_l", "x_l", "y_l = y_{l-1} * c_l + x_l"]);
    let mut state = initial;
    for l in 0..y.len() {
        table.row([l as f64, state, c[l], x[l], y[l]].map(|number| number.to_string()));
        state = y[l];
    }
    lesson.table("first-steps.csv", Kind::Computed, &table)?;
    lesson.say(
        "A coefficient of 0.5 forgets half of the state, 0 forgets all of it, 1 keeps it (and the \
         inputs add up), and -1 turns its sign around.",
    );
    let expected = [2.0, 2.0, 1.0, 2.0, 3.0, -2.0];
    lesson.check("outputs that differ from those by hand", differing(&y, &expected), 0.0);
    Ok(())
}

/// Splits a sequence at every position: the first part's final state becomes the second part's
/// initial state.
fn any_split(lesson: &mut Lesson) -> Result {
    lesson.step("state", "The state is all that the past leaves behind")?;
    let (x, c) = (random(1000, -1.0..1.0, 1), random(1000, 0.98..1.0, 2));
    let whole = linrec(&x, &c, 0.5);
    lesson.say(
        "A sequence of 1000 elements is cut in two, at each of its 1001 places in turn. The second \
         part starts from the state in which the first one ended.",
    );
    let mut wrong = 0.0;
    for place in 0..=x.len() {
        let mut parts = linrec(&x[..place], &c[..place], 0.5);
        let state = parts.last().copied().unwrap_or(0.5);
        parts.extend(linrec(&x[place..], &c[place..], state));
        wrong += differing(&parts, &whole);
    }
    lesson.check("outputs, of 1001 cuts, that differ in a bit", wrong, 0.0);

    let (y_last, zero) = (whole[x.len() - 1], linrec(&x, &c, 0.0)[x.len() - 1]);
    lesson.say(&format!(
        "How much of the past is left is a matter of the coefficients. From the initial state 0.5 \
         the last output is {y_last:.6}, from 0 it is {zero:.6}: of the difference of 0.5, \
         {:.0e} is left after 1000 coefficients between 0.98 and 1.",
        y_last - zero
    ));
    Ok(())
}

fn reverse(lesson: &mut Lesson) -> Result {
    lesson.step("reverse", "The other direction")?;
    lesson.say(
        "In reverse the loop starts at the last element, and the initial state comes after the \
         end. Two sequences at once, one per row:",
    );
    let inputs = array![[1.0, 2.0, 3.0, 4.0], [1.0, 0.0, 0.0, 0.0]];
    let coeffs = array![[1.0, 1.0, 1.0, 1.0], [0.5, 0.5, 0.5, 0.5]];
    let options = Options {
        direction: Direction::Reverse,
        initial: Some(array![0.0, 16.0].into()),
        ..Options::default()
    };
    let result = Loop.forward(inputs.view(), coeffs.view(), &options)?;
    lesson.show(format!("inputs\n{inputs}\ncoeffs\n{coeffs}\ninitial state {}", array![0.0, 16.0]));
    lesson.show(format!("outputs\n{}\nfinal state {}", result.outputs, result.final_state));

    let (x, c) = (random(1000, -1.0..1.0, 3), random(1000, 0.0..1.0, 4));
    let backwards = |values: &[f64]| values.iter().rev().copied().collect::<Vec<_>>();
    let flipped = backwards(&linrec(&backwards(&x), &backwards(&c), 0.0));
    let row = |values: Vec<f64>| Array2::from_shape_vec((1, 1000), values);
    let options = Options { direction: Direction::Reverse, ..Options::default() };
    let result = Loop.forward(row(x)?.view(), row(c)?.view(), &options)?;
    let reversed = result.outputs.into_iter().collect::<Vec<_>>();
    lesson.check(
        "reverse outputs that differ from the flipped loop over flipped inputs",
        differing(&reversed, &flipped),
        0.0,
    );
    Ok(())
}

fn sums_and_products(lesson: &mut Lesson) -> Result {
    lesson.step("sums", "Sums and products")?;
    let numbers = [1.0, 2.0, 3.0, 4.0, 5.0];
    lesson.show(format!(
        "numbers            {}\ncumulative sum     {}\ncumulative product {}",
        Array1::from(numbers.to_vec()),
        Array1::from(cumulative_sum(&numbers)),
        Array1::from(cumulative_product(&numbers)),
    ));
    lesson.say("And 1000 random numbers, against ndarray's accumulate_axis_inplace and cumprod:");

    let x = Array1::from(random(1000, 0.5..1.5, 5));
    let mut sums = x.clone();
    sums.accumulate_axis_inplace(Axis(0), |&before, now| *now += before);
    let products = x.cumprod(Axis(0));
    let ours = (cumulative_sum(&x.to_vec()), cumulative_product(&x.to_vec()));
    lesson.check("sums that differ in a bit", differing(&ours.0, &sums.to_vec()), 0.0);
    lesson.check("products that differ in a bit", differing(&ours.1, &products.to_vec()), 0.0);
    Ok(())
}

fn averages(lesson: &mut Lesson) -> Result {
    lesson.step("averages", "Averages")?;
    let x = Array1::from(random(1000, -1.0..1.0, 6));
    lesson.say(
        "The mean of everything so far, against ndarray's mean of each prefix. The loop multiplies \
         an input by up to 999 coefficients, each of them rounded, and rounds at every step; \
         ndarray adds up and divides. So the two may differ.",
    );
    let worst = running_mean(&x.to_vec())
        .into_iter()
        .enumerate()
        .map(|(l, mean)| {
            let prefix = x.slice(s![..=l]);
            let size = prefix.mapv(f64::abs).mean().unwrap_or(0.0);
            let error = (mean - prefix.mean().unwrap_or(0.0)).abs();
            // Each step rounds three times here (a coefficient, a product, an addition) and once in
            // ndarray; a few roundings affect every term.
            let roundings = (4 * l + 5) as f64 * f64::EPSILON / 2.0;
            error / (roundings / (1.0 - roundings) * size)
        })
        .fold(0.0, f64::max);
    lesson.check("largest difference, in units of its bound", worst, 1.0);

    lesson.say(
        "The average that fades, y_l = c y_{l-1} + (1-c) x_l, for c = 1/2 and 40 whole numbers: \
         halves are exact, so the weighted sum 1/2 x_l + 1/4 x_{l-1} + ... has to agree in every bit.",
    );
    let whole = Array1::from(random(40, -100.0..100.0, 7)).mapv(f64::round);
    let faded = exponential_average(&whole.to_vec(), 0.5, 0.0);
    let weighted: Vec<f64> = (0..whole.len())
        .map(|l| {
            let weights = Array1::from_shape_fn(l + 1, |k| 0.5_f64.powi((l - k + 1) as i32));
            weights.dot(&whole.slice(s![..=l]))
        })
        .collect();
    lesson.check("averages that differ in a bit", differing(&faded, &weighted), 0.0);
    Ok(())
}

fn restart(lesson: &mut Lesson) -> Result {
    lesson.step("restart", "A coefficient of zero starts a new sequence")?;
    let (x, mut c) = (random(1000, -1.0..1.0, 8), random(1000, 0.98..1.0, 9));
    let starts = [0, 137, 600];
    restart_at(&mut c, &starts);
    let packed = linrec(&x, &c, 123.0);
    let bounds = [0, 137, 600, 1000];
    let apart: Vec<f64> =
        bounds.windows(2).flat_map(|b| linrec(&x[b[0]..b[1]], &c[b[0]..b[1]], 0.0)).collect();
    lesson.say(
        "Sequences of 137, 463 and 400 elements lie one after another in one array, with a \
         coefficient of 0 where each begins. The initial state, 123, must not be seen at all.",
    );
    lesson.check("outputs that differ from one by one", differing(&packed, &apart), 0.0);
    Ok(())
}

/// Shows how long a single input of 1 is remembered.
fn impulse(lesson: &mut Lesson) -> Result {
    lesson.step("impulse", "How long one input is remembered")?;
    lesson.say(
        "A single input of 1, then nothing but zeros: the outputs are the powers of the coefficient.",
    );
    let mut x = vec![0.0; 41];
    x[0] = 1.0;
    let response = |c: f64| linrec(&x, &vec![c; x.len()], 0.0);
    let line = |c: f64| response(c).into_iter().enumerate().map(|(l, y)| (l as f64, y));
    let chart = Chart::new("One input of 1, and what is left of it")
        .axes("position l", "output y")
        .line("c = 0.5", line(0.5))
        .line("c = 0.9", line(0.9))
        .line("c = 0.99", line(0.99))
        .line("c = -0.8", line(-0.8));
    lesson.figure("impulse.svg", "an impulse", Kind::Computed, &plot::svg(&[&chart])?)?;

    let steps = |c: f64| 0.5_f64.ln() / c.ln();
    lesson.show(format!(
        "half of it is left after {:.1} step with c = 0.5, {:.1} with 0.9, {:.1} with 0.99",
        steps(0.5),
        steps(0.9),
        steps(0.99)
    ));
    lesson.value("half_life_099", format!("{:.0}", steps(0.99)), Kind::Computed);
    lesson.value("coeff_1000", format!("{:.5}", coeff_of_half_life(1000.0)), Kind::Computed);
    Ok(())
}

/// Averages a noisy signal with jumps, with fixed coefficients and with coefficients computed from
/// the signal.
fn signal(lesson: &mut Lesson) -> Result {
    lesson.step("signal", "What coefficients do to a signal")?;
    let levels = [0.0, 1.0, 0.3, -0.6];
    let truth = |l: usize| levels[l / 100];
    let noise = Normal::new(0.0, 0.1)?;
    let mut rng = StdRng::seed_from_u64(10);
    let x: Vec<f64> = (0..400).map(|l| truth(l) + noise.sample(&mut rng)).collect();
    lesson.say(
        "A signal with three jumps, under noise. A fixed coefficient must choose: near 0 the average \
         keeps the noise, near 1 it is late at every jump. The last average makes its own \
         coefficients: 0 where the signal jumps by more than 0.45, then 1/2, 2/3, 3/4 and so on, at \
         most 0.98. It is the same recurrence; only c depends on the data.",
    );
    let (gated, coeffs) = gated_average(&x, 0.45, 0.98);
    let points = |values: &[f64]| -> Vec<(f64, f64)> {
        values.iter().enumerate().map(|(l, &value)| (l as f64, value)).collect()
    };
    let fixed = |c: f64| exponential_average(&x, c, 0.0);
    let above = Chart::new("One coefficient for all steps")
        .axes("position l", "signal and averages")
        .dots("input", points(&x))
        .line("c = 0.5", points(&fixed(0.5)))
        .line("c = 0.9", points(&fixed(0.9)))
        .line("c = 0.98", points(&fixed(0.98)));
    let below = Chart::new("Coefficients that the signal makes")
        .axes("position l", "signal, average, coefficients")
        .dots("input", points(&x))
        .line("average", points(&gated))
        .dashed("coefficients", points(&coeffs));
    let svg = plot::grid(&[&above, &below], 1)?;
    lesson.figure("signal.svg", "a signal and its averages", Kind::Computed, &svg)?;

    let error = |values: &[f64]| {
        let squares: f64 = values.iter().enumerate().map(|(l, y)| (y - truth(l)).powi(2)).sum();
        (squares / x.len() as f64).sqrt()
    };
    let names = ["no average", "c = 0.5", "c = 0.9", "c = 0.98", "its own coefficients"];
    let errors = [&x, &fixed(0.5), &fixed(0.9), &fixed(0.98), &gated].map(|values| error(values));
    let mut table = Table::new(["average", "distance from the truth (rms)"]);
    for (name, error) in names.iter().zip(errors) {
        table.row([name.to_string(), format!("{error:.3}")]);
    }
    lesson.table("signal.csv", Kind::Computed, &table)?;
    Ok(())
}

const LOOP: Rounding = Rounding { levels: 0, exp_ulps: 0.0 };

fn case(coeffs: CoeffKind, seq_len: usize) -> Case {
    Case {
        num_seqs: 17,
        seq_len,
        direction: Direction::Forward,
        initial: true,
        coeffs,
        log_coeffs: false,
        inputs: InputKind::Dense,
        layout: Layout::Standard,
    }
}

/// The length of the sequence that is compared with double precision.
const COMPARED: usize = 4093;

/// The ranges of positions that are examined separately: name, first position, and the position
/// after the last.
const POSITIONS: [(&str, (usize, usize)); 4] = [
    ("l < 10", (0, 10)),
    ("10 to 99", (10, 100)),
    ("100 to 999", (100, 1000)),
    ("from 1000", (1000, COMPARED)),
];

/// Compares the errors of the loop in `f32` against the loop in `f64` with their bounds.
fn against_double_precision(lesson: &mut Lesson) -> Result {
    lesson.step("bound", "How exact is it?")?;
    lesson.say(
        "The loop in f32 beside the loop in f64: 17 sequences of 4093 elements for every kind of \
         coefficients. The bound is computed along with each output; the last columns are the largest \
         error / bound at the positions l that they name.",
    );
    let kinds = [
        ("in [0, 1)", CoeffKind::Gate),
        ("in [0.98, 1)", CoeffKind::NearOne),
        ("1", CoeffKind::One),
        ("-1", CoeffKind::MinusOne),
        ("in (-1.2, 1.2)", CoeffKind::Signed),
        ("in [1, 1 + 16/L]", CoeffKind::Growing),
    ];
    let header = ["coefficients", "largest |y|", "largest error"];
    let mut table = Table::new(header.into_iter().chain(POSITIONS.map(|(name, _)| name)));
    let mut worst: f64 = 0.0;
    for (name, kind) in kinds {
        let data: Data<f32> = case(kind, COMPARED).data();
        let (x, c) = (data.inputs.view(), data.coeffs());
        let exact = reference::forward(x, c, &data.options)?.outputs;
        let bound = reference::forward_bound(x, c, &data.options, LOOP)?.outputs;
        let ours = Loop.forward(x, c, &data.options)?.outputs;
        let errors = (ours.mapv(f64::from) - &exact).mapv(f64::abs);
        let largest = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
        let ratios = &errors / &bound;
        let at = POSITIONS
            .map(|(_, (from, to))| largest(&mut ratios.slice(s![.., from..to]).iter().copied()));
        let size = largest(&mut exact.iter().map(|y| y.abs()));
        let error = largest(&mut errors.iter().copied());
        let cells = [name.into(), format!("{size:.1}"), format!("{error:.1e}")];
        table.row(cells.into_iter().chain(at.map(|ratio| format!("{ratio:.3}"))));
        worst = at.into_iter().fold(worst, f64::max);
        if kind == CoeffKind::NearOne {
            lesson.value("near_one_first", format!("{:.2}", at[0]), Kind::Computed);
            lesson.value("near_one_late", format!("{:.3}", at[2].max(at[3])), Kind::Computed);
            draw(lesson, &errors.row(0).to_vec(), &bound.row(0).to_vec())?;
        }
    }
    lesson.table("bound.csv", Kind::Computed, &table)?;
    lesson.check("largest error / bound", worst, 1.0);
    lesson.value("worst_ratio", format!("{worst:.2}"), Kind::Computed);
    Ok(())
}

fn draw(lesson: &mut Lesson, errors: &[f64], bound: &[f64]) -> Result {
    let points = |values: &[f64]| {
        let every_fourth = values.iter().enumerate().step_by(4);
        every_fourth.map(|(l, &value)| (l as f64, value)).collect::<Vec<_>>()
    };
    let chart = Chart::new("Error of the f32 loop, coefficients in [0.98, 1)")
        .axes("position l", "error of y")
        .log_y(10.0)
        .dashed("", [])
        .dots("error", points(errors))
        .line("bound", points(bound));
    lesson.figure("bound.svg", "the error and its bound", Kind::Computed, &plot::svg(&[&chart])?)
}

/// Runs the test contract that every engine of the project must pass, at lengths that take no time.
fn contract(lesson: &mut Lesson) -> Result {
    lesson.step("contract", "One test for all that follow")?;
    let domain = Domain { max_len: 1000, ..Domain::default() };
    let report = contract::run::<f32>(&Loop, &domain);
    lesson.say(&format!(
        "Every way to compute the recurrence in this book faces one table of cases, and the bound \
         above. The loop took {} of them here (those up to 1000 elements, in f32, forward and \
         backward), and came no closer to the bound than {:.2} of it.",
        report.cases, report.worst
    ));
    lesson.check("cases that failed", report.failures.len() as f64, 0.0);
    lesson.value("contract_cases", report.cases, Kind::Computed);
    Ok(())
}

/// The number of sequences in step.
const N: usize = 16;

/// Measures the loop, the addition and the loop over many sequences in step, for arrays in cache
/// and in memory.
fn loop_against_add(lesson: &mut Lesson) -> Result {
    lesson.step("cost", "What it costs")?;
    lesson.say(
        "The loop, against an addition x + c of the same arrays: both read 8 bytes and write 4 for \
         every element. Then the loop once more, over 16 sequences in step: element 0 of all 16, \
         element 1 of all 16, and so on.",
    );
    let lengths = lesson.size(
        vec![1 << 10, 1 << 14, 1 << 18, 1 << 22],
        vec![1 << 10, 1 << 14, 1 << 18, 1 << 22, 1 << 26],
    );
    let mut table = Table::new([
        "elements",
        "loop (ns/element)",
        "16 in step (ns/element)",
        "addition (ns/element)",
        "loop / addition",
    ]);
    let bar = lesson::progress(lengths.len(), "measuring");
    let mut ratios = Vec::new();
    for &len in &lengths {
        let [looped, in_step, added] = measure(len);
        let ratio = looped / added;
        let cells = [looped, in_step, added].map(|nanos| format!("{nanos:.3}"));
        table.row([vec![len.to_string()], cells.to_vec(), vec![format!("{ratio:.1}")]].concat());
        ratios.push(ratio);
        if len == 1 << 14 {
            lesson.value("loop_ns", format!("{looped:.2}"), Kind::Timed);
            lesson.value("in_step_ns", format!("{in_step:.3}"), Kind::Timed);
            lesson.value("add_ns", format!("{added:.3}"), Kind::Timed);
            lesson.value("loop_ratio", format!("{ratio:.0}"), Kind::Timed);
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    lesson.table("cost.csv", Kind::Timed, &table)?;
    let (least, most) =
        ratios.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), &r| (a.min(r), b.max(r)));
    lesson.say(&format!(
        "An element of the loop took {least:.1} to {most:.1} times as long as one of the addition, \
         though it moves the same bytes. The loop waits: a step cannot begin before the step before \
         has its result, which takes one multiplication and one addition, several cycles each. Sixteen \
         sequences side by side wait together, and share the wait."
    ));
    lesson.value("least_ratio", format!("{least:.1}"), Kind::Timed);
    lesson.value("most_ratio", format!("{most:.0}"), Kind::Timed);
    Ok(())
}

/// Measures the nanoseconds per element of the loop, the loop over `N` sequences in step, and the
/// addition.
fn measure(len: usize) -> [f64; 3] {
    let floats = |range, seed| -> Vec<f32> {
        // A long sequence repeats a short one, because the numbers do not matter here.
        let some = random(len.min(1 << 16), range, seed);
        some.iter().cycle().take(len).map(|&value| value as f32).collect()
    };
    let (x, c) = (floats(-1.0..1.0, 11), floats(0.9..1.0, 12));
    let (rows_x, rows_c) = (x.as_chunks::<N>().0, c.as_chunks::<N>().0);
    let (x, c) = (Array1::from(x.clone()), Array1::from(c.clone()));
    let [mut y, mut sum] = [Array1::zeros(len), Array1::zeros(len)];
    let mut rows_y = vec![[0.0_f32; N]; len / N];
    // Short arrays are processed many times so that the clock can measure them.
    let times = ((1 << 18) / len).max(1);
    let medians = clock::medians(
        11,
        [
            &mut || {
                repeat(times, || _ = linrec_into(x.view(), c.view(), 0.0, black_box(y.view_mut())))
            },
            &mut || repeat(times, || side_by_side(rows_x, rows_c, black_box(&mut rows_y))),
            &mut || {
                repeat(times, || {
                    Zip::from(black_box(&mut sum))
                        .and(&x)
                        .and(&c)
                        .for_each(|sum, &x, &c| *sum = x + c)
                })
            },
        ],
    );
    medians.map(|median: Duration| median.as_secs_f64() * 1e9 / (times * len) as f64)
}

fn repeat(times: usize, mut work: impl FnMut()) {
    for _ in 0..times {
        work();
    }
}

fn differing(a: &[f64], b: &[f64]) -> f64 {
    let pairs = a.iter().zip(b).filter(|(a, b)| a.to_bits() != b.to_bits()).count();
    (pairs + a.len().abs_diff(b.len())) as f64
}

fn random(len: usize, range: std::ops::Range<f64>, seed: u64) -> Vec<f64> {
    let mut rng = StdRng::seed_from_u64(seed);
    (0..len).map(|_| rng.random_range(range.clone())).collect()
}
