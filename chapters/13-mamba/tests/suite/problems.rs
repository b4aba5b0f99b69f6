//! Problems to be solved, and how far from their solutions a result may be.

use ch13_mamba::golden::Given;
use ndarray::{Array, Array1, Array2, Array3, Array4, Dimension};
use rand::RngExt;
use rand::rngs::StdRng;

/// The largest error in units of its bound; every array has to be within.
pub fn within<D: Dimension>(
    name: &str,
    got: &Array<f32, D>,
    exact: &Array<f64, D>,
    bound: &Array<f64, D>,
) -> f64 {
    assert_eq!(got.shape(), exact.shape());
    let mut worst: f64 = 0.0;
    for ((&got, exact), bound) in got.iter().zip(exact).zip(bound) {
        let error = (f64::from(got) - exact).abs();
        assert!(error <= *bound, "{name}: {got} instead of {exact}, bound {bound:e}");
        worst = worst.max(if error > 0.0 { error / bound } else { 0.0 });
    }
    println!("{name}: {worst:.3} of the bound");
    worst
}

/// A random problem with everything in it.
pub fn random(
    rng: &mut StdRng,
    [batch, channels, groups, states, len]: [usize; 5],
    is_full: bool,
) -> Given<f64> {
    let mut uniform = |low: f64, high: f64| rng.random_range(low..high);
    let wide = (batch, channels, len);
    let shared = (batch, groups, states, len);
    Given {
        u: Array3::from_shape_simple_fn(wide, || uniform(-1.0, 1.0)),
        delta: Array3::from_shape_simple_fn(wide, || uniform(0.01, 1.0)),
        a: Array2::from_shape_simple_fn((channels, states), || uniform(-3.0, -0.1)),
        b: Array4::from_shape_simple_fn(shared, || uniform(-1.0, 1.0)),
        c: Array4::from_shape_simple_fn(shared, || uniform(-1.0, 1.0)),
        d: is_full.then(|| Array1::from_shape_simple_fn(channels, || uniform(-1.0, 1.0))),
        z: is_full.then(|| Array3::from_shape_simple_fn(wide, || uniform(-2.0, 2.0))),
        delta_bias: is_full.then(|| Array1::from_shape_simple_fn(channels, || uniform(-1.0, 1.0))),
        delta_softplus: is_full,
    }
}

/// `[batch, channels, groups, states, len]`.
pub const SHAPES: [[usize; 5]; 9] = [
    [1, 1, 1, 1, 1],
    [2, 6, 3, 2, 7],
    [1, 70, 1, 3, 33],
    [3, 4, 4, 1, 65],
    [1, 34, 1, 16, 100],
    [0, 3, 1, 2, 5],
    [2, 3, 1, 2, 0],
    [2, 0, 1, 2, 5],
    [2, 3, 1, 0, 5],
];
