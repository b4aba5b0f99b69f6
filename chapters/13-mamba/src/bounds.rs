//! Error bounds for a selective scan in `f32`, measured against the same scan in double precision.
//!
//! Every operation of the scan is repeated here on [`Count`]s, which carry the size of a number and
//! the number of its roundings. The bound is therefore derived and not tuned, and it holds for
//! whatever order an engine of a given depth sums in. Without such a bound a lost digit would look
//! like an honest rounding. `tests/suite/scan.rs` and `tests/suite/on_device.rs` hold every engine
//! to it.

use linrec::{Element, Error};
use ndarray::{Array1, Array2, Array3, Array4, ArrayView3, Axis, Zip};

use crate::activation::{sigmoid, silu, silu_slope, softplus};
use crate::arguments::{Arguments, Mixing, MixingArray, MixingView, Sizes};
use crate::rounding::Count;
use crate::{Gradients, Output, State};

/// The roundings of a function that is computed in double precision and rounded once. (A second
/// rounding is far more than double precision adds.)
const ACTIVATION_ROUNDINGS: f64 = 2.0;

/// Bounds the errors of [`selective_scan`](crate::selective_scan), element by element.
///
/// `levels` is the number of combining levels of the engine that computes the recurrence, see
/// [`Rounding`](linrec::reference::Rounding).
///
/// # Errors
///
/// Returns an error if the shapes do not fit together.
pub fn forward<S: State>(arguments: &Arguments<S>, levels: usize) -> Result<Output<f64>, Error> {
    let sizes = arguments.sizes()?;
    let mut y = Array3::zeros((sizes.batch, sizes.channels, sizes.len));
    let mut last_state = Array3::zeros((sizes.batch, sizes.channels, sizes.states));
    Zip::indexed(y.lanes_mut(Axis(2))).and(last_state.lanes_mut(Axis(2))).par_for_each(
        |(i, j), mut y, mut last_state| {
            let channel = Counted::new(arguments, sizes, (i, j), levels);
            for (l, y) in y.iter_mut().enumerate() {
                *y = channel.y(l).bound::<S>();
            }
            // Without steps, the last states are the initial ones, which are exact.
            if let Some(last) = sizes.len.checked_sub(1) {
                for (bound, state) in last_state.iter_mut().zip(channel.states.column(last)) {
                    *bound = state.bound::<S>();
                }
            }
        },
    );
    Ok(Output { y, last_state })
}

