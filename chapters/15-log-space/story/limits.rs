//! The limits of each method: the products, signs, zeros and sizes at which it ends.
//!
//! Every step takes one weakness of logarithms and shows it with numbers small enough to follow by
//! hand, then with a figure over length or coefficients. The last step draws the precision atlas,
//! the slowest part of the chapter; its grid is smaller unless the run is a full one. All random
//! data has a fixed seed.

use ch01_sequential_loop::linrec;
use ch02_two_threads::{Transition, tree};
use lesson::plot::{self, Chart};
use lesson::{Kind, Lesson, Result, Table, progress};
use ndarray::Array2;
use num_traits::Float;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::number;
use crate::atlas::{Grid, Legend, Map, Method, draw, map, sixteen_bits};
use crate::exercises::longest_way;
use crate::stored::{BF16, F16};
use crate::{
    LogSpace, Order, Real, SignedLog, bound, complex_two_sums, heinsen, linrec_to_the_last_bit,
    two_sums,
};

// Products that leave the range of numbers on the way.

pub(super) fn stable(lesson: &mut Lesson) -> Result {
    lesson.step("stable", "Three ways to the same sum")?;
    // Up to about this length, the bound of log space promises less than a hundredth in f32.
    let seq_len = 4000;
    lesson.say(&format!(
        "{seq_len} steps with c = 1/2 and x = 1: the outputs approach 2 and stay there. The first position at \
         which a way is off by more than a hundredth:",
    ));
    let mut table = Table::new(["way", "f32", "f64"]);
    let mut last = 0.0;
    for way in WAYS {
        let firsts = [first_wrong::<f32>(way, seq_len), first_wrong::<f64>(way, seq_len)];
        last = if firsts == [None, None] { 0.0 } else { 1.0 };
        let cells = firsts.map(|first| first.map_or("none".to_owned(), |l: usize| l.to_string()));
        let [single, double] = cells;
        table.row([way, &single, &double]);
        let key = way.split_whitespace().next().unwrap_or_default();
        lesson.value(&format!("first_wrong_{key}"), single, Kind::Computed);
    }
    lesson.table("stable.csv", Kind::Computed, &table)?;
    lesson.check("types in which log-sum-exp gives wrong outputs", last, 0.0);
    Ok(())
}

const WAYS: [&str; 3] = ["division by products", "exponentials of x - a", "log-sum-exp"];

fn first_wrong<T: Real>(way: &str, seq_len: usize) -> Option<usize> {
    let (inputs, coeffs) = (vec![T::one(); seq_len], vec![T::from_real(0.5); seq_len]);
    let exact = linrec(&inputs, &coeffs, T::zero());
    let logs = |values: &[T]| values.iter().map(|&v| Float::ln(v)).collect::<Vec<T>>();
    let (log_x, log_c) = (logs(&inputs), logs(&coeffs));
    let outputs: Vec<T> = match way {
        "log-sum-exp" => {
            let log_y = heinsen(Order::Tree, &log_x, &log_c, T::neg_infinity());
            log_y.into_iter().map(Float::exp).collect()
        }
        "division by products" => {
            let (mut product, mut sum) = (T::one(), T::zero());
            let step = |(&x, &c): (&T, &T)| {
                product = product * c;
                sum = sum + x / product;
                product * sum
            };
            inputs.iter().zip(&coeffs).map(step).collect()
        }
        _ => {
            let (mut a, mut sum) = (T::zero(), T::zero());
            let step = |(&log_x, &log_c): (&T, &T)| {
                a = a + log_c;
                sum = sum + Float::exp(log_x - a);
                Float::exp(a) * sum
            };
            log_x.iter().zip(&log_c).map(step).collect()
        }
    };
    let wrong = |(&y, &exact): (&T, &T)| {
        // In this form, NaN is wrong.
        let right = (y - exact).modulus() <= 0.01 * exact.modulus();
        !right
    };
    outputs.iter().zip(&exact).position(wrong)
}

// Signs next to complex logarithms.

