//! The chapter's run.

mod ahead;
mod banks;
mod bytes;
mod choose;
mod contract;
mod direction;
mod ends;
mod mistakes;
mod picture;
mod price;
mod shift;
mod strides;
mod types;
mod ways;

use linrec::device::Device;
use linrec::lesson::{self, Lesson};

/// Tells the chapter.
pub fn run(lesson: &mut Lesson) -> lesson::Result {
    let device = Device::auto()?;
    lesson.engine(&format!("pipe@{}", device.label()));
    direction::direction(lesson, &device)?;
    shift::shift(lesson)?;
    ends::ends(lesson, &device)?;
    bytes::bytes(lesson)?;
    ways::ways(lesson)?;
    ways::speed(lesson)?;
    price::price(lesson)?;
    banks::banks(lesson)?;
    ahead::ahead(lesson)?;
    ahead::first(lesson)?;
    strides::strides(lesson, &device)?;
    types::types(lesson, &device)?;
    choose::choose(lesson)?;
    contract::contract(lesson, &device)?;
    mistakes::mistakes(lesson)
}

/// Arrays of one shape: inputs in [-1, 1) and coefficients near one.
fn data(shape: (usize, usize), seed: u64) -> (ndarray::Array2<f32>, ndarray::Array2<f32>) {
    use rand::{RngExt, SeedableRng, rngs::StdRng};
    let mut rng = StdRng::seed_from_u64(seed);
    let mut draw = |low: f32, high: f32| {
        ndarray::Array2::from_shape_simple_fn(shape, || rng.random_range(low..high))
    };
    (draw(-1.0, 1.0), draw(0.98, 1.0))
}

/// How many words differ, NaN counting as NaN.
fn differ<'a>(
    ours: impl IntoIterator<Item = &'a f32>,
    theirs: impl IntoIterator<Item = &'a f32>,
) -> f64 {
    let pairs = ours.into_iter().zip(theirs);
    pairs.filter(|(a, b)| a.to_bits() != b.to_bits() && !(a.is_nan() && b.is_nan())).count() as f64
}
