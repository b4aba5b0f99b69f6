//! What the chapter tells when it runs.

mod picture;
mod pieces;
mod split;
mod steps;
mod time;

use linrec::lesson::{Lesson, Result};
use ndarray::Array1;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

pub(crate) fn run(lesson: &mut Lesson) -> Result {
    lesson.engine("two threads, T threads");
    split::by_hand(lesson)?;
    split::operator(lesson)?;
    split::tree_of_eight(lesson)?;
    steps::counted(lesson)?;
    steps::contract(lesson)?;
    pieces::cost_of_a_thread(lesson)?;
    let pieces = pieces::cost_of_a_step(lesson)?;
    time::against_length(lesson, &pieces)?;
    time::against_threads(lesson)
}

/// Inputs and coefficients of a long sequence. The coefficients lie around 1 on both sides, so that
/// their products neither vanish nor overflow.
fn around_one(len: usize) -> (Array1<f32>, Array1<f32>) {
    random(len, 0.99..1.01)
}

/// Inputs in [-1, 1) and coefficients in a range.
fn random(len: usize, coeffs: std::ops::Range<f32>) -> (Array1<f32>, Array1<f32>) {
    let mut rng = StdRng::seed_from_u64(len as u64);
    let mut draw = |range: std::ops::Range<f32>| {
        Array1::from_shape_simple_fn(len, || rng.random_range(range.clone()))
    };
    (draw(-1.0..1.0), draw(coeffs))
}
