//! State space models whose coefficients do not depend on the data.

use linrec::contract::golden::array_distance;
use linrec::lesson::{self, Kind, Lesson, plot, plot::Chart};
use ndarray::{Array1, Array2, array};
use num_complex::Complex;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand_distr::{Distribution, StandardNormal};

use super::Gallery;
use crate::models::lru::{Lru, ring};
use crate::models::s4d::S4d;
use crate::models::s5::S5;

fn normal(rng: &mut StdRng) -> f64 {
    StandardNormal.sample(rng)
}

fn normal_complex(rng: &mut StdRng) -> Complex<f64> {
    Complex::new(normal(rng), normal(rng))
}

/// The states that S4D-Lin begins with, and a noisy signal.
pub fn s4d(lesson: &mut Lesson, gallery: &mut Gallery) -> lesson::Result {
    lesson.step("s4d", "S4D")?;
    let step = 0.01;
    lesson.say(&format!(
        "S4D-Lin begins with A_n = −1/2 + iπn and a step of, here, Δ = {step}: a memory of some \
         2/Δ = {:.0} positions, in which state n swings n/2 times in 1/Δ positions.",
        2.0 / step,
    ));
    let few = S4d::linear(Array1::from_elem(4, Complex::from(1.0)), step);
    let mut impulse = Array1::zeros(500);
    impulse[0] = 1.0;
    let states = few.problem(impulse.view())?.solve()?;
    let mut chart = Chart::new("What a single 1 leaves in the states")
        .axes("position l", "real part of the state, over Δ");
    for (n, row) in states.rows().into_iter().enumerate() {
        let points = row.iter().enumerate().step_by(2).map(|(l, s)| (l as f64, s.re / step));
        chart = chart.line(&format!("n = {n}"), points.collect::<Vec<_>>());
    }
    lesson.figure("s4d.svg", "States of S4D", Kind::Computed, &plot::svg(&[&chart])?)?;

    let mut rng = StdRng::seed_from_u64(132);
    let readout = Array1::from_shape_simple_fn(32, || normal_complex(&mut rng));
    let model = S4d::linear(readout, step);
    let signal = Array1::from_shape_simple_fn(1000, || normal(&mut rng));
    let solved = gallery.complex(&model.problem(signal.view())?)?;
    let outputs = model.read(solved.states.view());
    let error = array_distance(&outputs, &model.convolution(signal.view())?);
    gallery.enter(lesson, ("S4D", "its convolution"), &solved, error);
    Ok(())
}

/// Samples that come when they like.
pub fn s5(lesson: &mut Lesson, gallery: &mut Gallery) -> lesson::Result {
    lesson.step("s5", "S5, and samples that come when they like")?;
    lesson.say(
        "S5 has one set of states for all channels. Its step may differ from sample to sample, and then so \
         do its coefficients. Here an oscillator hears a signal that changes at 60 irregular times; the line \
         is the same with 4096 steps of equal length.",
    );
    let mut rng = StdRng::seed_from_u64(133);
    let eigenvalue = array![Complex::new(-0.2, 1.0)];
    let model = S5 {
        eigenvalues: eigenvalue,
        b: array![[Complex::from(1.0)]],
        c: array![[Complex::from(0.5)]],
    };
    let (samples, fine, last) = (60, 4096_usize, 40.0);
    // Times on the fine grid, so that both hear the same.
    let mut ticks: Vec<usize> =
        (0..samples - 1).map(|_| rand::RngExt::random_range(&mut rng, 1..fine)).collect();
    ticks.push(fine);
    ticks.sort_unstable();
    ticks.dedup();
    let tick = last / fine as f64;
    let began = |l: usize| if l == 0 { 0 } else { ticks[l - 1] };
    let steps = Array1::from_shape_fn(ticks.len(), |l| (ticks[l] - began(l)) as f64 * tick);
    let signal = Array2::from_shape_simple_fn((1, ticks.len()), || normal(&mut rng));
    let held = Array2::from_shape_fn((1, fine), |(_, l)| {
        signal[[0, ticks.partition_point(|&end| end <= l)]]
    });
    let at_samples = model.read(model.problem(signal.view(), steps.view())?.solve()?.view());
    let even = Array1::from_elem(fine, tick);
    let between = model.read(model.problem(held.view(), even.view())?.solve()?.view());
    let line = between.iter().enumerate().map(|(l, &y)| ((l + 1) as f64 * tick, y)).step_by(5);
    let dots = at_samples.iter().zip(&ticks).map(|(&y, &end)| (end as f64 * tick, y));
    let chart = Chart::new("An oscillator that is heard at irregular times")
        .axes("time", "output y")
        .line("4096 equal steps", line)
        .dots("60 steps of their own length", dots);
    lesson.figure("s5.svg", "Irregular steps", Kind::Computed, &plot::svg(&[&chart])?)?;
    let expected = Array2::from_shape_fn(at_samples.dim(), |(_, l)| between[[0, ticks[l] - 1]]);
    lesson.check(
        "few steps and many at the same times, relative",
        array_distance(&at_samples, &expected),
        super::LIMIT,
    );

    let (states, channels, seq_len) = (16, 8, 400);
    let wide = S5 {
        eigenvalues: Array1::from_shape_fn(states, |p| Complex::new(-0.5, p as f64)),
        b: Array2::from_shape_simple_fn((states, channels), || normal_complex(&mut rng)),
        c: Array2::from_shape_simple_fn((channels, states), || normal_complex(&mut rng)),
    };
    let signals = Array2::from_shape_simple_fn((channels, seq_len), || normal(&mut rng));
    let steps =
        Array1::from_shape_simple_fn(seq_len, || rand::RngExt::random_range(&mut rng, 0.001..0.2));
    let solved = gallery.complex(&wide.problem(signals.view(), steps.view())?)?;
    let direct = wide.direct(signals.view(), steps.view())?;
    let error = array_distance(&wide.read(solved.states.view()), &wide.read(direct.view()));
    gallery.enter(lesson, ("S5", "solution of its equation"), &solved, error);
    Ok(())
}

