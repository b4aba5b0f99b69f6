//! The gradients of a selective scan with respect to all its arguments.
//!
//! The states are computed again, channel by channel, and never stored for the whole problem: the
//! scratch of a channel stays in a core's cache. Channels are dealt to threads in pieces of fixed
//! size, and the pieces' sums for `B` and `C` are added in a fixed order, so that the result has
//! the same bits for every number of threads. `tests/suite/scan.rs` compares all of them with
//! Mamba's own gradients and with the bound of [`bounds`](crate::bounds).

use linrec::Error;
use linrec::cpu::Cpu;
use ndarray::{Array1, Array2, Array3, Array4, ArrayView3, s};
use num_traits::Zero;
use rayon::prelude::*;

use crate::State;
use crate::activation::{rounded, silu, silu_slope};
use crate::arguments::{Arguments, Mixing, MixingArray, MixingView, Sizes, zeros};
use crate::channel::{self, ChannelGradients, Expanded, contract};
use crate::scan::{Own, Shared};

/// The gradients of a loss, each in the shape of its argument.
///
/// Gradients of complex numbers follow PyTorch's convention, as in the library: a step against the
/// gradient reduces the loss.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradients<S: State> {
    /// The gradient with respect to `u`.
    pub d_u: Array3<S::Real>,
    /// The gradient with respect to `delta` before bias and softplus.
    pub d_delta: Array3<S::Real>,
    /// The gradient with respect to `A`.
    pub d_a: Array2<S>,
    /// The gradient with respect to `B`.
    pub d_b: MixingArray<S>,
    /// The gradient with respect to `C`.
    pub d_c: MixingArray<S>,
    /// The gradient with respect to `D`; zero if `D` was not given.
    pub d_d: Array1<S::Real>,
    /// The gradient with respect to `z`; zero if `z` was not given.
    pub d_z: Array3<S::Real>,
    /// The gradient with respect to the bias of `delta`, or to a bias of zero if none was given.
    pub d_delta_bias: Array1<S::Real>,
    /// The gradient with respect to the initial states, or to zeros if none were given.
    pub d_initial: Array3<S>,
}

impl<S: State> Gradients<S> {
    fn zeros(arguments: &Arguments<S>, sizes: Sizes) -> Result<Self, Error> {
        let Sizes { batch, channels, groups, states, len } = sizes;
        let mixing = |of: MixingView<S>| -> Result<MixingArray<S>, Error> {
            Ok(match of {
                Mixing::Varying(_) => Mixing::Varying(zeros((batch, groups, states, len))?),
                Mixing::Fixed(_) => Mixing::Fixed(zeros((channels, states))?),
            })
        };
        Ok(Gradients {
            d_u: zeros((batch, channels, len))?,
            d_delta: zeros((batch, channels, len))?,
            d_a: zeros((channels, states))?,
            d_b: mixing(arguments.b)?,
            d_c: mixing(arguments.c)?,
            d_d: zeros(channels)?,
            d_z: zeros((batch, channels, len))?,
            d_delta_bias: zeros(channels)?,
            d_initial: zeros((batch, channels, states))?,
        })
    }
}

/// The number of channels in a piece. A thread computes them one after the other, with sums for `B`
/// and `C` that belong to the piece.
const PIECE: usize = 32;

