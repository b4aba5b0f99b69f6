//! Sums that start afresh.

use ch01_sequential_loop::linrec;
use linrec::lesson::{Kind, Lesson, Result, Table};
use linrec::{Engine, Options};
use ndarray::{Array2, s};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::number;
use crate::{LogSpace, SignedLog, bound, segments};

/// Several reaches over the same gates.
pub fn restart(lesson: &mut Lesson) -> Result {
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
    let tail = part(half, seq_len, Some(head.final_state))?;
    let whole = part(0, seq_len, None)?;
    let bounds = bound::along(&engine, &wide(&x), (&wide(&c), &logs), 0.0);
    let differences = tail.outputs.iter().zip(whole.outputs.iter().skip(half));
    let differences = differences.map(|(a, b)| (f64::from(*a) - f64::from(*b)).abs());
    // Both are within the bound of the exact result; the handed-over state is rounded once
    // more.
    let share = differences.zip(bounds.iter().skip(half)).map(|(d, bound)| d / (2.0 * bound));
    lesson.say(&format!(
        "The same sequence in two calls, the second of which begins with the final state of the first (at \
         {half}), agrees with the one call:",
    ));
    lesson.check("two calls and one, difference / twice the bound", share.fold(0.0, f64::max), 1.0);
    Ok(())
}
