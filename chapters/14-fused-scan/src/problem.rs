//! A selective scan to compute, and what comes out of it: in double precision, with the largest
//! error of `f32`.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// States of each channel, in all kernels of this chapter.
pub const STATES: usize = 16;

/// The sizes of a scan; `B` and `C` are shared by all channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Sequences.
    pub batch: usize,
    /// Channels of each.
    pub channels: usize,
    /// Steps.
    pub len: usize,
}

impl Sizes {
    /// How many outputs there are.
    pub fn elements(self) -> usize {
        self.batch * self.channels * self.len
    }
}

/// The inputs of a scan, with softplus, `D` and a gate, in the layout of the kernels.
#[derive(Debug, Clone)]
pub struct Problem {
    /// How large it is.
    pub sizes: Sizes,
    /// `[batch, channels, len]`.
    pub u: Vec<f32>,
    /// Step sizes before the softplus, `[batch, channels, len]`.
    pub delta: Vec<f32>,
    /// The gate, `[batch, channels, len]`.
    pub z: Vec<f32>,
    /// `[batch, STATES, len]`.
    pub b: Vec<f32>,
    /// `[batch, STATES, len]`.
    pub c: Vec<f32>,
    /// Rates, `[channels, STATES]`.
    pub a: Vec<f32>,
    /// What goes straight to the output, `[channels]`.
    pub d: Vec<f32>,
}

impl Problem {
    /// A problem of this size. Of `slow` ones the decays are near one, so that a state that gets
    /// lost shows.
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

/// A number, and how far from it a computed one may be.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Bounded {
    /// In double precision.
    pub value: f64,
    /// The largest error.
    pub bound: f64,
}

/// In which order a kernel adds up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// Levels at which partial states are combined: none for a walk,
    /// [`linrec::contract::Domain::tree_levels`] for a scan.
    pub levels: usize,
    /// How often a summand of the sum over the states is rounded, at most.
    pub additions: usize,
}

/// The unit round-off of `f32`, and the smallest number that is not taken for zero.
const U: f64 = 1.0 / (1 << 24) as f64;
const TINY: f64 = f32::MIN_POSITIVE as f64;
/// The relative errors of a power of two and of a reciprocal, as `kernels/selective_scan.cuh` makes
/// them.
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

/// `exp(d A)`: its argument is rounded three times, and carries the error of `d`.
pub fn decay(d: Bounded, a: f64) -> Bounded {
    let value = (d.value * a).exp();
    let relative = POWER + 3.0 * U * (d.value * a).abs() + a.abs() * d.bound;
    Bounded { value, bound: value * relative + TINY }
}
// ANCHOR_END: pointwise

/// A state on its way.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    /// The state, and how far off it may be.
    h: Bounded,
    /// The recurrence over absolute values.
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
    /// The outputs, `[batch, channels, len]`.
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
    /// The output of a step; moves the states.
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

/// The largest error as a part of its bound, which is to first order and has a thousandth more for
/// the others; NaN counts as the worst.
pub fn worst(computed: &[f32], expected: &[Bounded]) -> f64 {
    let shares = computed.iter().zip(expected).map(|(&got, expected)| {
        let share = (f64::from(got) - expected.value).abs() / (1.001 * expected.bound);
        if share.is_nan() { f64::INFINITY } else { share }
    });
    shares.fold(if computed.len() == expected.len() { 0.0 } else { f64::INFINITY }, f64::max)
}

/// The largest error as a part of the largest value.
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
    fn a_step_by_hand() {
        let sizes = Sizes { batch: 1, channels: 1, len: 2 };
        let mut problem = Problem::draw(sizes, false, 1);
        problem.a.fill(-1.0);
        (problem.u, problem.delta, problem.z) = (vec![1.0, 0.0], vec![0.0; 2], vec![2.0; 2]);
        (problem.b, problem.c, problem.d) = (vec![0.5; 32], vec![1.0; 32], vec![0.25]);
        let out = problem.outputs(Order { levels: 0, additions: 17 });
        // The step size is ln 2, and so half of each state is left.
        let silu = 2.0 / (1.0 + (-2.0_f64).exp());
        let first = 16.0 * 2.0_f64.ln() * 0.5;
        assert!((out[0].value - (first + 0.25) * silu).abs() < 1e-12);
        assert!((out[1].value - first / 2.0 * silu).abs() < 1e-12);
        assert!(out.iter().all(|out| out.bound > 0.0 && out.bound < 1e-4 * out.value));
    }

    #[test]
    fn what_is_wrong_is_seen() {
        let expected = [Bounded { value: 1.0, bound: 0.1 }; 2];
        assert_eq!(worst(&[1.0, 1.0], &expected), 0.0);
        assert!(worst(&[1.0, 1.2], &expected) > 1.0);
        assert_eq!(worst(&[1.0, f32::NAN], &expected), f64::INFINITY);
        assert_eq!(worst(&[1.0], &expected), f64::INFINITY);
        assert!((relative(&[1.0, 1.5], &expected) - 0.5).abs() < 1e-12);
    }
}
