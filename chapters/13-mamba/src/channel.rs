//! One channel of a selective scan: its states are the sequences of a linear recurrence.
//!
//! All arrays are slices: `len` numbers for what a channel has once, `states · len` for what each
//! of its states has, row by row. The loops contain nothing that keeps a compiler from vector
//! instructions, and [`Arch::dispatch`] has them compiled for several instruction sets. Since no
//! product and sum are fused, all of them compute the same bits.
//!
//! The closures take what they write to for themselves (`let y = y`), so that they can be called
//! once only. To a closure that can be called again, `dispatch` gets by way of a function that is
//! not compiled for the wider instructions, and neither is the closure then.

use linrec::cpu::Cpu;
use linrec::{Engine, Error, Options};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2};
use num_traits::Zero;
use pulp::Arch;

use crate::State;

/// What a channel reads.
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
    /// What the recurrence is asked for.
    fn options(&self) -> Options<'a, S> {
        Options { initial: self.initial.map(Into::into), ..Options::default() }
    }
}

/// The arrays of a channel that exist for each of its states, `[states, len]`.
///
/// They are written again for every channel. For a thousand steps and 16 states each takes 64 KiB,
/// so that they stay in a core's cache.
#[derive(Debug)]
pub struct Expanded<S: State> {
    /// The recurrence's inputs `x = Δ B u`.
    pub inputs: Array2<S>,
    /// Its coefficients `c = e^(Δ A)`.
    pub coeffs: Array2<S>,
    /// Its outputs, the states `h`.
    pub outputs: Array2<S>,
    /// `Δ u`, `len` numbers.
    scaled: Vec<S::Real>,
}

impl<S: State> Expanded<S> {
    /// Room for one channel.
    pub fn new(states: usize, len: usize) -> Self {
        let zeros = || Array2::zeros((states, len));
        let scaled = vec![S::Real::zero(); len];
        Expanded { inputs: zeros(), coeffs: zeros(), outputs: zeros(), scaled }
    }

    /// Computes the states of a channel; returns the last ones.
    ///
    /// # Errors
    ///
    /// The engine's.
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

/// Computes the recurrence's inputs and coefficients; `scaled` becomes `Δ u`.
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

/// `y_l = Σ_n C_{n,l} h_{n,l}`, or twice the real part of it.
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

/// The elements of an array in standard layout.
pub fn slice<T>(array: &mut Array2<T>) -> &mut [T] {
    array.as_slice_mut().unwrap_or_default()
}

/// The gradients of one channel.
#[derive(Debug)]
pub struct ChannelGradients<S: State> {
    /// Of `u_l` (what reaches it through the states).
    pub d_u: Vec<S::Real>,
    /// Of `Δ_l`.
    pub d_delta: Vec<S::Real>,
    /// Of `A_n`.
    pub d_a: Vec<S>,
    /// Of the states before the first step.
    pub d_initial: Array1<S>,
}

/// The way back through one channel.
///
/// `d_y` is the gradient of [`contract`]'s result, `d_last` of the last states; the gradients of
/// `B` and `C`, which other channels may share, are added to `d_b` and `d_c`.
///
/// # Errors
///
/// The engine's.
// ANCHOR: backward
pub fn backward<S: State>(
    cpu: &Cpu,
    channel: &Channel<S>,
    expanded: &Expanded<S>,
    (d_y, d_last): (&[S::Real], &[S]),
    (d_b, d_c): (&mut [S], &mut [S]),
    room: &mut Expanded<S>,
) -> Result<ChannelGradients<S>, Error> {
    let len = d_y.len();
    // y = Σ C h: every state hears of it through its own C.
    let d_states = slice(&mut room.inputs);
    outer(d_y, channel.c, d_states);
    add_read(d_y, expanded.outputs.view(), d_c);
    for (row, &d_last) in d_states.chunks_exact_mut(len.max(1)).zip(d_last) {
        row[len - 1] += d_last;
    }

    // The recurrence.
    let d_initial = cpu.backward_into(
        room.inputs.view(),
        expanded.coeffs.view(),
        expanded.outputs.view(),
        &channel.options(),
        room.outputs.view_mut(),
        room.coeffs.view_mut(),
    )?;

    // c = e^(Δ A) and x = Δ u B: what they were made of.
    add_products(&expanded.scaled, room.outputs.view(), d_b);
    let zeros = || vec![S::Real::zero(); len];
    let (mut d_u, mut d_delta) = (zeros(), zeros());
    let mut d_a = vec![S::zero(); channel.a.len()];
    let arrays = [&room.outputs, &room.coeffs, &expanded.coeffs];
    for (n, d_a) in d_a.iter_mut().enumerate() {
        let rows = arrays.map(|array| &array.as_slice().unwrap_or_default()[n * len..][..len]);
        let b = &channel.b[n * len..][..len];
        *d_a = chain(channel.delta, channel.a[n], b, rows, (&mut d_u, &mut d_delta));
    }
    // So far d_u is Σ B δ. It goes on to both factors of Δ u.
    for (l, d_u) in d_u.iter_mut().enumerate() {
        d_delta[l] += channel.u[l] * *d_u;
        *d_u = channel.delta[l] * *d_u;
    }
    Ok(ChannelGradients { d_u, d_delta, d_a, d_initial })
}
// ANCHOR_END: backward

/// One state's share: adds `B δ` to the first sum and `A ∂/∂(ΔA)` to the second, and returns `A`'s
/// gradient.
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

/// What `factors` `[states, len]` hear of a sum over the states that they were read in, whose
/// gradient is `row`.
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

/// Adds to `sums` `[states, len]` what `factors`, of the same shape, hear of a sum over the states
/// that they were read in, whose gradient is `row`.
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

/// `sums_{n,l} += row_l · factors_{n,l}`.
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