/// Bounds the errors of [`selective_scan_backward`](crate::selective_scan_backward).
///
/// # Errors
///
/// Returns an error if the shapes do not fit together.
pub fn backward<S: State>(
    arguments: &Arguments<S>,
    d_y: ArrayView3<S::Real>,
    d_last_state: Option<ArrayView3<S>>,
    levels: usize,
) -> Result<Gradients<f64>, Error> {
    let sizes = arguments.sizes()?;
    let Sizes { batch, channels, groups, states, len } = sizes;
    let size = sizes.group_size();
    let all: Array2<OfChannel> = Array2::from_shape_fn((batch, channels), |(i, j)| {
        let d_last = |n| d_last_state.map_or(Count::default(), |d| exact(d[[i, j, n]]));
        Counted::new(arguments, sizes, (i, j), levels).back(|l| exact(d_y[[i, j, l]]), d_last)
    });
    let bound = |count: Count| count.bound::<S>();
    let own = |of: fn(&OfChannel) -> &Array1<Count>| {
        Array3::from_shape_fn((batch, channels, len), |(i, j, l)| bound(of(&all[[i, j]])[l]))
    };
    let over_batch = |j: usize, of: fn(&OfChannel) -> &Array1<Count>| {
        bound(Count::sum((0..batch).flat_map(|i| of(&all[[i, j]]).iter().copied())))
    };
    let over_positions = |of: fn(&OfChannel) -> &Array2<Count>| {
        Array2::from_shape_fn((channels, states), |(j, n)| {
            bound(Count::sum((0..batch).flat_map(|i| of(&all[[i, j]]).row(n).to_vec())))
        })
    };
    let over_group = |of: fn(&OfChannel) -> &Array2<Count>| {
        Array4::from_shape_fn((batch, groups, states, len), |(i, g, n, l)| {
            let in_group = if channels == 0 { 0 } else { size };
            bound(Count::sum((0..in_group).map(|k| of(&all[[i, g * size + k]])[[n, l]])))
        })
    };
    let mixing =
        |mixing: MixingView<S>, of: fn(&OfChannel) -> &Array2<Count>| -> MixingArray<f64> {
            match mixing {
                Mixing::Varying(_) => over_group(of).into(),
                Mixing::Fixed(_) => over_positions(of).into(),
            }
        };
    Ok(Gradients {
        d_u: own(|c| &c.d_u),
        d_delta: own(|c| &c.d_delta),
        d_a: over_positions(|c| &c.d_a),
        d_b: mixing(arguments.b, |c| &c.d_b),
        d_c: mixing(arguments.c, |c| &c.d_c),
        d_d: Array1::from_shape_fn(channels, |j| over_batch(j, |c| &c.d_d)),
        d_z: own(|c| &c.d_z),
        d_delta_bias: Array1::from_shape_fn(channels, |j| over_batch(j, |c| &c.d_delta)),
        d_initial: Array3::from_shape_fn((batch, channels, states), |(i, j, n)| {
            bound(all[[i, j]].d_initial[n])
        }),
    })
}

fn exact<S: Element>(value: S) -> Count {
    Count::exact(value.modulus())
}

/// Counts a function of an exact number.
fn activation(value: f64) -> Count {
    Count::exact(value).rounded(ACTIVATION_ROUNDINGS)
}

/// One channel of a scan, on counts.
struct Counted<'w, 'a, S: State> {
    arguments: &'w Arguments<'a, S>,
    i: usize,
    j: usize,
    sizes: Sizes,
    levels: usize,
    /// `Δ_l`.
    delta: Vec<Count>,
    /// `c = e^(Δ A)`, `[states, len]`.
    coeffs: Array2<Count>,
    /// `h`, `[states, len]`.
    states: Array2<Count>,
}

/// The gradients of one channel, on counts.
struct OfChannel {
    d_u: Array1<Count>,
    d_delta: Array1<Count>,
    d_z: Array1<Count>,
    /// The terms whose sum is the gradient of `D`.
    d_d: Array1<Count>,
    d_initial: Vec<Count>,
    /// The terms whose sums over the positions are the gradients of `A`.
    d_a: Array2<Count>,
    /// This channel's share of the gradient of `B`.
    d_b: Array2<Count>,
    d_c: Array2<Count>,
}

impl<'w, 'a, S: State> Counted<'w, 'a, S> {
    fn new(
        arguments: &'w Arguments<'a, S>,
        sizes: Sizes,
        (i, j): (usize, usize),
        levels: usize,
    ) -> Self {
        let shape = (sizes.states, sizes.len);
        let (coeffs, states) = (Array2::default(shape), Array2::default(shape));
        let delta = Vec::with_capacity(sizes.len);
        let mut channel = Counted { arguments, i, j, sizes, levels, delta, coeffs, states };
        for l in 0..sizes.len {
            let given = channel.delta_given(l);
            channel.delta.push(match (arguments.delta_softplus, arguments.delta_bias) {
                (true, _) => activation(softplus(given)),
                (false, Some(_)) => activation(given),
                (false, None) => Count::exact(given),
            });
        }
        for n in 0..sizes.states {
            let mut walk = Walk::new::<S>(levels, channel.initial(n));
            for l in 0..sizes.len {
                let coeff = channel.coeff(n, l);
                channel.coeffs[[n, l]] = coeff;
                channel.states[[n, l]] = walk.step(coeff, channel.input(n, l));
            }
        }
        channel
    }

