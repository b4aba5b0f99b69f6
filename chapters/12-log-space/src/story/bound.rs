//! The error of log space along one sequence, beside its bound.

use ch01_sequential_loop::linrec;
use linrec::lesson::plot::{self, Chart};
use linrec::lesson::{Kind, Lesson, Result};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::number;
use crate::{LogSpace, SignedLog, bound};

/// Gates in [0, 1): the loop and log space in `f32`.
pub fn bound(lesson: &mut Lesson) -> Result {
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