/// The largest relative errors up to every position.
struct SignErrors {
    signs: Vec<f64>,
    complex: Vec<f64>,
    /// The remainder in the imaginary part, which should be zero.
    imaginary: Vec<f64>,
    /// The largest error with signs, relative to its bound.
    share: f64,
}

pub(super) fn signs(lesson: &mut Lesson) -> Result {
    lesson.step("signs", "A sign, or an angle")?;
    let longest = lesson.size(1 << 16, 1 << 20);
    let decaying = errors(longest, 0.9);
    let flipping = errors(longest, 1.0);
    lesson.say(&format!(
        "Inputs in (-1, 1) and coefficients with random signs, in f32, up to L = {longest}; all prefix sums in a \
         tree. Once the coefficients have sizes from 0.9 to 1, once they are 1 and -1. The largest error so far, \
         relative to the recurrence on absolute values:",
    ));
    let header = [
        "L",
        "0.9 to 1: signs",
        "complex",
        "imaginary part",
        "±1: signs",
        "complex",
        "imaginary part",
    ];
    let mut table = Table::new(header);
    for len in std::iter::successors(Some(16), |l| Some(l * 4)).take_while(|&l| l <= longest) {
        let columns = [&decaying, &flipping].map(|e| [&e.signs, &e.complex, &e.imaginary]);
        let cells = columns.into_iter().flatten().map(|errors| number(errors[len - 1]));
        table.row([len.to_string()].into_iter().chain(cells));
    }
    lesson.table("signs.csv", Kind::Computed, &table)?;

    let points = |errors: &[f64]| -> Vec<(f64, f64)> {
        let ends = std::iter::successors(Some(16), |l| Some(l * 2)).take_while(|&l| l <= longest);
        ends.map(|len| (len as f64, errors[len - 1])).collect()
    };
    let chart = Chart::new("Coefficients 1 and -1 at random, f32")
        .axes("length L", "largest relative error")
        .log_x(2.0)
        .log_y(10.0)
        .measured("complex: imaginary part", points(&flipping.imaginary))
        .measured("complex: real part", points(&flipping.complex))
        .measured("signs", points(&flipping.signs));
    lesson.figure("signs.svg", "signs or angles", Kind::Computed, &plot::svg(&[&chart])?)?;
    let share = decaying.share.max(flipping.share);
    lesson.check("with signs, largest error / bound", share, 1.0);

    let last = longest - 1;
    lesson.value("signs_longest", longest, Kind::Computed);
    lesson.value("flipping_signs", number(flipping.signs[last]), Kind::Computed);
    lesson.value("flipping_complex", number(flipping.complex[last]), Kind::Computed);
    lesson.value("decaying_both", number(decaying.complex[last]), Kind::Computed);
    lesson.value("left_over", number(decaying.imaginary[last]), Kind::Computed);
    lesson.say(
        "An angle adds up: after n negative coefficients it is n π, and as uncertain as a sum of that size. The \
         real part hears of it with the square of the error, which is why it is late. A sign does not add up.",
    );
    Ok(())
}

