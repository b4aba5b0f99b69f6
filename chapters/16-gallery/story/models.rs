//! The steps that show one model each, solved by the library and by a kernel.
//!
//! Every function draws or chooses the inputs of its model, solves the problem through [`Gallery`],
//! compares the output with the model's own formula, and draws one figure. The checks and the table
//! of errors are the gallery's; `tests/suite/models.rs` repeats the comparisons at the lengths
//! where things go wrong.

use lesson::plot::{self, COLORS, Chart, Dot};
use lesson::{Kind, Lesson, Table};
use linrec::contract::golden::array_distance;
use linrec::cpu::Cpu;
use ndarray::{Array1, Array2, Axis, array, s};
use num_complex::Complex;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};

use super::{Gallery, LIMIT};
use crate::models::gate_loop::Head;
use crate::models::iir::SecondOrder;
use crate::models::interest::{account, payment, remaining};
use crate::models::lru::{Lru, ring};
use crate::models::min_rnn::{min_gru, min_gru_backward, min_lstm, min_lstm_direct};
use crate::models::returns::returns as returns_of;
use crate::models::returns::{direct, episodes, horizon};
use crate::models::rg_lru::{RgLru, decay_from};
use crate::models::rwkv::Wkv;
use crate::models::s4d::S4d;
use crate::models::s5::S5;
use crate::models::slstm::Gates;

// Models in which the next step depends on the data: money and rewards.

pub(super) fn interest(lesson: &mut Lesson, gallery: &mut Gallery) -> lesson::Result {
    lesson.step("interest", "Compound interest")?;
    let (loan, months) = (-200_000.0, 360);
    lesson.say(
        "A loan of 200,000 is an account that begins at −200,000. Every month the debt grows by its \
         interest, and a payment comes in; after 30 years nothing is left.",
    );
    let mut table = Table::new(["rate a year", "payment a month", "paid in all"]);
    let mut chart = Chart::new("What is left of a loan").axes("years", "debt, in thousands");
    let mut worst: f64 = 0.0;
    let mut entered = None;
    for percent in [2.0, 4.0, 8.0] {
        let rate = percent / 1200.0;
        let pay = payment(-loan, rate, months);
        let rates = Array1::from_elem(months, rate);
        let problem = account(loan, rates.view(), Array1::from_elem(months, pay).view());
        let solved = gallery.real(&problem)?;
        let formula = -remaining(-loan, rate, pay, months).insert_axis(Axis(0));
        worst = worst.max(array_distance(&solved.states, &formula));
        let points = solved.states.iter().enumerate();
        let points = points.map(|(l, y)| ((l + 1) as f64 / 12.0, -y / 1000.0));
        chart = chart.line(&format!("{percent} %"), points.step_by(3));
        table.row([
            format!("{percent} %"),
            format!("{pay:.2}"),
            format!("{:.0}", pay * months as f64),
        ]);
        entered = Some(solved);
    }
    lesson.table("loans.csv", Kind::Computed, &table)?;
    lesson.figure("loans.svg", "Three loans", Kind::Computed, &plot::svg(&[&chart])?)?;
    if let Some(solved) = entered {
        gallery.enter(lesson, ("compound interest", "annuity formula"), &solved, worst);
    }
    Ok(())
}

pub(super) fn returns(lesson: &mut Lesson, gallery: &mut Gallery) -> lesson::Result {
    lesson.step("returns", "Discounted returns")?;
    let (steps, discounts) = (120, [0.8, 0.95]);
    lesson.say(&format!(
        "{steps} steps of an agent that is rewarded now and then; an episode ends after every 50th. The \
         recurrence walks from the last step to the first, and a coefficient of zero keeps an episode \
         from hearing of the next.",
    ));
    let (rewards, ends) = episodes(steps, 20, 50);
    let (rewards, ends) = (rewards.insert_axis(Axis(0)), ends.insert_axis(Axis(0)));
    let beyond = array![0.5];
    let rewarded = rewards.iter().enumerate().filter(|(_, r)| **r > 0.0);
    let mut chart = Chart::new("Rewards, and what they are worth before").axes("step l", "return");
    let mut worst: f64 = 0.0;
    let mut entered = None;
    for discount in discounts {
        let problem = returns_of(rewards.view(), ends.view(), beyond.view(), discount)?;
        let solved = gallery.real(&problem)?;
        let formula = direct(rewards.view(), ends.view(), beyond.view(), discount);
        worst = worst.max(array_distance(&solved.states, &formula));
        let points = solved.states.slice(s![0, ..]).to_vec().into_iter().enumerate();
        chart = chart.line(&format!("γ = {discount}"), points.map(|(l, value)| (l as f64, value)));
        entered = Some(solved);
    }
    // Drawn last, so that no line hides a reward.
    let rewarded = rewarded.map(|(l, &r)| (l as f64, r));
    chart = chart.dots("reward", rewarded).color(plot::TEXT).dot(Dot::Ring);
    lesson.figure("returns.svg", "Discounted returns", Kind::Computed, &plot::svg(&[&chart])?)?;
    lesson.say(&format!(
        "With γ = {} a reward of 1 in every step would be worth {:.0}, with γ = {} {:.0}: that is how far ahead \
         the agent looks.",
        discounts[0],
        horizon(discounts[0]),
        discounts[1],
        horizon(discounts[1]),
    ));
    if let Some(solved) = entered {
        gallery.enter(lesson, ("discounted returns", "double sum"), &solved, worst);
    }
    Ok(())
}