    fn initial(&self, n: usize) -> Count {
        self.arguments.initial.map_or(Count::default(), |states| exact(states[[self.i, self.j, n]]))
    }

    /// Returns `Δ` before softplus.
    fn delta_given(&self, l: usize) -> f64 {
        let bias = self.arguments.delta_bias.map_or(0.0, |bias| bias[self.j].widen());
        self.arguments.delta[[self.i, self.j, l]].widen() + bias
    }

    /// Returns the sign of `Δ`: positive with softplus, the given one without.
    fn delta_sign(&self, l: usize) -> f64 {
        if self.arguments.delta_softplus { 1.0 } else { self.delta_given(l).signum() }
    }

    // ANCHOR: expanded
    /// `c = e^(Δ A)`. The error of the exponent is a relative error of the power.
    fn coeff(&self, n: usize, l: usize) -> Count {
        let a = self.arguments.a[[self.j, n]];
        let exponent = self.delta[l] * exact(a);
        let roundings = exponent.bound::<S>() / S::UNIT_ROUNDOFF + S::EXP_ROUNDINGS;
        let power = (self.delta[l].size * self.delta_sign(l) * a.real().widen()).exp();
        Count { slack: S::EXP_UNDERFLOW, ..Count::exact(power).rounded(roundings) }
    }

    /// `x = (Δ u) B`.
    fn input(&self, n: usize, l: usize) -> Count {
        self.scaled(l) * self.b(n, l)
    }

    /// `(Σ C h + D u) silu(z)`, the sum in any order.
    fn y(&self, l: usize) -> Count {
        match self.arguments.z {
            Some(z) => self.ungated(l) * activation(silu(z[[self.i, self.j, l]].widen())),
            None => self.ungated(l),
        }
    }
    // ANCHOR_END: expanded

    fn ungated(&self, l: usize) -> Count {
        let read = |n| product::<S>(self.c(n, l), self.states[[n, l]]).exactly(S::COUNT);
        let sum = Count::sum((0..self.sizes.states).map(read));
        self.arguments.d.map_or(sum, |d| sum + exact(d[self.j]) * self.u(l))
    }

    fn u(&self, l: usize) -> Count {
        exact(self.arguments.u[[self.i, self.j, l]])
    }

    fn scaled(&self, l: usize) -> Count {
        self.delta[l] * self.u(l)
    }

    fn mixing(&self, mixing: MixingView<S>, n: usize, l: usize) -> Count {
        exact(mixing.at([self.i, self.j, n, l], self.sizes.group_size()))
    }

    fn b(&self, n: usize, l: usize) -> Count {
        self.mixing(self.arguments.b, n, l)
    }

    fn c(&self, n: usize, l: usize) -> Count {
        self.mixing(self.arguments.c, n, l)
    }