/// Computes the errors for coefficients of sizes from `smallest` to 1.
fn errors(len: usize, smallest: f32) -> SignErrors {
    let mut rng = StdRng::seed_from_u64(122);
    let x: Vec<f32> = (0..len).map(|_| rng.random_range(-1.0..1.0)).collect();
    let c: Vec<f32> = (0..len)
        .map(|_| rng.random_range(smallest..=1.0) * if rng.random() { 1.0 } else { -1.0 })
        .collect();
    let wide = |values: &[f32]| values.iter().map(|&v| v.into()).collect::<Vec<f64>>();
    let sizes = |values: &[f32]| values.iter().map(|&v| f64::from(v.abs())).collect::<Vec<f64>>();
    let exact = linrec_to_the_last_bit(&wide(&x), &wide(&c));
    let y_hat = ch01_sequential_loop::linrec(&sizes(&x), &sizes(&c), 0.0);

    let pack = |values: &[f32]| values.iter().map(|&v| SignedLog::of(v)).collect::<Vec<_>>();
    let (packed_x, packed_c) = (pack(&x), pack(&c));
    let signed = two_sums(Order::Tree, &packed_x, &packed_c, SignedLog::of(0.0));
    let signed: Vec<f64> = signed.iter().map(|y| y.value().into()).collect();
    let complex = complex_two_sums(Order::Tree, &x, &c, 0.0);
    let real: Vec<f64> = complex.iter().map(|y| y.re.into()).collect();
    let imaginary: Vec<f64> = complex.iter().map(|y| y.im.into()).collect();

    let upto = |y: &[f64], exact: &[f64]| -> Vec<f64> {
        let mut worst = 0.0_f64;
        let errors = y.iter().zip(exact).zip(&y_hat).map(|((y, e), size)| (y - e).abs() / size);
        let so_far = errors.map(|error| {
            worst = worst.max(error);
            worst
        });
        so_far.collect()
    };
    let bounds = bound::along(&LogSpace::whole(), &sizes(&x), (&sizes(&c), &packed_c), 0.0);
    let shares = signed.iter().zip(&exact).zip(&bounds).map(|((y, e), b)| (y - e).abs() / b);
    SignErrors {
        share: shares.fold(0.0, f64::max),
        signs: upto(&signed, &exact),
        complex: upto(&real, &exact),
        imaginary: upto(&imaginary, &vec![0.0; len]),
    }
}

pub(super) fn zeros(lesson: &mut Lesson) -> Result {
    lesson.step("zeros", "A reset")?;
    let (inputs, coeffs) = ([1e6_f32, 1e6, 0.0, 2.0, 2.0, 2.0], [0.5_f32, 1.0, 0.0, 0.5, 0.5, 0.5]);
    lesson.say(
        "The state has grown to two million when a coefficient is 0, and the input as well: the state is 0, and \
         begins again. In f32:",
    );
    let pack = |values: &[f32]| values.iter().map(|&v| SignedLog::of(v)).collect::<Vec<_>>();
    let zero = SignedLog::of(0.0);
    let values = |y: Vec<SignedLog<f32>>| y.iter().map(|y| y.value()).collect::<Vec<f32>>();
    let sums = |coeffs: &[f32]| values(two_sums(Order::Tree, &pack(&inputs), &pack(coeffs), zero));
    // The common remedy: no coefficient and no input is smaller than eps.
    let at_least = |eps: f32| {
        let (x, c) = (inputs.map(|x| x.max(eps)), coeffs.map(|c| c.max(eps)));
        values(two_sums(Order::Tree, &pack(&x), &pack(&c), zero))
    };
    let exact = linrec(&inputs, &coeffs, 0.0);
    let cut = values(LogSpace::whole().sequence(&pack(&inputs), &pack(&coeffs), zero));
    let columns = [exact.clone(), sums(&coeffs), at_least(1e-6), at_least(1e-12), cut.clone()];

    let header = ["l", "x", "c", "loop", "plain sums", "eps 1e-6", "eps 1e-12", "cut at zero"];
    let mut table = Table::new(header);
    for l in 0..inputs.len() {
        let given = [inputs[l], coeffs[l]].map(|v| number(v.into()));
        let outputs = columns.iter().map(|y| number(y[l].into()));
        table.row([l.to_string()].into_iter().chain(given).chain(outputs));
    }
    lesson.table("zeros.csv", Kind::Computed, &table)?;
    let leaked = f64::from(columns[2][2]);
    lesson.value("leaked", number(leaked), Kind::Computed);
    let wrong = cut.iter().zip(&exact).filter(|(cut, exact)| {
        let error = (**cut - **exact).abs();
        // No logarithm here exceeds 16, and no number has more than 30 roundings of logarithms.
        error > 500.0 * f32::EPSILON * exact.abs()
    });
    lesson.check("outputs that the cut gets wrong", wrong.count() as f64, 0.0);
    let missing = columns[1].iter().filter(|y| !y.is_nan()).count();
    lesson.check(
        "outputs of the plain sums after the zero that are not NaN",
        missing as f64 - 2.0,
        0.0,
    );
    Ok(())
}

