//! The chapter's run.

mod clock;
mod contract;
mod far;
mod inside;
mod life;
mod mistakes;
mod outside;
mod peers;
mod picture;
mod speed;
mod steps;
mod traffic;

use linrec::device::Device;
use linrec::lesson::{self, Lesson};

/// What was measured on an H200: every run, forward.
const RECORD: &str = include_str!("../results/h200/speed.csv");

/// Tells the chapter.
pub fn run(lesson: &mut Lesson) -> lesson::Result {
    let device = Device::auto()?;
    lesson.engine(&format!("pipe@{}", device.label()));
    outside::outside(lesson, &device)?;
    inside::inside(lesson, &device)?;
    life::life(lesson)?;
    mistakes::turns(lesson)?;
    far::far(lesson)?;
    speed::speed(lesson)?;
    steps::steps(lesson)?;
    traffic::traffic(lesson)?;
    traffic::one_kernel(lesson)?;
    peers::peers(lesson)?;
    clock::clock(lesson, &device)?;
    contract::contract(lesson, &device)?;
    mistakes::others(lesson)
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

/// A number with commas between thousands, as in a text.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    groups.map(String::from_utf8_lossy).collect::<Vec<_>>().join(",")
}
