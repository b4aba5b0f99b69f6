//! One channel of a selective scan: its states are the sequences of a linear recurrence.
//!
//! All arrays are slices, with `len` numbers for an array that a channel has once and
//! `states · len` for an array that each of its states has, row by row. Nothing in the loops keeps
//! a compiler from vector instructions, and [`Arch::dispatch`] has them compiled for several
//! instruction sets. No product is fused with a sum, so all instruction sets compute the same bits.
//!
//! The closures take ownership of the slices they write to (`let y = y`), so that they can be
//! called only once. A closure that can be called again reaches `dispatch` through a function that
//! is not compiled for the wider instructions, and then the closure is not either.
//! `tests/suite/scan.rs` tests this module through [`selective_scan`](crate::selective_scan).

use linrec::cpu::Cpu;
use linrec::{Engine, Error, Options};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2};
use num_traits::Zero;
use pulp::Arch;

use crate::State;

/// The inputs of one channel.
#[derive(Debug, Clone, Copy)]
pub struct Channel<'a, S: State> {
    /// `u_l`, `len` numbers.
    pub u: &'a [S::Real],
    /// `Δ_l`, after bias and softplus, `len` numbers.
    pub delta: &'a [S::Real],
    /// `A_n`, `states` numbers.
    pub a: &'a [S],
    /// `B_{n,l}`, `[states, len]`.
    pub b: &'a [S],
    /// `C_{n,l}`, `[states, len]`.
    pub c: &'a [S],
    /// The states before the first step, `states` numbers; `None` means zero.
    pub initial: Option<ArrayView1<'a, S>>,
}

impl<'a, S: State> Channel<'a, S> {
    fn options(&self) -> Options<'a, S> {
        Options { initial: self.initial.map(Into::into), ..Options::default() }
    }
}

/// The arrays of one channel that have the states' dimension, `[states, len]`.
///
/// Every channel overwrites them. With a thousand steps and 16 states each array takes 64 KiB and
/// stays in a core's cache.
#[derive(Debug)]
pub struct Expanded<S: State> {
    /// The inputs of the recurrence, `x = Δ B u`.
    pub inputs: Array2<S>,
    /// The coefficients of the recurrence, `c = e^(Δ A)`.
    pub coeffs: Array2<S>,
    /// The outputs of the recurrence, the states `h`.
    pub outputs: Array2<S>,
    /// `Δ u`, `len` numbers.
    scaled: Vec<S::Real>,
}

impl<S: State> Expanded<S> {
    /// Allocates the arrays for one channel.
    pub fn new(states: usize, len: usize) -> Self {
        let zeros = || Array2::zeros((states, len));
        let scaled = vec![S::Real::zero(); len];
        Expanded { inputs: zeros(), coeffs: zeros(), outputs: zeros(), scaled }
    }

    /// Computes the states of a channel and returns the last ones.
    ///
    /// # Errors
    ///
    /// Returns an error if the engine fails.
    // ANCHOR: channel
    pub fn states(
        &mut self,
        engine: &dyn Engine<S>,
        channel: &Channel<S>,
    ) -> Result<Array1<S>, Error> {
        let Expanded { inputs, coeffs, outputs, scaled } = self;
        expand(channel, slice(inputs), slice(coeffs), scaled);
        engine.forward_into(inputs.view(), coeffs.view(), &channel.options(), outputs.view_mut())
    }
    // ANCHOR_END: channel
}

/// Computes the inputs and coefficients of the recurrence; `scaled` becomes `Δ u`.
// ANCHOR: expand
pub fn expand<S: State>(
    channel: &Channel<S>,
    inputs: &mut [S],
    coeffs: &mut [S],
    scaled: &mut [S::Real],
) {
    let &Channel { u, delta, a, b, .. } = channel;
    let len = delta.len().max(1);
    Arch::new().dispatch(
        #[inline(always)]
        move || {
            let (inputs, coeffs, scaled) = (inputs, coeffs, scaled);
            for ((scaled, &delta), &u) in scaled.iter_mut().zip(delta).zip(u) {
                *scaled = delta * u;
            }
            let rows = coeffs.chunks_exact_mut(len).zip(inputs.chunks_exact_mut(len));
            for (((coeffs, inputs), &a), b) in rows.zip(a).zip(b.chunks_exact(len)) {
                for (coeff, &delta) in coeffs.iter_mut().zip(delta) {
                    *coeff = a.times(delta).exponential();
                }
                for ((input, &scaled), &b) in inputs.iter_mut().zip(scaled.iter()).zip(b) {
                    *input = b.times(scaled);
                }
            }
        },
    );
}
// ANCHOR_END: expand

/// Computes `y_l = Σ_n C_{n,l} h_{n,l}`, or twice its real part if states are complex.
// ANCHOR: contract
pub fn contract<S: State>(c: &[S], states: &[S], y: &mut [S::Real]) {
    let len = y.len().max(1);
    Arch::new().dispatch(
        #[inline(always)]
        move || {
            let y = y;
            y.fill(S::Real::zero());
            for (c, states) in c.chunks_exact(len).zip(states.chunks_exact(len)) {
                for ((y, &c), &state) in y.iter_mut().zip(c).zip(states) {
                    *y += state.read(c);
                }
            }
        },
    );
}
// ANCHOR_END: contract

/// Returns the elements of an array in standard layout.
pub fn slice<T>(array: &mut Array2<T>) -> &mut [T] {
    array.as_slice_mut().unwrap_or_default()
}

/// The gradients of one channel.
#[derive(Debug)]
pub struct ChannelGradients<S: State> {
    /// The gradient with respect to `u_l`, through the states only.
    pub d_u: Vec<S::Real>,
    /// The gradient with respect to `Δ_l`.
    pub d_delta: Vec<S::Real>,
    /// The gradient with respect to `A_n`.
    pub d_a: Vec<S>,
    /// The gradient with respect to the states before the first step.
    pub d_initial: Array1<S>,
}

