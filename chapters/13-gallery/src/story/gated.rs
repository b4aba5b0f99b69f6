//! Models whose coefficients are made from the data.

use linrec::contract::golden::array_distance;
use linrec::cpu::Cpu;
use linrec::lesson::{self, Kind, Lesson, plot, plot::Chart};
use ndarray::{Array1, Array2, array};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};

use super::Gallery;
use crate::models::gate_loop::Head;
use crate::models::min_rnn::{min_gru, min_gru_backward, min_lstm, min_lstm_direct};
use crate::models::rg_lru::{RgLru, decay_from};
use crate::models::rwkv::Wkv;
use crate::models::slstm::Gates;

fn normal(rng: &mut StdRng, shape: (usize, usize), scale: f64) -> Array2<f64> {
    Array2::from_shape_simple_fn(shape, || {
        let number: f64 = StandardNormal.sample(rng);
        scale * number
    })
}

fn line<'a>(values: impl IntoIterator<Item = &'a f64>) -> Vec<(f64, f64)> {
    values.into_iter().enumerate().map(|(l, &y)| (l as f64, y)).collect()
}

/// A state that holds while its gate is closed.
pub fn rg_lru(lesson: &mut Lesson, gallery: &mut Gallery) -> lesson::Result {
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

/// A gate that says "forget everything before".
pub fn slstm(lesson: &mut Lesson, gallery: &mut Gallery) -> lesson::Result {
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

/// Other people's numbers, with gradients.
pub fn min_rnn(lesson: &mut Lesson, gallery: &mut Gallery) -> lesson::Result {
    lesson.step("min", "minGRU and minLSTM")?;
    let golden = ch12_log_space::golden::min_gru()?;
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
    lesson.check("minGRU's gradients and golden data, relative", error, super::LIMIT);

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
    gallery.enter(lesson, ("minLSTM", "steps with one sigmoid"), &solved, error);
    Ok(())
}

/// A matrix of states, and attention.
pub fn gate_loop(lesson: &mut Lesson, gallery: &mut Gallery) -> lesson::Result {
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
    // How much of each position is left at the last, for two of the keys.
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

/// Weights that fade, and a bonus.
pub fn rwkv(lesson: &mut Lesson, gallery: &mut Gallery) -> lesson::Result {
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