/// Why the inputs are scaled.
pub fn lru(lesson: &mut Lesson, gallery: &mut Gallery) -> lesson::Result {
    lesson.step("lru", "LRU, and the size of its states")?;
    let seq_len = 4000;
    lesson.say(
        "Three states over noise, with coefficients that differ in modulus. Without a scale, the closer to \
         the unit circle, the larger the state. With γ = √(1 − |λ|²) they all end near 1.",
    );
    let moduli = [0.9_f64, 0.99, 0.999];
    let model = Lru {
        nu: moduli.iter().map(|modulus| (-modulus.ln()).ln()).collect(),
        theta: Array1::from_elem(3, 0.3_f64.ln()),
        b: Array2::from_elem((3, 1), Complex::from(1.0)),
    };
    let mut impulse = Array2::zeros((1, seq_len));
    impulse[[0, 0]] = 1.0;
    // Noise adds the squares of what each single input leaves.
    let states = model.problem(impulse.view())?.solve()?;
    let scales = model.scales();
    let mut chart = Chart::new("Mean square of a state over noise")
        .axes("position l", "mean of |y|²")
        .log_x(10.0)
        .log_y(10.0);
    let mut worst: f64 = 0.0;
    for (n, modulus) in moduli.iter().enumerate() {
        let mut sum = 0.0;
        let squares: Vec<f64> = states
            .row(n)
            .iter()
            .map(|y| {
                sum += y.norm_sqr();
                sum
            })
            .collect();
        for (l, square) in squares.iter().enumerate() {
            let expected = 1.0 - modulus.powf(2.0 * (l + 1) as f64);
            worst = worst.max((square - expected).abs());
        }
        let at = |l: usize, scale: f64| ((l + 1) as f64, squares[l] / scale);
        let places: Vec<usize> =
            (0..200).map(|i| (seq_len as f64).powf(f64::from(i) / 199.0) as usize - 1).collect();
        let scale = scales[n] * scales[n];
        chart = chart
            .line(&format!("|λ| = {modulus}"), places.iter().map(|&l| at(l, 1.0)))
            .dashed(if n == 0 { "without γ" } else { "" }, places.iter().map(|&l| at(l, scale)));
    }
    lesson.figure("lru.svg", "The size of states", Kind::Computed, &plot::svg(&[&chart])?)?;
    lesson.check("mean square and 1 − |λ|^(2(l+1)), difference", worst, super::LIMIT);

    let mut rng = StdRng::seed_from_u64(134);
    let (nu, theta) = ring(32, (0.9, 0.999), std::f64::consts::PI);
    let b = Array2::from_shape_simple_fn((32, 8), || normal_complex(&mut rng) / 4.0);
    let model = Lru { nu, theta, b };
    let signals = Array2::from_shape_simple_fn((8, 600), || normal(&mut rng));
    let solved = gallery.complex(&model.problem(signals.view())?)?;
    let error = array_distance(&solved.states, &model.direct(signals.view())?);
    gallery.enter(lesson, ("LRU", "its sum of powers"), &solved, error);
    Ok(())
}
