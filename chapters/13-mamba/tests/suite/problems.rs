//! Random problems, and the check that a result is within its error bound.

use ch13_mamba::golden::Given;
use ch13_mamba::{Gradients, Mixing, MixingArray, State};
use linrec::Element;
use ndarray::{Array, Array1, Array2, Array3, Array4, Dimension};
use num_complex::Complex;
use rand::RngExt;
use rand::rngs::StdRng;

/// Returns the largest error in units of its bound; fails if any error exceeds its bound.
pub fn within<S: Element, D: Dimension>(
    name: &str,
    got: &Array<S, D>,
    exact: &Array<S::Wide, D>,
    bound: &Array<f64, D>,
) -> f64 {
    assert_eq!(got.shape(), exact.shape(), "{name}");
    let mut worst: f64 = 0.0;
    for ((&got, exact), bound) in got.iter().zip(exact).zip(bound) {
        let error = (got.widen() - *exact).modulus();
        assert!(error <= *bound, "{name}: {got} instead of {exact}, bound {bound:e}");
        worst = worst.max(if error > 0.0 { error / bound } else { 0.0 });
    }
    println!("{name}: {worst:.3} of the bound");
    worst
}

fn mixing_within<S: State>(
    name: &str,
    got: &MixingArray<S>,
    exact: &MixingArray<S::Wide>,
    bound: &MixingArray<f64>,
) {
    match (got, exact, bound) {
        (Mixing::Varying(got), Mixing::Varying(exact), Mixing::Varying(bound)) => {
            within(name, got, exact, bound);
        }
        (Mixing::Fixed(got), Mixing::Fixed(exact), Mixing::Fixed(bound)) => {
            within(name, got, exact, bound);
        }
        _ => panic!("{name}: of different kinds"),
    }
}

/// Checks that all gradients are within their bounds.
pub fn gradients_within<S: State>(
    name: &str,
    got: &Gradients<S>,
    exact: &Gradients<S::Wide>,
    bound: &Gradients<f64>,
) {
    let name = |array: &str| format!("{name} {array}");
    within(&name("d_u"), &got.d_u, &exact.d_u, &bound.d_u);
    within(&name("d_delta"), &got.d_delta, &exact.d_delta, &bound.d_delta);
    within(&name("d_A"), &got.d_a, &exact.d_a, &bound.d_a);
    mixing_within(&name("d_B"), &got.d_b, &exact.d_b, &bound.d_b);
    mixing_within(&name("d_C"), &got.d_c, &exact.d_c, &bound.d_c);
    within(&name("d_D"), &got.d_d, &exact.d_d, &bound.d_d);
    within(&name("d_z"), &got.d_z, &exact.d_z, &bound.d_z);
    let bias = (&got.d_delta_bias, &exact.d_delta_bias, &bound.d_delta_bias);
    within(&name("d_delta_bias"), bias.0, bias.1, bias.2);
    within(&name("d_initial"), &got.d_initial, &exact.d_initial, &bound.d_initial);
}

/// A type of states in double precision: how to draw one, and its real parts.
pub trait Drawn: State<Real = f64, Precise = Self> {
    /// Draws a number for `A`, and one for all other arrays.
    fn draw(uniform: &mut dyn FnMut(f64, f64) -> f64) -> [Self; 2];

    /// Returns the real parts.
    fn parts(self) -> Vec<f64>;

    /// Makes a number from its parts.
    fn of(parts: &[f64]) -> Self;
}

impl Drawn for f64 {
    fn draw(uniform: &mut dyn FnMut(f64, f64) -> f64) -> [f64; 2] {
        [uniform(-3.0, -0.1), uniform(-1.0, 1.0)]
    }
    fn parts(self) -> Vec<f64> {
        vec![self]
    }
    fn of(parts: &[f64]) -> f64 {
        parts[0]
    }
}

impl Drawn for Complex<f64> {
    fn draw(uniform: &mut dyn FnMut(f64, f64) -> f64) -> [Self; 2] {
        let a = Complex::new(uniform(-3.0, -0.1), uniform(-4.0, 4.0));
        [a, Complex::new(uniform(-1.0, 1.0), uniform(-1.0, 1.0))]
    }
    fn parts(self) -> Vec<f64> {
        vec![self.re, self.im]
    }
    fn of(parts: &[f64]) -> Self {
        Complex::new(parts[0], parts[1])
    }
}

/// Draws a problem, with all of Mamba's options if `is_full`; `B` and `C` vary.
pub fn random(rng: &mut StdRng, shape: [usize; 5], is_full: bool) -> Given<f64> {
    drawn(rng, shape, is_full, [false, false])
}

/// Draws a problem, with all options if `is_full`, and `B` and `C` fixed if `are_fixed`.
pub fn drawn<S: Drawn>(
    rng: &mut StdRng,
    [batch, channels, groups, states, len]: [usize; 5],
    is_full: bool,
    are_fixed: [bool; 2],
) -> Given<S> {
    let mut uniform = |low: f64, high: f64| rng.random_range(low..high);
    let wide = (batch, channels, len);
    let u = Array3::from_shape_simple_fn(wide, || uniform(-1.0, 1.0));
    let delta = Array3::from_shape_simple_fn(wide, || uniform(0.01, 1.0));
    let a = Array2::from_shape_simple_fn((channels, states), || S::draw(&mut uniform)[0]);
    let mut number = || S::draw(&mut uniform)[1];
    let [b, c]: [MixingArray<S>; 2] = are_fixed.map(|is_fixed| match is_fixed {
        true => Array2::from_shape_simple_fn((channels, states), &mut number).into(),
        false => Array4::from_shape_simple_fn((batch, groups, states, len), &mut number).into(),
    });
    let given = Given::new(u, delta, a, b, c);
    if !is_full {
        return given;
    }
    let initial = Array3::from_shape_simple_fn((batch, channels, states), number);
    Given {
        d: Some(Array1::from_shape_simple_fn(channels, || uniform(-1.0, 1.0))),
        z: Some(Array3::from_shape_simple_fn(wide, || uniform(-2.0, 2.0))),
        delta_bias: Some(Array1::from_shape_simple_fn(channels, || uniform(-1.0, 1.0))),
        delta_softplus: true,
        initial: Some(initial),
        ..given
    }
}

/// The shapes under test: `[batch, channels, groups, states, len]`.
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

/// All combinations of fixed and varying `B` and `C`.
pub const KINDS: [[bool; 2]; 4] = [[false, false], [true, false], [false, true], [true, true]];
