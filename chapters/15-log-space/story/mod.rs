//! The run of the chapter: it computes, checks and records every number that the page quotes.
//!
//! The steps follow the page: Heinsen's formula by hand, the limits of each method (in `limits`),
//! sums that restart, gradients, and minGRU. Every error is shown relative to its derived bound.
//! Therefore a check fails if log space loses more than the theory allows. All random data has a
//! fixed seed. `cargo xtask record --check` compares the run with the committed record.

mod limits;

use ch01_sequential_loop::linrec;
use half::{bf16, f16};
use lesson::plot::{self, Chart};
use lesson::{Kind, Lesson, Result, Table};
use linrec::contract::golden::array_distance;
use linrec::contract::{self, Case, CoeffKind, Domain, InputKind, Layout};
use linrec::{Direction, Engine, Options};
use ndarray::{Array1, Array2, s};
use num_traits::Float;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};

use crate::min_gru::{backward, forward, log_g, relative_bound, softplus};
use crate::stored::{array_by_array, narrow, widen};
use crate::{LogSpace, Order, SignedLog, bound, golden, heinsen, log_add_exp, segments};

pub(crate) fn run(lesson: &mut Lesson) -> Result {
    lesson.engine("log space, loop, tree");
    by_hand(lesson)?;
    limits::stable(lesson)?;
    limits::signs(lesson)?;
    limits::zeros(lesson)?;
    limits::range(lesson)?;
    limits::bound(lesson)?;
    limits::atlas(lesson)?;
    restart(lesson)?;
    gradients(lesson)?;
    min_gru(lesson)
}

fn by_hand(lesson: &mut Lesson) -> Result {
    lesson.step("by-hand", "Four steps, two sums")?;
    let (inputs, coeffs, initial) = ([1.0_f64, 3.0, 2.0, 8.0], [0.5_f64; 4], 2.0_f64);
    let logs = |values: [f64; 4]| values.map(f64::ln);
    let (log_x, log_c) = (logs(inputs), logs(coeffs));
    let log_y = heinsen(Order::InOrder, &log_x, &log_c, initial.ln());

    lesson.say(
        "The initial state is 2, its logarithm the first entry of the second sum. a adds up ln c; b adds up \
         e^(ln x - a), and is kept as a logarithm.",
    );
    let mut table = Table::new(["l", "x", "c", "a", "ln x - a", "b", "a + b", "y"]);
    let (mut a, mut b) = (0.0, initial.ln());
    for l in 0..4 {
        a += log_c[l];
        b = log_add_exp(b, log_x[l] - a);
        let y = number(log_y[l].exp());
        let numbers = [a, log_x[l] - a, b, log_y[l]].map(|v| format!("{v:.4}"));
        let [a, term, b, log_y] = numbers;
        let (x, c) = (inputs[l].to_string(), coeffs[l].to_string());
        table.row([l.to_string(), x, c, a, term, b, log_y, y]);
    }
    lesson.table("by-hand.csv", Kind::Computed, &table)?;
    let exact = [2.0, 4.0, 4.0, 10.0];
    let errors = log_y.iter().zip(exact).map(|(log, y)| (log.exp() - y).abs() / y);
    // Every logarithm here is below 3, and no number has more than 20 roundings of logarithms.
    lesson.check("y minus 2, 4, 4, 10, relative", errors.fold(0.0, f64::max), 60.0 * f64::EPSILON);
    Ok(())
}