/// Computes the gradients of a loss from its gradients with respect to the results: `d_y`
/// `[batch, channels, len]` and, if the loss depends on the last states, `d_last_state`
/// `[batch, channels, states]`.
///
/// The states are computed again, channel by channel, rather than saved from the forward pass. The
/// result is the same for every number of threads.
///
/// # Errors
///
/// Returns an error if the shapes do not fit together.
pub fn selective_scan_backward<S: State>(
    cpu: &Cpu,
    arguments: &Arguments<S>,
    d_y: ArrayView3<S::Real>,
    d_last_state: Option<ArrayView3<S>>,
) -> Result<Gradients<S>, Error> {
    let sizes = arguments.sizes()?;
    same_shape(("u", arguments.u.shape()), ("d_y", d_y.shape()))?;
    let mut gradients = Gradients::zeros(arguments, sizes)?;
    if let Some(d_last_state) = d_last_state {
        let expected = ("last_state", gradients.d_initial.shape());
        same_shape(expected, ("d_last_state", d_last_state.shape()))?;
    }
    if d_y.is_empty() {
        // Without steps the last states are the initial ones.
        if let Some(d_last_state) = d_last_state {
            gradients.d_initial.assign(&d_last_state);
        }
        return Ok(gradients);
    }
    let cpu = cpu.clone().single_threaded();
    let way = Way {
        cpu,
        arguments,
        d_y: d_y.reborrow(),
        d_last_state: d_last_state.as_ref().map(|d| d.reborrow()),
        shared: Shared::new(arguments, sizes),
        sizes,
    };
    let pieces: Vec<_> = pieces(sizes).into_par_iter().map(|piece| way.back(piece)).collect();
    // The order is fixed, so that the sums do not depend on which thread finishes first.
    for piece in pieces {
        piece?.add_to(&mut gradients, sizes);
    }
    Ok(gradients)
}

/// Some channels of one sequence and one group.
#[derive(Debug, Clone)]
struct Piece {
    batch: usize,
    channels: std::ops::Range<usize>,
}

fn pieces(sizes: Sizes) -> Vec<Piece> {
    let size = sizes.group_size();
    let mut pieces = Vec::new();
    for batch in 0..sizes.batch {
        for group in 0..sizes.groups {
            for first in (0..size).step_by(PIECE) {
                let channels = group * size + first..group * size + (first + PIECE).min(size);
                pieces.push(Piece { batch, channels });
            }
        }
    }
    pieces
}

/// The inputs that all pieces share.
struct Way<'w, 'a, S: State> {
    cpu: Cpu,
    arguments: &'w Arguments<'a, S>,
    d_y: ArrayView3<'w, S::Real>,
    d_last_state: Option<ArrayView3<'w, S>>,
    shared: Shared<'a, S>,
    sizes: Sizes,
}

/// The gradients of a piece.
struct PieceGradients<S: State> {
    piece: Piece,
    channels: Vec<OfChannel<S>>,
    /// Sums for what the group shares, `[states, len]`; unused for a fixed `B` or `C`.
    d_b: Vec<S>,
    d_c: Vec<S>,
}

/// The gradients of a channel, including the operations around its recurrence.
struct OfChannel<S: State> {
    inner: ChannelGradients<S>,
    d_d: S::Real,
    d_z: Vec<S::Real>,
    /// The gradients of `B` and `C` where these are fixed, for each state.
    d_fixed: [Option<Vec<S>>; 2],
}

impl<S: State> Way<'_, '_, S> {
    fn back(&self, piece: Piece) -> Result<PieceGradients<S>, Error> {
        let Sizes { states, len, .. } = self.sizes;
        let mut scratches = (Expanded::new(states, len), Expanded::new(states, len));
        let are_fixed = [self.arguments.b.is_fixed(), self.arguments.c.is_fixed()];
        let mut shared = [vec![S::zero(); states * len], vec![S::zero(); states * len]];
        let mut channels = Vec::with_capacity(piece.channels.len());
        for number in piece.channels.clone() {
            let [d_b, d_c] = &mut shared;
            let mut channel = self.channel((piece.batch, number), (d_b, d_c), &mut scratches)?;
            // A fixed B or C belongs to one channel: sum over the positions.
            for (i, sums) in shared.iter_mut().enumerate().filter(|(i, _)| are_fixed[*i]) {
                let rows = sums.chunks_exact(len);
                let sum = |row: &[S]| row.iter().fold(S::zero(), |sum, &term| sum + term);
                channel.d_fixed[i] = Some(rows.map(sum).collect());
                sums.fill(S::zero());
            }
            channels.push(channel);
        }
        let [d_b, d_c] = shared;
        Ok(PieceGradients { piece, channels, d_b, d_c })
    }