    fn back(&self, d_y: impl Fn(usize) -> Count, d_last: impl Fn(usize) -> Count) -> OfChannel {
        let Sizes { states, len, .. } = self.sizes;
        let per_step = |f: &dyn Fn(usize) -> Count| Array1::from_shape_fn(len, f);
        let per_state =
            |f: &dyn Fn((usize, usize)) -> Count| Array2::from_shape_fn((states, len), f);

        // Through the gate.
        let z = |l| self.arguments.z.map(|z| z[[self.i, self.j, l]].widen());
        let d_v = per_step(&|l| z(l).map_or(d_y(l), |z| d_y(l) * activation(silu(z))));
        let d_z = per_step(&|l| {
            let slope = |z| d_y(l) * self.ungated(l) * activation(silu_slope(z));
            z(l).map_or(Count::default(), slope)
        });

        // Back along the states.
        let mut d_inputs = Array2::default((states, len));
        let mut d_initial = Vec::with_capacity(states);
        for n in 0..states {
            let mut walk = Walk::new::<S>(self.levels, Count::default());
            let mut later = Count::default();
            for l in (0..len).rev() {
                let mut d_state = d_v[l] * self.c(n, l).exactly(S::COUNT);
                if l + 1 == len {
                    d_state = d_state + d_last(n);
                }
                d_inputs[[n, l]] = walk.step(later, d_state);
                later = self.coeffs[[n, l]];
            }
            d_initial.push(match len {
                0 => d_last(n),
                _ => product::<S>(d_inputs[[n, 0]], later),
            });
        }
        let d_exponents = per_state(&|(n, l)| {
            let before = if l > 0 { self.states[[n, l - 1]] } else { self.initial(n) };
            product::<S>(product::<S>(d_inputs[[n, l]], before), self.coeffs[[n, l]])
        });

        // Back to what the inputs were made of.
        let d_scaled = per_step(&|l| {
            Count::sum((0..states).map(|n| product::<S>(self.b(n, l), d_inputs[[n, l]])))
        });
        let slope = |l| match self.arguments.delta_softplus {
            true => activation(sigmoid(self.delta_given(l))),
            false => Count::exact(1.0),
        };
        let a = |n| exact(self.arguments.a[[self.j, n]]);
        let d_delta = per_step(&|l| {
            let terms = (0..states).map(|n| product::<S>(a(n), d_exponents[[n, l]]));
            (Count::sum(terms) + self.u(l) * d_scaled[l]) * slope(l)
        });
        let d_u = per_step(&|l| {
            let through_states = self.delta[l] * d_scaled[l];
            self.arguments.d.map_or(through_states, |d| through_states + exact(d[self.j]) * d_v[l])
        });
        OfChannel {
            d_u,
            d_delta,
            d_z,
            d_d: per_step(&|l| match self.arguments.d {
                Some(_) => d_v[l] * self.u(l),
                None => Count::default(),
            }),
            d_initial,
            d_a: per_state(&|(n, l)| self.delta[l] * d_exponents[[n, l]]),
            d_b: per_state(&|(n, l)| self.scaled(l) * d_inputs[[n, l]]),
            d_c: per_state(&|(n, l)| d_v[l] * self.states[[n, l]].exactly(S::COUNT)),
        }
    }
}

/// Multiplies two numbers of type `S`; a complex product is rounded more often than a real one.
fn product<S: Element>(a: Count, b: Count) -> Count {
    a.times(b, S::PRODUCT_ROUNDINGS)
}

/// A linear recurrence on counts, as in [`linrec::reference`]: a term passes through one product
/// and one addition in every step, and through the additions of the combining levels.
// ANCHOR: walk
struct Walk {
    levels: f64,
    product_roundings: f64,
    state: Count,
    operations: f64,
    largest: f64,
    product: f64,
    largest_product: f64,
}

impl Walk {
    fn new<S: Element>(levels: usize, state: Count) -> Self {
        let levels = levels as f64;
        let (operations, largest) = (2.0 + levels, state.size);
        // An engine may combine its partial results with the initial state last of all.
        let state = state.rounded(2.0 + levels);
        let product_roundings = S::PRODUCT_ROUNDINGS;
        Walk {
            levels,
            product_roundings,
            state,
            operations,
            largest,
            product: 0.0,
            largest_product: 0.0,
        }
    }

    fn step(&mut self, coeff: Count, input: Count) -> Count {
        let carried = self.state.times(coeff, self.product_roundings);
        self.state = carried + input.rounded(1.0 + self.levels);
        // Products of coefficients may underflow before they meet a state.
        self.operations += 2.0;
        self.largest = self.largest.max(self.state.size);
        self.product = coeff.size * self.product.max(1.0);
        self.largest_product = self.largest_product.max(self.product);
        let factors = (1.0 + self.largest) * (1.0 + self.largest_product);
        let slack = self.state.slack + self.operations * f32::SMALLEST_SUBNORMAL * factors;
        Count { slack, ..self.state }
    }
}
// ANCHOR_END: walk