pub(super) fn range(lesson: &mut Lesson) -> Result {
    lesson.step("range", "Beyond the range of numbers")?;
    let mut inputs = vec![0.0_f32; 128];
    inputs[0] = 1e-37;
    let coeffs: Vec<f32> = (0..128).map(|l| if l < 64 { 1.0 } else { 4.0 }).collect();
    lesson.say(
        "A tiny input of 1e-37, 64 steps that keep it, 64 steps that make it four times as large. The end is \
         4^64 · 1e-37, an ordinary number, but the product 4^64 on its own is more than f32 can hold. The tree \
         computes it on its own.",
    );
    let exact = 4_f64.powi(64) * f64::from(inputs[0]);
    let by_loop = linrec(&inputs, &coeffs, 0.0)[127];
    let mut elements: Vec<_> =
        inputs.iter().zip(&coeffs).map(|(&state, &coeff)| Transition { coeff, state }).collect();
    tree(&mut elements, Transition::then);
    let by_tree = elements[127].state;
    let pack = |values: &[f32]| values.iter().map(|&v| SignedLog::of(v)).collect::<Vec<_>>();
    let engine = LogSpace::whole();
    let in_logs = engine.sequence(&pack(&inputs), &pack(&coeffs), SignedLog::of(0.0))[127].value();
    let mut table = Table::new(["way", "final state", "relative error"]);
    for (way, y) in [("loop", by_loop), ("tree", by_tree), ("log space", in_logs)] {
        let error = (f64::from(y) - exact).abs() / exact;
        table.row([way.to_owned(), number(y.into()), number(error)]);
    }
    lesson.table("range.csv", Kind::Computed, &table)?;
    let bound = |engine: &LogSpace| {
        let wide = |values: &[f32]| values.iter().map(|&v| v.into()).collect::<Vec<f64>>();
        crate::bound::along(engine, &wide(&inputs), (&wide(&coeffs), &pack(&coeffs)), 0.0)[127]
    };
    let error = (f64::from(in_logs) - exact).abs();
    lesson.check("log space, error / bound", error / bound(&engine), 1.0);

    let steps = 100_000;
    let doublings = vec![SignedLog::positive(2_f32.ln()); steps];
    let nothing = vec![SignedLog::of(0.0_f32); steps];
    let log = engine.sequence(&nothing, &doublings, SignedLog::of(1.0))[steps - 1].log;
    lesson.say(&format!(
        "And {steps} doublings of 1 make a number with {:.0} digits, which no type holds. Its logarithm is an \
         ordinary number: {log} in f32. Likelihoods of long sequences are computed in this way.",
        (f64::from(log) / std::f64::consts::LN_10).floor() + 1.0,
    ));
    Ok(())
}