pub(super) fn filter(lesson: &mut Lesson, gallery: &mut Gallery) -> lesson::Result {
    lesson.step("filter", "A filter that rings")?;
    let filter = SecondOrder::swinging(25.0, 0.96);
    let [pole, _] = filter.poles();
    lesson.say(&format!(
        "y_l = {:.4} y_(l−1) − {:.4} y_(l−2) + u_l looks back twice. Its poles are {:.4} ± {:.4}i: two \
         recurrences that look back once.",
        filter.a1, -filter.a2, pole.re, pole.im,
    ));
    let len = 160;
    let mut impulse = Array1::zeros(len);
    impulse[0] = 1.0;
    let response = filter.filter(impulse.view())?;
    let formula = filter.impulse_response(len);
    let points = |values: &Array1<f64>| -> Vec<(f64, f64)> {
        values.iter().enumerate().map(|(l, &y)| (l as f64, y)).collect()
    };
    let chart = Chart::new("The answer to a single 1")
        .axes("position l", "output y")
        .line("two recurrences", points(&response))
        .dots("r^l sin((l + 1)θ) / sin θ", points(&formula).into_iter().step_by(4));
    lesson.figure("filter.svg", "An impulse response", Kind::Computed, &plot::svg(&[&chart])?)?;
    lesson.check(
        "impulse response and formula with sines, relative",
        array_distance(&response, &formula),
        LIMIT,
    );

    let mut rng = StdRng::seed_from_u64(131);
    let noise = Array1::from_shape_simple_fn(2000, || StandardNormal.sample(&mut rng));
    let solved = gallery.complex(&filter.problem(noise.view()))?;
    let outputs = filter.read(solved.states.view())?;
    let error = array_distance(&outputs, &filter.direct(noise.view()));
    gallery.enter(lesson, ("filter", "loop that looks back twice"), &solved, error);
    Ok(())
}

/// State space models whose coefficients do not depend on the data.
fn standard_normal(rng: &mut StdRng) -> f64 {
    StandardNormal.sample(rng)
}

fn normal_complex(rng: &mut StdRng) -> Complex<f64> {
    Complex::new(standard_normal(rng), standard_normal(rng))
}

pub(super) fn s4d(lesson: &mut Lesson, gallery: &mut Gallery) -> lesson::Result {
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
    let signal = Array1::from_shape_simple_fn(1000, || standard_normal(&mut rng));
    let solved = gallery.complex(&model.problem(signal.view())?)?;
    let outputs = model.read(solved.states.view());
    let error = array_distance(&outputs, &model.convolution(signal.view())?);
    gallery.enter(lesson, ("S4D", "its convolution"), &solved, error);
    Ok(())
}

