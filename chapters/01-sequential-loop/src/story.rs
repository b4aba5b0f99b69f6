//! What the chapter tells when it runs.

mod bound;
mod cost;
mod shapes;
mod special;
mod state;

use linrec::lesson::{Kind, Lesson, Result, Table};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::linrec;

pub(crate) fn run(lesson: &mut Lesson) -> Result {
    lesson.engine("loop");
    first_steps(lesson)?;
    state::any_split(lesson)?;
    state::reverse(lesson)?;
    special::sums_and_products(lesson)?;
    special::averages(lesson)?;
    special::restart(lesson)?;
    shapes::impulse(lesson)?;
    shapes::signal(lesson)?;
    bound::against_double_precision(lesson)?;
    bound::contract(lesson)?;
    cost::loop_against_add(lesson)
}

/// Six steps that can be followed by hand.
fn first_steps(lesson: &mut Lesson) -> Result {
    lesson.step("loop", "Six steps by hand")?;
    lesson.say(
        "The state before the first step is 2. In every step it is multiplied by a coefficient, \
         an input is added, and the result is both the output and the next state.",
    );
    let (x, c, initial) = ([1.0, 1.0, 1.0, 1.0, 1.0, 1.0], [0.5, 0.5, 0.0, 1.0, 1.0, -1.0], 2.0);
    let y = linrec(&x, &c, initial);
    let mut table = Table::new(["l", "y_{l-1}", "c_l", "x_l", "y_l = y_{l-1} * c_l + x_l"]);
    let mut state = initial;
    for l in 0..y.len() {
        table.row([l as f64, state, c[l], x[l], y[l]].map(|number| number.to_string()));
        state = y[l];
    }
    lesson.table("first-steps.csv", Kind::Computed, &table)?;
    lesson.say(
        "A coefficient of 0.5 forgets half of the state, 0 forgets all of it, 1 keeps it (and the \
         inputs add up), and -1 turns its sign around.",
    );
    let expected = [2.0, 2.0, 1.0, 2.0, 3.0, -2.0];
    lesson.check("outputs that differ from those by hand", differing(&y, &expected), 0.0);
    Ok(())
}

/// How many elements differ in their bits.
fn differing(a: &[f64], b: &[f64]) -> f64 {
    let pairs = a.iter().zip(b).filter(|(a, b)| a.to_bits() != b.to_bits()).count();
    (pairs + a.len().abs_diff(b.len())) as f64
}

/// A sequence of random numbers, uniform in a range.
fn random(len: usize, range: std::ops::Range<f64>, seed: u64) -> Vec<f64> {
    let mut rng = StdRng::seed_from_u64(seed);
    (0..len).map(|_| rng.random_range(range.clone())).collect()
}