pub(super) fn bound(lesson: &mut Lesson) -> Result {
    lesson.step("bound", "The error grows with the way")?;
    let seq_len = lesson.size(4096, 65_536);
    let mut rng = StdRng::seed_from_u64(123);
    let x: Vec<f32> = (0..seq_len).map(|_| rng.random_range(0.0..1.0)).collect();
    let c: Vec<f32> = (0..seq_len).map(|_| rng.random_range(0.0..1.0)).collect();
    let wide = |values: &[f32]| values.iter().map(|&v| v.into()).collect::<Vec<f64>>();
    let (wide_x, wide_c) = (wide(&x), wide(&c));
    let exact = linrec(&wide_x, &wide_c, 0.0);
    let pack = |values: &[f32]| values.iter().map(|&v| SignedLog::of(v)).collect::<Vec<_>>();
    let (engine, coeffs) = (LogSpace::whole(), pack(&c));
    let y = engine.sequence(&pack(&x), &coeffs, SignedLog::of(0.0));
    let bounds = bound::along(&engine, &wide_x, (&wide_c, &coeffs), 0.0);
    let looped = linrec(&x, &c, 0.0);

    let relative = |l: usize, y: f32| (f64::from(y) - exact[l]).abs() / exact[l];
    let in_logs: Vec<f64> = (0..seq_len).map(|l| relative(l, y[l].value())).collect();
    let by_loop: Vec<f64> = (0..seq_len).map(|l| relative(l, looped[l])).collect();
    let limits: Vec<f64> = (0..seq_len).map(|l| bounds[l] / exact[l]).collect();
    let way: f64 = wide_c.iter().skip(1).map(|c| c.ln().abs()).sum();
    lesson.say(&format!(
        "Coefficients and inputs in [0, 1), {seq_len} of them, in f32. At the end the logarithms have gone a way of \
         {way:.0}, though no output is larger than {:.1}.",
        exact.iter().fold(0.0_f64, |m, &y| m.max(y)),
    ));
    let every = seq_len / 512;
    let points = |values: &[f64]| -> Vec<(f64, f64)> {
        values.iter().enumerate().step_by(every).map(|(l, &v)| (l as f64 + 1.0, v)).collect()
    };
    let chart = Chart::new("Error along one sequence, gates in [0, 1), f32")
        .axes("position l", "relative error")
        .log_x(10.0)
        .log_y(10.0)
        .dots("loop", points(&by_loop))
        .color(plot::kernels::color("loop"))
        .dots("log space", points(&in_logs))
        .line("bound of log space", points(&limits));
    lesson.figure(
        "bound.svg",
        "the error and its bound",
        Kind::Computed,
        &plot::svg(&[&chart])?,
    )?;
    let largest = |values: &[f64]| values.iter().fold(0.0_f64, |m, &v| m.max(v));
    let (of_logs, of_loop) = (largest(&in_logs), largest(&by_loop));
    lesson.say(&format!(
        "The largest relative error is {} for log space and {} for the loop: {:.0} times.",
        number(of_logs),
        number(of_loop),
        of_logs / of_loop,
    ));
    let share = in_logs.iter().zip(&limits).map(|(error, limit)| error / limit);
    lesson.check("log space, largest error / bound", share.fold(0.0, f64::max), 1.0);
    lesson.value("way", format!("{way:.0}"), Kind::Computed);
    lesson.value("logs_error", number(of_logs), Kind::Computed);
    lesson.value("logs_over_loop", format!("{:.0}", of_logs / of_loop), Kind::Computed);
    Ok(())
}

// The precision atlas.