fn restart(lesson: &mut Lesson) -> Result {
    lesson.step("restart", "Sums that start afresh")?;
    let seq_len = lesson.size(1 << 16, 1 << 20);
    let mut rng = StdRng::seed_from_u64(124);
    let mut draw = || Array2::from_shape_simple_fn((1, seq_len), || rng.random_range(0.0..1.0_f32));
    let (x, c) = (draw(), draw());
    let wide = |values: &Array2<f32>| values.iter().map(|&v| v.into()).collect::<Vec<f64>>();
    let exact = linrec(&wide(&x), &wide(&c), 0.0);
    let logs: Vec<_> = c.iter().map(|&c| SignedLog::of(c)).collect();
    lesson.say(&format!(
        "Gates in [0, 1) once more, L = {seq_len}, f32. A segment ends where the logarithms have gone farther than \
         the reach; the state goes on as a logarithm.",
    ));
    let mut table = Table::new(["reach", "segments", "longest", "largest error", "bound"]);
    let mut worst = 0.0_f64;
    let mut errors = Vec::new();
    for reach in [f64::INFINITY, 1024.0, 64.0, 16.0, 4.0, 1.0] {
        let engine = LogSpace::restarting(reach);
        let y = engine.forward(x.view(), c.view(), &Options::default())?.outputs;
        let bounds = bound::along(&engine, &wide(&x), (&wide(&c), &logs), 0.0);
        let (mut largest, mut limit) = (0.0_f64, 0.0_f64);
        for ((y, exact), bound) in y.iter().zip(&exact).zip(&bounds) {
            let error = (f64::from(*y) - exact).abs();
            worst = worst.max(error / bound);
            largest = largest.max(error / exact);
            limit = limit.max(bound / exact);
        }
        let segments = segments(&logs, reach);
        let longest = segments.iter().map(|segment| segment.len()).max().unwrap_or(0);
        let reach = if reach.is_finite() { reach.to_string() } else { "none".to_owned() };
        errors.push(largest);
        let counts = [segments.len(), longest].map(|n| n.to_string());
        let cells = [largest, limit].map(number);
        table.row([reach].into_iter().chain(counts).chain(cells));
    }
    lesson.table("restart.csv", Kind::Computed, &table)?;
    lesson.check("largest error / bound, all reaches", worst, 1.0);
    lesson.value("error_whole", number(errors[0]), Kind::Computed);
    lesson.value("error_restarted", number(errors[3]), Kind::Computed);

    let engine = LogSpace::restarting(16.0);
    let half = seq_len / 3;
    let part = |from: usize, to: usize, initial| -> Result<_> {
        let options = Options { initial, ..Options::default() };
        let range = s![.., from..to];
        Ok(engine.forward(x.slice(range), c.slice(range), &options)?)
    };
    let head = part(0, half, None)?;
    let tail = part(half, seq_len, Some((&head.final_state).into()))?;
    let whole = part(0, seq_len, None)?;
    let bounds = bound::along(&engine, &wide(&x), (&wide(&c), &logs), 0.0);
    let differences = tail.outputs.iter().zip(whole.outputs.iter().skip(half));
    let differences = differences.map(|(a, b)| (f64::from(*a) - f64::from(*b)).abs());
    // Both are within the bound; the state between the calls is rounded once more.
    let share = differences.zip(bounds.iter().skip(half)).map(|(d, bound)| d / (2.0 * bound));
    lesson.say(&format!(
        "The same sequence in two calls, the second of which begins with the final state of the first (at \
         {half}), agrees with the one call:",
    ));
    lesson.check("two calls and one, difference / twice the bound", share.fold(0.0, f64::max), 1.0);
    Ok(())
}

fn gradients(lesson: &mut Lesson) -> Result {
    lesson.step("gradients", "The way back, and the witnesses")?;
    let seq_len = lesson.size(4093, 65_537);
    let case = |coeffs, log_coeffs| Case {
        num_seqs: 17,
        seq_len,
        direction: Direction::Forward,
        initial: true,
        coeffs,
        log_coeffs,
        inputs: InputKind::Dense,
        layout: Layout::Standard,
    };
    lesson.say(&format!(
        "17 sequences of {seq_len} elements, forward and backward in f32, all outputs and gradients beside the \
         reference in double precision, in units of their bounds:",
    ));
    let mut table = Table::new(["coefficients", "as numbers", "as logarithms"]);
    let mut worst = 0.0_f64;
    let engine = LogSpace::whole();
    let kinds = [
        ("in [0, 1)", CoeffKind::Gate),
        ("in [0.98, 1)", CoeffKind::NearOne),
        ("in [0.98, 1), some 0", CoeffKind::Zeros),
        ("in (-1.2, 1.2)", CoeffKind::Signed),
        ("in [1, 1 + 16/L]", CoeffKind::Growing),
        ("below 1e-12", CoeffKind::Underflow),
    ];
    let domain = LogSpace::domain();
    let share = |case: &Case| contract::check_within::<f32>(&engine, &domain, &engine, case);
    for (name, kind) in kinds {
        let plain = share(&case(kind, false))?;
        let log = match kind.has_log() {
            true => Some(share(&case(kind, true))?),
            false => None,
        };
        worst = worst.max(plain).max(log.unwrap_or(0.0));
        let log = log.map_or("–".to_owned(), |share| format!("{share:.3}"));
        table.row([name.to_owned(), format!("{plain:.3}"), log]);
    }
    lesson.table("gradients.csv", Kind::Computed, &table)?;
    lesson.check("f32, largest error / bound", worst, 1.0);

    let mut distances = [0.0_f64; 3];
    for case in golden::recurrences()? {
        let kind = ["positive", "signed", "zeros"].iter().position(|k| case.name.ends_with(k));
        let (x, c) = (case.inputs.view(), case.coeffs.view());
        let y = engine.forward(x, c, &case.options::<f64>())?.outputs;
        let distance = &mut distances[kind.unwrap_or(0)];
        *distance = distance.max(array_distance(&y, &case.outputs));
    }
    lesson.say(&format!(
        "Heinsen's sequences as PyTorch computed them, in f64, largest difference relative to each array's \
         maximum: {} where all is positive, {} with signs, {} with zeros.",
        number(distances[0]), number(distances[1]), number(distances[2]),
    ));
    lesson.value("golden_signed", number(distances[1]), Kind::Computed);
    let largest = distances.into_iter().fold(0.0, f64::max);
    lesson.check("golden sequences, relative difference", largest, 1e-11);
    let mut largest = 0.0_f64;
    for case in contract::golden::real()? {
        largest = largest.max(contract::golden::distance::<f64>(&engine, &case)?);
    }
    lesson.check("golden recurrences with gradients, relative difference", largest, 1e-11);

    let domain = Domain { max_len: 64, ..domain };
    let report = contract::run_within::<f64>(&engine, &domain, &engine);
    lesson.say(&format!(
        "The contract's table of cases, in f64, with the bound of log space: {} cases up to 64 elements.",
        report.cases,
    ));
    lesson.check("cases that failed", report.failures.len() as f64, 0.0);
    lesson.check("the contract, largest error / bound", report.worst, 1.0);
    lesson.value("contract_cases", report.cases, Kind::Computed);
    Ok(())
}

