//! Operations and bytes.

use linrec::contract::golden::array_distance;
use linrec::lesson::clock::{self, medians};
use linrec::lesson::{self, Kind, Lesson, Table};
use ndarray::Array1;
use num_complex::Complex;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::bytes::{H200_BALANCE, table};
use crate::models::s4d::S4d;

/// The table of the closing page.
pub fn bytes(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("bytes", "Operations for each byte")?;
    lesson.say(&format!(
        "For each channel and position, in f32. An H200 can do {H200_BALANCE:.0} operations while one byte \
         comes from its memory. 'alone' is the recurrence, in operations for each byte that it reads or writes; \
         'unfused' and 'fused' are the bytes of the whole model in three passes or in one, 'ops/byte' its \
         operations for each fused byte, and 'free' the states that a channel could have before arithmetic \
         takes as long as memory.",
    ));
    lesson.table("bytes.csv", Kind::Computed, &table())?;
    lesson.value("h200_balance", format!("{H200_BALANCE:.0}"), Kind::Computed);
    Ok(())
}

/// One pass against three, on this machine.
pub fn fused(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("fused", "One pass or three")?;
    let (seq_len, num_states) = lesson.size((1 << 15, 16), (1 << 18, 16));
    let mut rng = StdRng::seed_from_u64(141);
    let readout = Array1::from_shape_simple_fn(num_states, || {
        Complex::new(rng.random_range(-1.0..1.0), rng.random_range(-1.0..1.0))
    });
    let model = S4d::linear(readout, 0.01);
    let signal = Array1::from_shape_simple_fn(seq_len, || rng.random_range(-1.0..1.0));
    let problem = model.problem(signal.view())?;
    let states = problem.solve()?;
    let unfused = model.read(states.view());
    let once = model.fused(signal.view())?;
    lesson.say(&format!(
        "S4D with {num_states} states over {seq_len} positions: made, solved and read in three passes over \
         arrays, or in one walk that keeps the states at hand. Both in double precision.",
    ));
    let [make, recur, read, all] = medians(
        5,
        [
            &mut || drop(model.problem(signal.view())),
            &mut || drop(problem.solve()),
            &mut || drop(model.read(states.view())),
            &mut || drop(model.fused(signal.view())),
        ],
    );
    let mut table = Table::new(["pass", "time", "bytes that it reads and writes"]);
    let (state, signal) = (16 * num_states * seq_len, 8 * seq_len);
    let megabytes = |bytes: usize| format!("{:.1} MB", bytes as f64 / 1e6);
    table.row(["make", &clock::text(make), &megabytes(signal + 2 * state)]);
    table.row(["recur, on all cores", &clock::text(recur), &megabytes(3 * state)]);
    table.row(["read", &clock::text(read), &megabytes(state + signal)]);
    table.row(["all in one, on one core", &clock::text(all), &megabytes(2 * signal)]);
    lesson.table("fused.csv", Kind::Timed, &table)?;
    let ratio = (make + recur + read).as_secs_f64() / all.as_secs_f64();
    lesson.say(&format!("The three passes take {ratio:.1} times as long as the one."));
    lesson.value("fused_ratio", format!("{ratio:.1}"), Kind::Timed);
    lesson.check("one pass and three, relative", array_distance(&once, &unfused), super::LIMIT);
    Ok(())
}
