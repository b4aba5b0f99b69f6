//! The problem of the blog post: random data in the sizes of a Mamba with 370 million weights.

use ndarray::{Array1, Array2, Axis, Slice};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};

use crate::activation::{rounded, softplus};
use crate::golden::Given;

/// `d_model`: the width of the layer's input.
pub const WIDTH: usize = 1024;
/// `d_inner`: the number of channels, twice the width.
pub const CHANNELS: usize = 2 * WIDTH;
/// `d_state`: the number of states of each channel.
pub const STATES: usize = 16;
/// The length of the sequence.
pub const LEN: usize = 1024;

/// Draws the problem as the post does. `A` is the only parameter that does not depend on the input.
/// A projection with random weights makes all other arrays from random inputs, and `Δ` then goes
/// through softplus.
// ANCHOR: draw
pub fn draw(seed: u64) -> Given<f32> {
    let mut rng = StdRng::seed_from_u64(seed);
    let a = Array2::from_shape_simple_fn((CHANNELS, STATES), || -rng.random_range(1.0..16.0));
    let inputs = Array2::from_shape_simple_fn((WIDTH, LEN), || normal(&mut rng));

    // PyTorch's nn.Linear draws initial weights and biases from ±1/√n for n inputs.
    let rows = [CHANNELS, STATES, STATES, CHANNELS];
    let bound = 1.0 / (WIDTH as f32).sqrt();
    let num_rows = rows.iter().sum();
    let mut uniform = || rng.random_range(-bound..bound);
    let projection = Array2::from_shape_simple_fn((num_rows, WIDTH), &mut uniform);
    let bias: Array1<f32> = Array1::from_shape_simple_fn(num_rows, &mut uniform);
    let projected = projection.dot(&inputs) + bias.insert_axis(Axis(1));

    let mut first = 0;
    let [u, b, c, delta] = rows.map(|count| {
        let part = projected.slice_axis(Axis(0), Slice::from(first..first + count));
        first += count;
        part.insert_axis(Axis(0)).to_owned()
    });
    let groups = |array: ndarray::Array3<f32>| array.insert_axis(Axis(1));
    let delta = delta.mapv(|x| rounded(softplus, x));
    let (b, c) = (groups(b), groups(c));
    Given::new(u, delta, a, b, c)
}
// ANCHOR_END: draw

fn normal(rng: &mut StdRng) -> f32 {
    StandardNormal.sample(rng)
}