pub(super) fn s5(lesson: &mut Lesson, gallery: &mut Gallery) -> lesson::Result {
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
    // Times on the fine grid, so that both receive the same signal.
    let mut ticks: Vec<usize> =
        (0..samples - 1).map(|_| rand::RngExt::random_range(&mut rng, 1..fine)).collect();
    ticks.push(fine);
    ticks.sort_unstable();
    ticks.dedup();
    let tick = last / fine as f64;
    let began = |l: usize| if l == 0 { 0 } else { ticks[l - 1] };
    let steps = Array1::from_shape_fn(ticks.len(), |l| (ticks[l] - began(l)) as f64 * tick);
    let signal = Array2::from_shape_simple_fn((1, ticks.len()), || standard_normal(&mut rng));
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
        LIMIT,
    );

    let (states, channels, seq_len) = (16, 8, 400);
    let wide = S5 {
        eigenvalues: Array1::from_shape_fn(states, |p| Complex::new(-0.5, p as f64)),
        b: Array2::from_shape_simple_fn((states, channels), || normal_complex(&mut rng)),
        c: Array2::from_shape_simple_fn((channels, states), || normal_complex(&mut rng)),
    };
    let signals = Array2::from_shape_simple_fn((channels, seq_len), || standard_normal(&mut rng));
    let steps =
        Array1::from_shape_simple_fn(seq_len, || rand::RngExt::random_range(&mut rng, 0.001..0.2));
    let solved = gallery.complex(&wide.problem(signals.view(), steps.view())?)?;
    let direct = wide.direct(signals.view(), steps.view())?;
    let error = array_distance(&wide.read(solved.states.view()), &wide.read(direct.view()));
    gallery.enter(lesson, ("S5", "solution of its equation"), &solved, error);
    Ok(())
}

pub(super) fn lru(lesson: &mut Lesson, gallery: &mut Gallery) -> lesson::Result {
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
    // The mean square over noise is the sum of the squares of single inputs' remainders.
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
            .color(COLORS[n])
            .dashed(&format!("|λ| = {modulus}, without γ"), places.iter().map(|&l| at(l, scale)))
            .color(COLORS[n]);
    }
    lesson.figure("lru.svg", "The size of states", Kind::Computed, &plot::svg(&[&chart])?)?;
    lesson.check("mean square and 1 − |λ|^(2(l+1)), difference", worst, LIMIT);

    let mut rng = StdRng::seed_from_u64(134);
    let (nu, theta) = ring(32, (0.9, 0.999), std::f64::consts::PI);
    let b = Array2::from_shape_simple_fn((32, 8), || normal_complex(&mut rng) / 4.0);
    let model = Lru { nu, theta, b };
    let signals = Array2::from_shape_simple_fn((8, 600), || standard_normal(&mut rng));
    let solved = gallery.complex(&model.problem(signals.view())?)?;
    let error = array_distance(&solved.states, &model.direct(signals.view())?);
    gallery.enter(lesson, ("LRU", "its sum of powers"), &solved, error);
    Ok(())
}

/// Models whose coefficients are made from the data.
fn normal(rng: &mut StdRng, shape: (usize, usize), scale: f64) -> Array2<f64> {
    Array2::from_shape_simple_fn(shape, || {
        let number: f64 = StandardNormal.sample(rng);
        scale * number
    })
}

fn line<'a>(values: impl IntoIterator<Item = &'a f64>) -> Vec<(f64, f64)> {
    values.into_iter().enumerate().map(|(l, &y)| (l as f64, y)).collect()
}

pub(super) fn rg_lru(lesson: &mut Lesson, gallery: &mut Gallery) -> lesson::Result {
    lesson.step("rg-lru", "RG-LRU, the recurrence of Hawk")?;
    lesson.say(
        "One channel over noise, whose decay is 0.9 with the recurrence gate open. The gate is closed from \
         position 100 to 199: the coefficient goes to one, the scale of the inputs to zero, and the state \
         stays as it is.",
    );
    let mut rng = StdRng::seed_from_u64(135);
    let noise = normal(&mut rng, (1, 300), 1.0);
    let closed = |l: usize| (100..200).contains(&l);
    let gate = Array2::from_shape_fn((1, 300), |(_, l)| if closed(l) { -12.0 } else { 12.0 });
    let open = Array2::from_elem((1, 300), 12.0);
    let model = RgLru { decay: array![decay_from(0.9)] };
    let problem = model.problem(noise.view(), gate.view(), open.view())?;
    let states = problem.solve()?;
    let coeffs = problem.coeffs.mapv(f64::exp);
    let chart = Chart::new("A gate that closes for 100 positions")
        .axes("position l", "")
        .line("state y", line(&states))
        .line("coefficient c", line(&coeffs));
    lesson.figure("rg-lru.svg", "RG-LRU", Kind::Computed, &plot::svg(&[&chart])?)?;

    let shape = (16, 1000);
    let decay = Array1::from_shape_fn(16, |n| decay_from(0.9 + 0.0066 * n as f64));
    let model = RgLru { decay };
    let [signals, recurrence, input] = std::array::from_fn(|_| normal(&mut rng, shape, 1.5));
    let problem = model.problem(signals.view(), recurrence.view(), input.view())?;
    let solved = gallery.real(&problem)?;
    let direct = model.direct(signals.view(), recurrence.view(), input.view())?;
    let error = array_distance(&solved.states, &direct);
    gallery.enter(lesson, ("RG-LRU", "the paper's steps"), &solved, error);
    Ok(())
}

