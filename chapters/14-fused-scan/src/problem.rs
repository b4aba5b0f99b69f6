//! A selective scan, its results in double precision, and a bound of each error in `f32`.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// The number of states of each channel, in all kernels of this chapter.
pub const STATES: usize = 16;

/// The sizes of a scan; `B` and `C` are shared by all channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// The number of sequences.
    pub batch: usize,
    /// The number of channels of each sequence.
    pub channels: usize,
    /// The number of steps.
    pub len: usize,
}

impl Sizes {
    /// Returns the number of outputs.
    pub fn elements(self) -> usize {
        self.batch * self.channels * self.len
    }
}

/// The inputs of a scan, with softplus, `D` and a gate, in the layout of the kernels.
#[derive(Debug, Clone)]
pub struct Problem {
    /// The sizes of the arrays.
    pub sizes: Sizes,
    /// The input, `[batch, channels, len]`.
    pub u: Vec<f32>,
    /// The step sizes before the softplus, `[batch, channels, len]`.
    pub delta: Vec<f32>,
    /// The gate, `[batch, channels, len]`.
    pub z: Vec<f32>,
    /// The weights that write into the states, `[batch, STATES, len]`.
    pub b: Vec<f32>,
    /// The weights that read from the states, `[batch, STATES, len]`.
    pub c: Vec<f32>,
    /// The rates, `[channels, STATES]`.
    pub a: Vec<f32>,
    /// The share of `u` that goes straight to the output, `[channels]`.
    pub d: Vec<f32>,
}

impl Problem {
    /// Draws a problem of this size. The decays of a `slow` problem are near one, so that a lost
    /// state shows.
    pub fn draw(sizes: Sizes, slow: bool, seed: u64) -> Problem {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut draw = |count: usize, low: f32, high: f32| -> Vec<f32> {
            (0..count).map(|_| rng.random_range(low..high)).collect()
        };
        let (rows, couplings) = (sizes.elements(), sizes.batch * STATES * sizes.len);
        Problem {
            sizes,
            u: draw(rows, -2.0, 2.0),
            delta: draw(rows, -5.0, 1.0),
            z: draw(rows, -6.0, 6.0),
            b: draw(couplings, -1.0, 1.0),
            c: draw(couplings, -1.0, 1.0),
            a: draw(sizes.channels * STATES, if slow { -0.02 } else { -3.0 }, -0.001),
            d: draw(sizes.channels, -1.0, 1.0),
        }
    }
}

/// A number, and the largest error of its computed value.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Bounded {
    /// The number in double precision.
    pub value: f64,
    /// The largest error.
    pub bound: f64,
}

/// The order in which a kernel adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// The number of levels at which partial states are combined: zero for a walk,
    /// [`linrec::contract::Domain::tree_levels`] for a scan.
    pub levels: usize,
    /// The largest number of roundings of a term in the sum over the states.
    pub additions: usize,
}

/// The unit round-off of `f32`, and the smallest number that is not flushed to zero.
const U: f64 = 1.0 / (1 << 24) as f64;
const TINY: f64 = f32::MIN_POSITIVE as f64;
/// The relative errors of a power of two and of a reciprocal, as in `kernels/selective_scan.cuh`.
const POWER: f64 = 4.0 * U;
const RECIPROCAL: f64 = 2.0 * U;

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

// ANCHOR: pointwise
/// `softplus(x) = max(x, 0) + s` with `s = ln(1 + e)` and `e = exp(-|x|)`.
pub fn step_size(x: f64) -> Bounded {
    let small = (-x.abs()).exp().ln_1p();
    let value = x.max(0.0) + small;
    // The power and its argument, the polynomial, and the last multiply-add.
    let bound = small * (POWER + 2.0 * U * x.abs() + 5.0 * U) + U * value + TINY;
    Bounded { value, bound }
}

/// `z sigmoid(z)`.
pub fn gate(z: f64) -> Bounded {
    let s = sigmoid(z);
    let relative = (1.0 - s) * (POWER + 2.0 * U * z.abs()) + U + RECIPROCAL + U;
    Bounded { value: z * s, bound: (z * s).abs() * relative + TINY * (1.0 + z.abs()) }
}

/// `exp(d A)`: the argument is rounded three times and carries the error of `d`.
pub fn decay(d: Bounded, a: f64) -> Bounded {
    let value = (d.value * a).exp();
    let relative = POWER + 3.0 * U * (d.value * a).abs() + a.abs() * d.bound;
    Bounded { value, bound: value * relative + TINY }
}
// ANCHOR_END: pointwise

/// A state during the walk.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    /// The state and its error bound.
    h: Bounded,
    /// The same recurrence over absolute values.
    size: f64,
}

