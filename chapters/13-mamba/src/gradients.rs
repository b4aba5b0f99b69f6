//! The gradients of a selective scan by everything that went in.

use linrec::Error;
use linrec::cpu::Cpu;
use ndarray::{Array1, Array2, Array3, Array4, ArrayView3, s};
use rayon::prelude::*;

use crate::Real;
use crate::activation::{rounded, silu, silu_slope};
use crate::arguments::{Arguments, Sizes, zeros};
use crate::channel::{self, ChannelGradients, Expanded, contract};
use crate::scan::{Own, Shared};

/// The gradients of a loss, each in the shape of the argument it belongs to.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradients<T> {
    /// Of `u`.
    pub d_u: Array3<T>,
    /// Of `delta` as it was given.
    pub d_delta: Array3<T>,
    /// Of `A`.
    pub d_a: Array2<T>,
    /// Of `B`.
    pub d_b: Array4<T>,
    /// Of `C`.
    pub d_c: Array4<T>,
    /// Of `D`; zero if none was given.
    pub d_d: Array1<T>,
    /// Of `z`; zero if none was given.
    pub d_z: Array3<T>,
    /// Of the bias of `delta`; what it would be if none was given.
    pub d_delta_bias: Array1<T>,
}

/// So many channels are done one after the other: each such piece has its own sums for `B` and `C`.
const PIECE: usize = 32;

/// Computes the gradients of a loss from those of the results: `d_y` `[batch, channels, len]` and, if the
/// loss looks at the last states, `d_last_state` `[batch, channels, states]`.
///
/// The states are computed again, channel by channel, rather than kept from the forward pass. The result is
/// the same for every number of threads.
///
/// # Errors
///
/// If the shapes do not fit together.
pub fn selective_scan_backward<T: Real>(
    cpu: &Cpu,
    arguments: &Arguments<T>,
    d_y: ArrayView3<T>,
    d_last_state: Option<ArrayView3<T>>,
) -> Result<Gradients<T>, Error> {
    let sizes = arguments.sizes()?;
    let Sizes { batch, channels, groups, states, len } = sizes;
    same_shape(("u", arguments.u.shape()), ("d_y", d_y.shape()))?;
    if let Some(d_last_state) = d_last_state {
        let expected = [batch, channels, states];
        same_shape(("last_state", &expected), ("d_last_state", d_last_state.shape()))?;
    }
    let mut gradients = Gradients {
        d_u: zeros((batch, channels, len))?,
        d_delta: zeros((batch, channels, len))?,
        d_a: zeros((channels, states))?,
        d_b: zeros((batch, groups, states, len))?,
        d_c: zeros((batch, groups, states, len))?,
        d_d: zeros(channels)?,
        d_z: zeros((batch, channels, len))?,
        d_delta_bias: zeros(channels)?,
    };
    if d_y.is_empty() {
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
    // In a fixed order, so that the sums do not depend on which thread was first.
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

/// What all pieces need.
struct Way<'w, 'a, T: Clone> {
    cpu: Cpu,
    arguments: &'w Arguments<'a, T>,
    d_y: ArrayView3<'w, T>,
    d_last_state: Option<ArrayView3<'w, T>>,
    shared: Shared<'a, T>,
    sizes: Sizes,
}

/// The gradients of a piece.
struct PieceGradients<T> {
    piece: Piece,
    channels: Vec<OfChannel<T>>,
    d_b: Vec<T>,
    d_c: Vec<T>,
}

/// The gradients of a channel, through everything around its recurrence.
struct OfChannel<T> {
    inner: ChannelGradients<T>,
    d_d: T,
    d_z: Vec<T>,
}

impl<T: Real> Way<'_, '_, T> {
    fn back(&self, piece: Piece) -> Result<PieceGradients<T>, Error> {
        let Sizes { states, len, .. } = self.sizes;
        let mut rooms = (Expanded::new(states, len), Expanded::new(states, len));
        let mut d_b = vec![T::zero(); states * len];
        let mut d_c = vec![T::zero(); states * len];
        let channels = piece
            .channels
            .clone()
            .map(|number| self.channel((piece.batch, number), (&mut d_b, &mut d_c), &mut rooms));
        let channels = channels.collect::<Result<_, _>>()?;
        Ok(PieceGradients { piece, channels, d_b, d_c })
    }

    // ANCHOR: around
    fn channel(
        &self,
        (batch, number): (usize, usize),
        (d_b, d_c): (&mut [T], &mut [T]),
        (expanded, room): &mut (Expanded<T>, Expanded<T>),
    ) -> Result<OfChannel<T>, Error> {
        let own = Own::of(self.arguments, batch, number);
        let channel = own.channel(&self.shared, batch);
        expanded.states(&self.cpu, &channel)?;

        // y = v silu(z) with v = Σ C h + D u: both factors hear of it.
        let mut d_v = self.d_y.slice(s![batch, number, ..]).to_vec();
        let mut d_z = vec![T::zero(); d_v.len()];
        if let Some(z) = &own.z {
            let mut v = vec![T::zero(); d_v.len()];
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
            channel::backward(&self.cpu, &channel, expanded, d_results, (d_b, d_c), room)?;

        // D u, and the way from Δ to what was given.
        let mut d_d = T::zero();
        if let Some(d) = own.d {
            for ((d_u, &d_v), &u) in inner.d_u.iter_mut().zip(&d_v).zip(own.u.iter()) {
                *d_u += d * d_v;
                d_d += d_v * u;
            }
        }
        for (d_delta, slope) in inner.d_delta.iter_mut().zip(own.delta_slopes()) {
            *d_delta = *d_delta * slope;
        }
        Ok(OfChannel { inner, d_d, d_z })
    }
    // ANCHOR_END: around
}

impl<T: Real> PieceGradients<T> {
    fn add_to(self, gradients: &mut Gradients<T>, sizes: Sizes) {
        let batch = self.piece.batch;
        let group = self.piece.channels.start / sizes.group_size().max(1);
        for (sums, piece) in [(&mut gradients.d_b, self.d_b), (&mut gradients.d_c, self.d_c)] {
            let sums = sums.slice_mut(s![batch, group, .., ..]);
            for (sum, share) in sums.into_iter().zip(piece) {
                *sum += share;
            }
        }
        for (number, OfChannel { inner, d_d, d_z }) in self.piece.channels.zip(self.channels) {
            gradients.d_delta_bias[number] += inner.d_delta.iter().fold(T::zero(), |a, &b| a + b);
            gradients.d_d[number] += d_d;
            for (sum, share) in gradients.d_a.row_mut(number).iter_mut().zip(inner.d_a) {
                *sum += share;
            }
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

fn same_shape(
    expected: (&'static str, &[usize]),
    given: (&'static str, &[usize]),
) -> Result<(), Error> {
    linrec::validate::same_shape("selective scan backward", expected, given)
}