pub(super) fn slstm(lesson: &mut Lesson, gallery: &mut Gallery) -> lesson::Result {
    lesson.step("xlstm", "The scalar memory of xLSTM")?;
    let mut rng = StdRng::seed_from_u64(136);
    let seq_len = 200;
    let values = normal(&mut rng, (1, seq_len), 1.0);
    let loud = |l: usize| match l {
        60 => 5.0,
        140 => 1000.0,
        _ => 0.0,
    };
    let input = Array2::from_shape_fn((1, seq_len), |(_, l)| loud(l));
    let forget = Array2::from_elem((1, seq_len), 4.0);
    let gates = Gates { values: values.view(), input: input.view(), forget: forget.view() };
    lesson.say(
        "The gates of the input are e^ĩ. At position 60 ĩ is 5, so that its value counts 148 times; at \
         position 140 it is 1000, a number that no float holds.",
    );
    let outputs = gates.read(gates.problem()?.solve()?.view());
    let plain = gates.read(gates.unstabilised()?.solve()?.view());
    let marked = [60, 140].map(|l| (l as f64, values[[0, l]]));
    let others = line(&values).into_iter().filter(|(l, _)| *l != 60.0 && *l != 140.0);
    let chart = Chart::new("An average in which some values count more")
        .axes("position l", "")
        .line("memory / normaliser", line(&outputs))
        .dots("values with a large gate", marked)
        .dots("other values", others);
    lesson.figure("xlstm.svg", "Exponential gates", Kind::Computed, &plot::svg(&[&chart])?)?;
    let lost = plain.iter().filter(|y| !y.is_finite()).count();
    lesson.say(&format!(
        "Without the running maximum taken out, {lost} of {seq_len} outputs are not a number; with it, {}.",
        outputs.iter().filter(|y| !y.is_finite()).count(),
    ));
    lesson.value("xlstm_lost", lost, Kind::Computed);

    let shape = (8, 500);
    let [values, input, forget] =
        [(1.0, 0.0), (20.0, 0.0), (2.0, 3.0)].map(|(s, m)| normal(&mut rng, shape, s) + m);
    let gates = Gates { values: values.view(), input: input.view(), forget: forget.view() };
    let solved = gallery.real(&gates.problem()?)?;
    let error = array_distance(&gates.read(solved.states.view()), &gates.direct());
    gallery.enter(lesson, ("xLSTM's scalar memory", "a weighted average"), &solved, error);
    Ok(())
}

pub(super) fn min_rnn(lesson: &mut Lesson, gallery: &mut Gallery) -> lesson::Result {
    lesson.step("min", "minGRU and minLSTM")?;
    let golden = ch15_log_space::golden::min_gru()?;
    let (rows, seq_len) = golden.k.dim();
    lesson.say(&format!(
        "The witness for minGRU is PyTorch: {rows} rows of {seq_len} positions with their gradients, which \
         its autograd found and we get from the library's backward pass and the chain rule.",
    ));
    let problem = min_gru(golden.k.view(), golden.h_tilde.view(), golden.h0.view())?;
    let solved = gallery.real(&problem)?;
    let error = array_distance(&solved.states, &golden.h);
    gallery.enter(lesson, ("minGRU", "golden data"), &solved, error);
    let (d_gate, d_candidate) = min_gru_backward(
        &Cpu::new(),
        (golden.k.view(), golden.h_tilde.view()),
        golden.h0.view(),
        golden.d_h.view(),
    )?;
    let error =
        array_distance(&d_gate, &golden.d_k).max(array_distance(&d_candidate, &golden.d_h_tilde));
    lesson.check("minGRU's gradients and golden data, relative", error, LIMIT);

    let candidates = golden.h_tilde.row(0).mapv(crate::models::min_rnn::positive);
    let chart = Chart::new("minGRU: the state walks towards the candidates")
        .axes("position l", "")
        .line("state h", line(solved.states.row(0)))
        .dots("candidate", line(&candidates))
        .dashed("gate z", line(&golden.k.row(0).mapv(crate::models::sigmoid)));
    lesson.figure("min-gru.svg", "minGRU", Kind::Computed, &plot::svg(&[&chart])?)?;

    let mut rng = StdRng::seed_from_u64(137);
    let [forget, input, candidate] = std::array::from_fn(|_| normal(&mut rng, (8, 1000), 2.0));
    let problem = min_lstm(forget.view(), input.view(), candidate.view())?;
    let solved = gallery.real(&problem)?;
    let direct = min_lstm_direct(forget.view(), input.view(), candidate.view());
    let error = array_distance(&solved.states, &direct);
    gallery.enter(lesson, ("minLSTM", "f / (f + i) written as one sigmoid"), &solved, error);
    Ok(())
}

