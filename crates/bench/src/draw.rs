//! Random arrays for several chapters, and a comparison of two kernels' results.

use ndarray::Array2;
use rand::{RngExt, SeedableRng, rngs::StdRng};

/// Draws arrays of one shape, `[num_seqs, seq_len]`: inputs in [-1, 1) and coefficients near one,
/// in [0.98, 1). A seed gives the same arrays on every machine.
pub fn near_one(shape: (usize, usize), seed: u64) -> (Array2<f32>, Array2<f32>) {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut draw =
        |low: f32, high: f32| Array2::from_shape_simple_fn(shape, || rng.random_range(low..high));
    (draw(-1.0, 1.0), draw(0.98, 1.0))
}

/// Counts the numbers whose bits differ; any two NaNs count as equal.
pub fn differ<'a>(
    ours: impl IntoIterator<Item = &'a f32>,
    theirs: impl IntoIterator<Item = &'a f32>,
) -> f64 {
    let pairs = ours.into_iter().zip(theirs);
    pairs.filter(|(a, b)| a.to_bits() != b.to_bits() && !(a.is_nan() && b.is_nan())).count() as f64
}