    // ANCHOR: around
    fn channel(
        &self,
        (batch, number): (usize, usize),
        (d_b, d_c): (&mut [S], &mut [S]),
        (expanded, scratch): &mut (Expanded<S>, Expanded<S>),
    ) -> Result<OfChannel<S>, Error> {
        let own = Own::of(self.arguments, &self.shared, batch, number);
        let channel = own.channel();
        expanded.states(&self.cpu, &channel)?;

        // y = v silu(z) with v = Σ C h + D u: the gradient goes to both factors.
        let mut d_v = self.d_y.slice(s![batch, number, ..]).to_vec();
        let mut d_z = vec![S::Real::zero(); d_v.len()];
        if let Some(z) = &own.z {
            let mut v = vec![S::Real::zero(); d_v.len()];
            contract(channel.c, expanded.outputs.as_slice().unwrap_or_default(), &mut v);
            own.skip(&mut v);
            for (l, &z) in z.iter().enumerate() {
                d_z[l] = d_v[l] * v[l] * rounded(silu_slope, z);
                d_v[l] = d_v[l] * rounded(silu, z);
            }
        }

        let d_last = self.d_last_state.map(|d| d.slice(s![batch, number, ..]).to_vec());
        let d_results = (&d_v[..], &d_last.unwrap_or_default()[..]);
        let mut inner =
            channel::backward(&self.cpu, &channel, expanded, d_results, (d_b, d_c), scratch)?;

        // D u, and from Δ back to the given delta.
        let mut d_d = S::Real::zero();
        if let Some(d) = own.d {
            for ((d_u, &d_v), &u) in inner.d_u.iter_mut().zip(&d_v).zip(own.u.iter()) {
                *d_u += d * d_v;
                d_d += d_v * u;
            }
        }
        for (d_delta, slope) in inner.d_delta.iter_mut().zip(own.delta_slopes()) {
            *d_delta = *d_delta * slope;
        }
        Ok(OfChannel { inner, d_d, d_z, d_fixed: [None, None] })
    }
    // ANCHOR_END: around
}

impl<S: State> PieceGradients<S> {
    fn add_to(self, gradients: &mut Gradients<S>, sizes: Sizes) {
        let batch = self.piece.batch;
        let group = self.piece.channels.start / sizes.group_size();
        let Gradients { d_b, d_c, .. } = gradients;
        for (sums, piece) in [(&mut *d_b, self.d_b), (&mut *d_c, self.d_c)] {
            if let Mixing::Varying(sums) = sums {
                add(sums, (batch, group), &piece);
            }
        }
        for (number, of_channel) in self.piece.channels.zip(self.channels) {
            let OfChannel { inner, d_d, d_z, d_fixed } = of_channel;
            gradients.d_delta_bias[number] +=
                inner.d_delta.iter().fold(S::Real::zero(), |sum, &term| sum + term);
            gradients.d_d[number] += d_d;
            let [fixed_b, fixed_c] = d_fixed;
            let Gradients { d_a, d_b, d_c, d_initial, .. } = gradients;
            let fixed = [(d_b, fixed_b), (d_c, fixed_c)].into_iter().filter_map(|(sums, share)| {
                let Mixing::Fixed(sums) = sums else { return None };
                Some((sums, share?))
            });
            for (sums, share) in fixed.chain([(d_a, inner.d_a)]) {
                for (sum, share) in sums.row_mut(number).iter_mut().zip(share) {
                    *sum += share;
                }
            }
            d_initial.slice_mut(s![batch, number, ..]).assign(&inner.d_initial);
            let rows = [
                (&mut gradients.d_u, inner.d_u),
                (&mut gradients.d_delta, inner.d_delta),
                (&mut gradients.d_z, d_z),
            ];
            for (array, row) in rows {
                array.slice_mut(s![batch, number, ..]).assign(&Array1::from(row));
            }
        }
    }
}

/// Adds a matrix `[states, len]` to the matrix of a group.
fn add<S: State>(sums: &mut Array4<S>, (batch, group): (usize, usize), terms: &[S]) {
    for (sum, &term) in sums.slice_mut(s![batch, group, .., ..]).into_iter().zip(terms) {
        *sum += term;
    }
}

fn same_shape(
    expected: (&'static str, &[usize]),
    given: (&'static str, &[usize]),
) -> Result<(), Error> {
    linrec::validate::same_shape("selective scan backward", expected, given)
}