pub(super) fn atlas(lesson: &mut Lesson) -> Result {
    lesson.step("atlas", "The precision atlas")?;
    let grid = Grid::new(lesson.size(1 << 16, 1 << 18), 2);
    let bar = progress(18, "computing maps");
    let f32_map = |method: &Method, title: &str| {
        bar.inc(1);
        map::<f32>(&grid, method, title)
    };
    let whole = Method::LogSpace(LogSpace::whole());
    let in_order = Method::LogSpace(LogSpace::whole().with_order(Order::InOrder));
    let restarting = Method::LogSpace(LogSpace::restarting(8.0));
    let maps = [
        f32_map(&Method::Loop, "loop")?,
        f32_map(&Method::TwoThreads, "two threads")?,
        f32_map(&Method::Tree, "tree")?,
        f32_map(&in_order, "log space, in order")?,
        f32_map(&whole, "log space, tree")?,
        f32_map(&restarting, "log space, reach 8")?,
    ];
    let methods = [
        ("loop", Method::Loop),
        ("two threads", Method::TwoThreads),
        ("tree", Method::Tree),
        ("log space", whole),
    ];
    let mut in_types = Vec::new();
    for (name, method) in &methods {
        let double = map::<f64>(&grid, method, &format!("{name}, f64"))?;
        bar.inc(1);
        let [bf16, f16] = sixteen_bits(&grid, method, name)?;
        bar.inc(2);
        in_types.push([double, bf16, f16]);
    }
    bar.finish_and_clear();
    let [double, bf16, f16] = &in_types[3];

    // One scale and one set of contours for both figures.
    let legend = Legend { powers: (-12, 0), contours: [-6, -4, -1] };
    let svg = draw(&grid, &maps.each_ref(), legend)?;
    lesson.figure("methods.svg", "errors in f32", Kind::Computed, &svg)?;
    let single = Map { title: "log space, f32".to_owned(), ..maps[4].clone() };
    let svg = draw(&grid, &[double, &single, bf16, f16], legend)?;
    lesson.figure("types.svg", "errors of log space", Kind::Computed, &svg)?;

    lesson.say(
        "The largest error in all of a map, wherever the outputs are in range, for each method and element type. In \
         16 bits the coefficients are positive and given as logarithms.",
    );
    let mut table = Table::new(["method", "f64", "f32", "bfloat16", "float16"]);
    let mut worst = 0.0_f64;
    // The maps of the four methods, out of six maps in f32.
    for (((name, _), [double, bf16, f16]), single) in
        methods.iter().zip(&in_types).zip([0, 1, 2, 4])
    {
        let row = [double, &maps[single], bf16, f16];
        worst = row.iter().fold(worst, |m, map| m.max(map.largest_share()));
        let cells = row.map(|map| match map.largest_error() {
            error if error.is_infinite() => "fails".to_owned(),
            error => number(error),
        });
        table.row([(*name).to_owned()].into_iter().chain(cells));
    }
    lesson.table("everywhere.csv", Kind::Computed, &table)?;
    lesson.check("all methods and types, largest error / bound", worst, 1.0);

    let all = || maps.iter().chain([double, bf16, f16]);
    lesson.step("how-far", "How long may a sequence be?")?;
    lesson.say(
        "Two lines of the maps as numbers: the longest sequence in which every output has an error below 1 %, as \
         measured and as promised by the bound. The coefficients are about 0.9 (mean of ln c: -0.1), and about 0.4 \
         (mean -1, as for gates in [0, 1)).",
    );
    let header = ["map", "0.9: measured", "promised", "0.4: measured", "promised"];
    let mut table = Table::new(header);
    for map in all() {
        let cells = [-0.1, -1.0]
            .into_iter()
            .flat_map(|rate| [&map.errors, &map.bounds].map(|values| longest(&grid, values, rate)));
        let named = ["f64", "float16"].iter().any(|element| map.title.ends_with(element));
        let title = format!("{}{}", map.title, if named { "" } else { ", f32" });
        table.row([title].into_iter().chain(cells));
    }
    lesson.table("longest.csv", Kind::Computed, &table)?;
    for map in all() {
        lesson.check(&format!("{}: largest error / bound", map.title), map.largest_share(), 1.0);
    }
    for (key, storage) in [("f16", F16), ("bf16", BF16)] {
        for seq_len in [16, 4096] {
            let way = longest_way(storage, seq_len, 0.05);
            let way = way.map_or("none".to_owned(), |way| format!("{way:.1}"));
            lesson.value(&format!("{key}_way_{seq_len}"), way, Kind::Computed);
        }
    }
    // Half of the distance between 30 and the next bfloat16.
    let thirty = half::bf16::from_f32(30.0);
    let next = half::bf16::from_bits(thirty.to_bits() + 1);
    lesson.value("bf16_at_30", (next.to_f32() - thirty.to_f32()) / 2.0, Kind::Computed);
    lesson.value("atlas_cells", grid.rates.len() * grid.lengths.len(), Kind::Computed);
    lesson.value("atlas_longest", grid.lengths.last().copied().unwrap_or(0), Kind::Computed);
    Ok(())
}

/// Returns, in words, the longest length up to which a row of a map stays below 1 %.
fn longest(grid: &Grid, values: &Array2<f64>, rate: f64) -> String {
    let near = |r: &f64| (r / rate - 1.0).abs() < 1e-6;
    let Some(row) = grid.rates.iter().position(near) else { return "–".to_owned() };
    let within = values.row(row).iter().take_while(|&&value| value <= 0.01).count();
    match within {
        0 => format!("< {}", grid.lengths[0]),
        n if n == grid.lengths.len() => format!("≥ {}", grid.lengths[n - 1]),
        n => grid.lengths[n - 1].to_string(),
    }
}