// minGRU on log space.

fn min_gru(lesson: &mut Lesson) -> Result {
    lesson.step("min-gru", "minGRU")?;
    against_golden(lesson)?;
    over_length(lesson)
}

fn against_golden(lesson: &mut Lesson) -> Result {
    let case = golden::min_gru()?;
    let engine = LogSpace::whole();
    let given = (case.k.view(), case.h_tilde.view(), case.h0.view());
    let h = forward(&engine, given.0, given.1, given.2)?;
    let d = backward(&engine, case.d_h.view(), given, case.h.view())?;
    lesson.say(
        "A layer of 6 units, 2 sequences of 40 steps, beside PyTorch: the states, and the gradients that its \
         autograd found for k and h̃.",
    );
    let distances = [
        ("states", array_distance(&h, &case.h)),
        ("gradient of k", array_distance(&d.d_k, &case.d_k)),
        ("gradient of h̃", array_distance(&d.d_h_tilde, &case.d_h_tilde)),
    ];
    for (name, distance) in distances {
        lesson.check(&format!("minGRU, {name}, relative difference"), distance, 1e-11);
    }
    Ok(())
}

/// The largest relative errors of the states up to each length.
struct LengthErrors {
    name: &'static str,
    upto: Vec<f64>,
}

fn over_length(lesson: &mut Lesson) -> Result {
    let longest = lesson.size(1 << 14, 1 << 18);
    let mut rng = StdRng::seed_from_u64(125);
    let mut draw = |_| -> f32 { StandardNormal.sample(&mut rng) };
    let k: Array2<f32> = Array2::from_shape_fn((1, longest), &mut draw);
    let h_tilde: Array2<f32> = Array2::from_shape_fn((1, longest), &mut draw);
    lesson.say(&format!(
        "One untrained unit: k and h̃ drawn from N(0, 1), L = {longest}. The mean of ln (1 - z) is -0.8, so the \
         logarithms go far. Largest relative error of the state so far:",
    ));
    let h0 = Array1::from_elem(1, 0.5_f32);
    let wide = |array: &Array2<f32>| array.mapv(f64::from);
    let exact = loop_over::<f64>(&wide(&k), &wide(&h_tilde), 0.5);

    let whole = LogSpace::whole();
    let in_logs = |engine: &LogSpace| -> Result<Vec<f64>> {
        let h = forward(engine, k.view(), h_tilde.view(), h0.view())?;
        Ok(h.iter().map(|&h| h.into()).collect())
    };
    let looped =
        loop_over::<f32>(&k, &h_tilde, 0.5).iter().map(|&h| h.into()).collect::<Vec<f64>>();
    let states = in_logs(&whole)?;
    let bounds = relative_bound(&whole, k.row(0), h_tilde.row(0), 0.5);
    let share = states.iter().zip(&exact).zip(&bounds).map(|((h, e), b)| (h - e).abs() / (e * b));
    let share = share.fold(0.0, f64::max);

    let lengths: Vec<usize> =
        std::iter::successors(Some(16), |l| Some(2 * l)).take_while(|&l| l <= longest).collect();
    let errors = |name, h: &[f64]| LengthErrors { name, upto: upto(&lengths, h, &exact) };
    // In 16 bits the rounded problem is a different one, with other exact states.
    let narrow = [
        stored_errors::<bf16>("bfloat16 logarithms", &lengths, &k, &h_tilde),
        stored_errors::<f16>("float16 logarithms", &lengths, &k, &h_tilde),
    ];
    let all: Vec<LengthErrors> = [
        errors("loop, f32", &looped),
        errors("log space, f32", &states),
        errors("reach 8, f32", &in_logs(&LogSpace::restarting(8.0))?),
    ]
    .into_iter()
    .chain(narrow)
    .collect();

    let header = std::iter::once("L".to_owned()).chain(all.iter().map(|e| e.name.to_owned()));
    let mut table = Table::new(header);
    for (i, len) in lengths.iter().enumerate().step_by(2) {
        let cells = all.iter().map(|errors| number(errors.upto[i]));
        table.row([len.to_string()].into_iter().chain(cells));
    }
    lesson.table("min-gru.csv", Kind::Computed, &table)?;
    let mut chart = Chart::new("minGRU: largest relative error of the state")
        .axes("length L", "relative error")
        .log_x(2.0)
        .log_y(10.0)
        .y_range(1e-8, 1e3);
    for errors in &all {
        let points = lengths.iter().zip(&errors.upto).map(|(&l, &e)| (l as f64, e));
        chart = chart.measured(errors.name, points.filter(|(_, e)| e.is_finite()));
        if errors.name.starts_with("loop") {
            chart = chart.color(plot::kernels::color("loop"));
        }
    }
    lesson.figure("min-gru.svg", "minGRU in few bits", Kind::Computed, &plot::svg(&[&chart])?)?;
    lesson.check("minGRU in f32, largest error / bound", share, 1.0);
    for (key, errors) in ["loop", "logs", "reach", "bf16", "f16"].iter().zip(&all) {
        let last = errors.upto.last().copied().unwrap_or(f64::NAN);
        lesson.value(&format!("min_gru_{key}"), number(last), Kind::Computed);
    }
    lesson.value("min_gru_longest", longest, Kind::Computed);
    Ok(())
}