impl State {
    // ANCHOR: state
    /// One step: `h = c h + x`.
    fn step(&mut self, c: Bounded, x: Bounded, levels: usize) {
        let rounded = (2 + levels) as f64 * U * x.value.abs();
        let carried = self.size * (c.bound + 2.0 * U * c.value);
        self.h = Bounded {
            value: c.value * self.h.value + x.value,
            bound: c.value * self.h.bound + carried + x.bound + rounded + TINY,
        };
        self.size = c.value * self.size + x.value.abs();
    }
    // ANCHOR_END: state
}

impl Problem {
    /// Computes the outputs, `[batch, channels, len]`.
    pub fn outputs(&self, order: Order) -> Vec<Bounded> {
        let Sizes { batch, channels, len } = self.sizes;
        let mut out = Vec::with_capacity(self.sizes.elements());
        for row in 0..batch * channels {
            let mut states = [State::default(); STATES];
            out.extend((0..len).map(|t| self.step(row, t, &mut states, order)));
        }
        out
    }

    // ANCHOR: output
    /// Computes the output of a step and advances the states.
    fn step(&self, row: usize, t: usize, states: &mut [State; STATES], order: Order) -> Bounded {
        let Sizes { channels, len, .. } = self.sizes;
        let (batch, channel, at) = (row / channels, row % channels, row * len + t);
        let (u, skip) = (f64::from(self.u[at]), f64::from(self.d[channel]));
        let d = step_size(f64::from(self.delta[at]));
        let (mut y, mut bound, mut sizes) = (skip * u, 0.0, (skip * u).abs());
        for (n, state) in states.iter_mut().enumerate() {
            let coupling = (batch * STATES + n) * len + t;
            let (b, c) = (f64::from(self.b[coupling]), f64::from(self.c[coupling]));
            let x = d.value * u * b;
            let x_bound = (u * b).abs() * d.bound + 2.0 * U * x.abs() + TINY * (1.0 + b.abs());
            let rate = f64::from(self.a[channel * STATES + n]);
            state.step(decay(d, rate), Bounded { value: x, bound: x_bound }, order.levels);
            y += c * state.h.value;
            bound += c.abs() * state.h.bound;
            sizes += (c * state.h.value).abs();
        }
        bound += order.additions as f64 * (U * sizes + TINY);
        let gate = gate(f64::from(self.z[at]));
        let value = y * gate.value;
        let own = U * value.abs() + TINY;
        Bounded { value, bound: gate.value.abs() * bound + y.abs() * gate.bound + own }
    }
    // ANCHOR_END: output
}

/// Returns the largest error relative to its bound; NaN counts as the worst. The bound is of first
/// order, and a thousandth more covers the higher orders.
pub fn worst(computed: &[f32], expected: &[Bounded]) -> f64 {
    let shares = computed.iter().zip(expected).map(|(&got, expected)| {
        let share = (f64::from(got) - expected.value).abs() / (1.001 * expected.bound);
        if share.is_nan() { f64::INFINITY } else { share }
    });
    shares.fold(if computed.len() == expected.len() { 0.0 } else { f64::INFINITY }, f64::max)
}

/// Returns the largest error relative to the largest value.
pub fn relative(computed: &[f32], expected: &[Bounded]) -> f64 {
    let largest = expected.iter().map(|expected| expected.value.abs()).fold(0.0, f64::max);
    let errors = computed
        .iter()
        .zip(expected)
        .map(|(&got, expected)| (f64::from(got) - expected.value).abs());
    errors.fold(0.0, f64::max) / largest.max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_equals_the_formula_by_hand() {
        let sizes = Sizes { batch: 1, channels: 1, len: 2 };
        let mut problem = Problem::draw(sizes, false, 1);
        problem.a.fill(-1.0);
        (problem.u, problem.delta, problem.z) = (vec![1.0, 0.0], vec![0.0; 2], vec![2.0; 2]);
        (problem.b, problem.c, problem.d) = (vec![0.5; 32], vec![1.0; 32], vec![0.25]);
        let out = problem.outputs(Order { levels: 0, additions: 17 });
        // The step size is ln 2, so half of each state remains.
        let silu = 2.0 / (1.0 + (-2.0_f64).exp());
        let first = 16.0 * 2.0_f64.ln() * 0.5;
        assert!((out[0].value - (first + 0.25) * silu).abs() < 1e-12);
        assert!((out[1].value - first / 2.0 * silu).abs() < 1e-12);
        assert!(out.iter().all(|out| out.bound > 0.0 && out.bound < 1e-4 * out.value));
    }

    #[test]
    fn wrong_and_missing_outputs_are_noticed() {
        let expected = [Bounded { value: 1.0, bound: 0.1 }; 2];
        assert_eq!(worst(&[1.0, 1.0], &expected), 0.0);
        assert!(worst(&[1.0, 1.2], &expected) > 1.0);
        assert_eq!(worst(&[1.0, f32::NAN], &expected), f64::INFINITY);
        assert_eq!(worst(&[1.0], &expected), f64::INFINITY);
        assert!((relative(&[1.0, 1.5], &expected) - 0.5).abs() < 1e-12);
    }
}