pub(super) fn gate_loop(lesson: &mut Lesson, gallery: &mut Gallery) -> lesson::Result {
    lesson.step("gate-loop", "GateLoop")?;
    let mut rng = StdRng::seed_from_u64(138);
    let (num_keys, num_values, seq_len) = (8, 6, 200);
    let [queries, keys] = std::array::from_fn(|_| normal(&mut rng, (num_keys, seq_len), 0.5));
    let values = normal(&mut rng, (num_values, seq_len), 1.0);
    let modulus = normal(&mut rng, (num_keys, seq_len), 1.0) + 3.0;
    let angle = normal(&mut rng, (num_keys, seq_len), 0.3);
    let head = Head {
        queries: queries.view(),
        keys: keys.view(),
        values: values.view(),
        modulus: modulus.view(),
        angle: angle.view(),
    };
    lesson.say(&format!(
        "{num_keys} keys by {num_values} values are {} rows. The same outputs are those of an attention whose \
         weights contain the products of the gates.",
        num_keys * num_values,
    ));
    let problem = head.problem()?;
    let solved = gallery.complex(&problem)?;
    let error = array_distance(&head.read(solved.states.view()), &head.attention());
    // The share of each position that remains at the last one, for two keys.
    let mut chart = Chart::new("What the last position still has of an earlier one")
        .axes("position k", "real part of the product of gates");
    let from = seq_len - 60;
    for key in [0, 1] {
        let gates = problem.coeffs.row(key * num_values);
        let mut product = num_complex::Complex::from(1.0);
        let mut left = Vec::new();
        for k in (from..seq_len).rev() {
            left.push((k as f64, product.re));
            product *= gates[k];
        }
        left.reverse();
        chart = chart.line(&format!("key {key}"), left);
    }
    lesson.figure("gate-loop.svg", "Products of gates", Kind::Computed, &plot::svg(&[&chart])?)?;
    gallery.enter(lesson, ("GateLoop", "attention"), &solved, error);
    Ok(())
}

pub(super) fn rwkv(lesson: &mut Lesson, gallery: &mut Gallery) -> lesson::Result {
    lesson.step("rwkv", "RWKV-4")?;
    let shown = Wkv { decay: array![0.05, 0.3], bonus: array![0.7, 0.7] };
    let no_keys = Array1::zeros(40);
    let mut chart = Chart::new("How much each position counts at the last")
        .axes("position k", "share of the sum");
    for (channel, decay) in shown.decay.iter().enumerate() {
        let weights = shown.weights(channel, no_keys.view(), 39);
        let shares = &weights / weights.sum();
        chart = chart.measured(&format!("w = {decay}"), line(&shares));
    }
    lesson.say("With equal keys: e^(−w) from step to step, and a bonus of e^0.7 for the newest.");
    lesson.figure("rwkv.svg", "Weights of RWKV-4", Kind::Computed, &plot::svg(&[&chart])?)?;

    let mut rng = StdRng::seed_from_u64(139);
    let model = Wkv {
        decay: Array1::from_shape_simple_fn(16, || rng.random_range(0.01..1.0)),
        bonus: Array1::from_shape_simple_fn(16, || rng.random_range(-1.0..1.0)),
    };
    let (keys, values) = (normal(&mut rng, (16, 500), 1.0), normal(&mut rng, (16, 500), 1.0));
    let solved = gallery.real(&model.problem(keys.view(), values.view())?)?;
    let got = model.read(solved.states.view(), keys.view(), values.view());
    let error = array_distance(&got, &model.direct(keys.view(), values.view()));
    gallery.enter(lesson, ("RWKV-4", "its weighted average"), &solved, error);
    Ok(())
}