/// Computes the states by the loop of chapter 1.
fn loop_over<T: crate::Real>(k: &Array2<T>, h_tilde: &Array2<T>, h0: f64) -> Vec<T> {
    let coeffs: Vec<T> = k.iter().map(|&k| Float::exp(-softplus(k))).collect();
    let inputs: Vec<T> =
        k.iter().zip(h_tilde).map(|(&k, &h)| Float::exp(-softplus(-k) + log_g(h))).collect();
    ch01_sequential_loop::linrec(&inputs, &coeffs, T::from_real(h0))
}

/// Returns the errors of the two sums from the state 0, with all arrays stored as `S`, including
/// inputs and log-coefficients.
fn stored_errors<S: Float>(
    name: &'static str,
    lengths: &[usize],
    k: &Array2<f32>,
    h_tilde: &Array2<f32>,
) -> LengthErrors {
    let logs: Vec<S> = k.iter().map(|&k| narrow(-softplus(k))).collect();
    let inputs: Vec<S> = k
        .iter()
        .zip(h_tilde)
        .map(|(&k, &h)| narrow(Float::exp(-softplus(-k) + log_g(h))))
        .collect();
    let wide = |values: &[S]| values.iter().map(|v| f64::from(widen(*v))).collect::<Vec<f64>>();
    let coeffs: Vec<f64> = wide(&logs).iter().map(|log| log.exp()).collect();
    let exact = ch01_sequential_loop::linrec(&wide(&inputs), &coeffs, 0.0);
    LengthErrors { name, upto: upto(lengths, &wide(&array_by_array(&inputs, &logs)), &exact) }
}

fn upto(lengths: &[usize], h: &[f64], exact: &[f64]) -> Vec<f64> {
    let error = |l: usize| {
        let error = (h[l] - exact[l]).abs() / exact[l];
        if error.is_nan() { f64::INFINITY } else { error }
    };
    lengths.iter().map(|&len| (0..len).map(error).fold(0.0, f64::max)).collect()
}

/// Formats a number for a table: four digits, or a power of ten if it is tiny.
fn number(value: f64) -> String {
    match value.abs() {
        v if v == 0.0 || (1e-3..1e5).contains(&v) => {
            let text = format!("{value:.4}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        v if v.is_finite() => format!("{value:.1e}"),
        _ => value.to_string(),
    }
}