/// Computes the gradients of one channel.
///
/// `d_y` is the gradient with respect to the result of [`contract`], and `d_last` with respect to
/// the last states. The gradients of `B` and `C`, which other channels may share, are added to
/// `d_b` and `d_c`.
///
/// # Errors
///
/// Returns an error if the engine fails.
// ANCHOR: backward
pub fn backward<S: State>(
    cpu: &Cpu,
    channel: &Channel<S>,
    expanded: &Expanded<S>,
    (d_y, d_last): (&[S::Real], &[S]),
    (d_b, d_c): (&mut [S], &mut [S]),
    scratch: &mut Expanded<S>,
) -> Result<ChannelGradients<S>, Error> {
    let len = d_y.len();
    // y = Σ C h: the gradient reaches every state through the state's own C.
    let d_states = slice(&mut scratch.inputs);
    outer(d_y, channel.c, d_states);
    add_read(d_y, expanded.outputs.view(), d_c);
    for (row, &d_last) in d_states.chunks_exact_mut(len.max(1)).zip(d_last) {
        row[len - 1] += d_last;
    }

    // The recurrence.
    let d_initial = cpu.backward_into(
        scratch.inputs.view(),
        expanded.coeffs.view(),
        expanded.outputs.view(),
        &channel.options(),
        scratch.outputs.view_mut(),
        scratch.coeffs.view_mut(),
    )?;

    // Back through c = e^(Δ A) and x = Δ u B.
    add_products(&expanded.scaled, scratch.outputs.view(), d_b);
    let zeros = || vec![S::Real::zero(); len];
    let (mut d_u, mut d_delta) = (zeros(), zeros());
    let mut d_a = vec![S::zero(); channel.a.len()];
    let arrays = [&scratch.outputs, &scratch.coeffs, &expanded.coeffs];
    for (n, d_a) in d_a.iter_mut().enumerate() {
        let rows = arrays.map(|array| &array.as_slice().unwrap_or_default()[n * len..][..len]);
        let b = &channel.b[n * len..][..len];
        *d_a = chain(channel.delta, channel.a[n], b, rows, (&mut d_u, &mut d_delta));
    }
    // Here d_u is Σ B δ. It goes on to both factors of Δ u.
    for (l, d_u) in d_u.iter_mut().enumerate() {
        d_delta[l] += channel.u[l] * *d_u;
        *d_u = channel.delta[l] * *d_u;
    }
    Ok(ChannelGradients { d_u, d_delta, d_a, d_initial })
}
// ANCHOR_END: backward

/// Adds a state's `B δ` and `A ∂/∂(ΔA)` to the two sums, and returns the gradient of `A`.
// ANCHOR: chain
fn chain<S: State>(
    delta: &[S::Real],
    a: S,
    b: &[S],
    [d_inputs, d_coeffs, coeffs]: [&[S]; 3],
    (d_scaled, d_delta): (&mut [S::Real], &mut [S::Real]),
) -> S {
    Arch::new().dispatch(
        #[inline(always)]
        move || {
            let (d_scaled, d_delta) = (d_scaled, d_delta);
            for ((sum, &b), &d_input) in d_scaled.iter_mut().zip(b).zip(d_inputs) {
                *sum += b.dot(d_input);
            }
            let mut d_a = S::zero();
            let exponents = d_coeffs.iter().zip(coeffs).map(|(&d, &coeff)| d * coeff.conjugate());
            for ((sum, &delta), d_exponent) in d_delta.iter_mut().zip(delta).zip(exponents) {
                *sum += a.dot(d_exponent);
                d_a += d_exponent.times(delta);
            }
            d_a
        },
    )
}
// ANCHOR_END: chain

/// Writes the gradient of the other factor of a sum over the states, where `factors`
/// `[states, len]` is one factor and `row` the gradient of the sum.
fn outer<S: State>(row: &[S::Real], factors: &[S], products: &mut [S]) {
    let len = row.len().max(1);
    Arch::new().dispatch(
        #[inline(always)]
        move || {
            let products = products;
            for (products, factors) in products.chunks_exact_mut(len).zip(factors.chunks_exact(len))
            {
                for ((product, &d), &factor) in products.iter_mut().zip(row).zip(factors) {
                    *product = factor.read_back(d);
                }
            }
        },
    );
}

/// Adds to `sums` `[states, len]` what [`outer`] computes from `factors` of the same shape.
fn add_read<S: State>(row: &[S::Real], factors: ArrayView2<S>, sums: &mut [S]) {
    let len = row.len().max(1);
    let factors = factors.to_slice().unwrap_or_default();
    Arch::new().dispatch(
        #[inline(always)]
        move || {
            let sums = sums;
            for (sums, factors) in sums.chunks_exact_mut(len).zip(factors.chunks_exact(len)) {
                for ((sum, &d), &factor) in sums.iter_mut().zip(row).zip(factors) {
                    *sum += factor.read_back(d);
                }
            }
        },
    );
}

/// Adds `row_l · factors_{n,l}` to `sums_{n,l}`.
fn add_products<S: State>(row: &[S::Real], factors: ArrayView2<S>, sums: &mut [S]) {
    let len = row.len().max(1);
    let factors = factors.to_slice().unwrap_or_default();
    Arch::new().dispatch(
        #[inline(always)]
        move || {
            let sums = sums;
            for (sums, factors) in sums.chunks_exact_mut(len).zip(factors.chunks_exact(len)) {
                for ((sum, &x), &factor) in sums.iter_mut().zip(row).zip(factors) {
                    *sum += factor.times(x);
                }
            }
        },
    );
}
