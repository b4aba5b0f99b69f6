//! minGRU on log space.

use half::{bf16, f16};
use linrec::contract::golden::array_distance;
use linrec::device::Storage;
use linrec::lesson::plot::{self, Chart};
use linrec::lesson::{Kind, Lesson, Result, Table};
use ndarray::{Array1, Array2};
use num_traits::Float;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand_distr::{Distribution, StandardNormal};

use super::number;
use crate::min_gru::{backward, forward, log_g, relative_bound, softplus};
use crate::stored::array_by_array;
use crate::{LogSpace, golden};

/// PyTorch's numbers, and the error over the length for each element type.
pub fn min_gru(lesson: &mut Lesson) -> Result {
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

/// The largest relative errors of the states up to each of the lengths.
struct Errors {
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
    let errors = |name, h: &[f64]| Errors { name, upto: upto(&lengths, h, &exact) };
    // In 16 bits the problem is another one, rounded: it has its own exact states.
    let narrow = [
        stored_errors::<bf16>("bfloat16 logarithms", &lengths, &k, &h_tilde),
        stored_errors::<f16>("float16 logarithms", &lengths, &k, &h_tilde),
    ];
    let all: Vec<Errors> = [
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
        .y_range(1e-8, 1e6);
    for errors in &all {
        let points = lengths.iter().zip(&errors.upto).map(|(&l, &e)| (l as f64, e));
        chart = chart.measured(errors.name, points.filter(|(_, e)| e.is_finite()));
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

/// The states by chapter 1's loop.
fn loop_over<T: crate::Real>(k: &Array2<T>, h_tilde: &Array2<T>, h0: f64) -> Vec<T> {
    let coeffs: Vec<T> = k.iter().map(|&k| Float::exp(-softplus(k))).collect();
    let inputs: Vec<T> =
        k.iter().zip(h_tilde).map(|(&k, &h)| Float::exp(-softplus(-k) + log_g(h))).collect();
    ch01_sequential_loop::linrec(&inputs, &coeffs, T::from_real(h0))
}

/// Errors of the two sums with all arrays stored as `S`, inputs and log-coefficients included,
/// from the state 0.
fn stored_errors<S: Storage<Accum = f32>>(
    name: &'static str,
    lengths: &[usize],
    k: &Array2<f32>,
    h_tilde: &Array2<f32>,
) -> Errors {
    let logs: Vec<S> = k.iter().map(|&k| S::narrow(-softplus(k))).collect();
    let inputs: Vec<S> = k
        .iter()
        .zip(h_tilde)
        .map(|(&k, &h)| S::narrow(Float::exp(-softplus(-k) + log_g(h))))
        .collect();
    let wide = |values: &[S]| values.iter().map(|v| f64::from(v.widen())).collect::<Vec<f64>>();
    let coeffs: Vec<f64> = wide(&logs).iter().map(|log| log.exp()).collect();
    let exact = ch01_sequential_loop::linrec(&wide(&inputs), &coeffs, 0.0);
    Errors { name, upto: upto(lengths, &wide(&array_by_array(&inputs, &logs)), &exact) }
}

fn upto(lengths: &[usize], h: &[f64], exact: &[f64]) -> Vec<f64> {
    let error = |l: usize| {
        let error = (h[l] - exact[l]).abs() / exact[l];
        if error.is_nan() { f64::INFINITY } else { error }
    };
    lengths.iter().map(|&len| (0..len).map(error).fold(0.0, f64::max)).collect()
}
