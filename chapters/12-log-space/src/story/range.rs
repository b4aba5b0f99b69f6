//! What logarithms can do that numbers cannot.

use ch01_sequential_loop::linrec;
use ch02_two_threads::{Transition, tree};
use linrec::lesson::{Kind, Lesson, Result, Table};

use super::number;
use crate::{LogSpace, SignedLog};

/// Products that overflow where outputs do not, and outputs that no type can hold.
pub fn range(lesson: &mut Lesson) -> Result {
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
