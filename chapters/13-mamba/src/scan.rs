//! The selective scan with everything that Mamba's own function has, one channel at a time.

use std::borrow::Cow;

use linrec::Error;
use linrec::cpu::Cpu;
use ndarray::{Array2, Array3, ArrayView1, ArrayView2, s};
use rayon::prelude::*;

use crate::Real;
use crate::activation::{rounded, silu, softplus};
use crate::arguments::{Arguments, Sizes, zeros};
use crate::channel::{Channel, Expanded, contract};

/// What a selective scan computes.
#[derive(Debug, Clone, PartialEq)]
pub struct Output<T> {
    /// `[batch, channels, len]`.
    pub y: Array3<T>,
    /// The states after the last step, `[batch, channels, states]`.
    pub last_state: Array3<T>,
}

/// Computes a selective scan; channels are dealt to the threads of the current rayon pool.
///
/// The result is the same for every number of threads. The recurrences are computed with the vector
/// instructions of `cpu`.
///
/// # Errors
///
/// If the shapes do not fit together.
// ANCHOR: selective_scan
pub fn selective_scan<T: Real>(cpu: &Cpu, arguments: &Arguments<T>) -> Result<Output<T>, Error> {
    let sizes = arguments.sizes()?;
    let mut y = zeros((sizes.batch, sizes.channels, sizes.len))?;
    let mut last_state = zeros((sizes.batch, sizes.channels, sizes.states))?;
    if y.is_empty() {
        return Ok(Output { y, last_state });
    }
    // One thread is enough for one channel; the others have channels of their own.
    let cpu = cpu.clone().single_threaded();
    let shared = Shared::new(arguments, sizes);
    let rows = y.as_slice_mut().unwrap_or_default().par_chunks_exact_mut(sizes.len);
    let states = last_state.rows_mut().into_iter().collect::<Vec<_>>();
    rows.zip(states).enumerate().try_for_each_init(
        || Expanded::new(sizes.states, sizes.len),
        |expanded, (index, (y, mut last_state))| {
            let (batch, number) = (index / sizes.channels, index % sizes.channels);
            let own = Own::of(arguments, batch, number);
            last_state.assign(&expanded.states(&cpu, &own.channel(&shared, batch))?);
            contract(shared.c(batch, number), expanded.outputs.as_slice().unwrap_or_default(), y);
            own.finish(y);
            Ok(())
        },
    )?;
    Ok(Output { y, last_state })
}
// ANCHOR_END: selective_scan

/// What groups of channels share, contiguous.
pub(crate) struct Shared<'a, T: Clone> {
    sizes: Sizes,
    b: Vec<Cow<'a, [T]>>,
    c: Vec<Cow<'a, [T]>>,
}

impl<'a, T: Real> Shared<'a, T> {
    pub(crate) fn new(arguments: &Arguments<'a, T>, sizes: Sizes) -> Self {
        let all = |array: ndarray::ArrayView4<'a, T>| {
            let pairs = (0..sizes.batch).flat_map(|i| (0..sizes.groups).map(move |g| (i, g)));
            pairs.map(|(i, g)| flat(array.slice_move(s![i, g, .., ..]))).collect()
        };
        Shared { sizes, b: all(arguments.b), c: all(arguments.c) }
    }

    fn index(&self, batch: usize, channel: usize) -> usize {
        batch * self.sizes.groups + channel / self.sizes.group_size().max(1)
    }

    /// `B` of a channel, `[states, len]`.
    pub(crate) fn b(&self, batch: usize, channel: usize) -> &[T] {
        &self.b[self.index(batch, channel)]
    }

    /// `C` of a channel, `[states, len]`.
    pub(crate) fn c(&self, batch: usize, channel: usize) -> &[T] {
        &self.c[self.index(batch, channel)]
    }
}

/// What belongs to one channel of one sequence alone.
pub(crate) struct Own<'a, T: Clone> {
    number: usize,
    pub(crate) u: Cow<'a, [T]>,
    /// As given.
    delta_given: Cow<'a, [T]>,
    /// After bias and softplus.
    pub(crate) delta: Vec<T>,
    a: Cow<'a, [T]>,
    pub(crate) d: Option<T>,
    pub(crate) z: Option<Cow<'a, [T]>>,
    bias: f64,
    softplus: bool,
}

impl<'a, T: Real> Own<'a, T> {
    pub(crate) fn of(arguments: &Arguments<'a, T>, batch: usize, number: usize) -> Self {
        let row =
            |array: ndarray::ArrayView3<'a, T>| contiguous(array.slice_move(s![batch, number, ..]));
        let mut own = Own {
            number,
            u: row(arguments.u),
            delta_given: row(arguments.delta),
            delta: Vec::new(),
            a: contiguous(arguments.a.slice_move(s![number, ..])),
            d: arguments.d.map(|d| d[number]),
            z: arguments.z.map(row),
            bias: arguments.delta_bias.map_or(0.0, |bias| bias[number].widen()),
            softplus: arguments.delta_softplus,
        };
        own.delta = own.reparametrised();
        own
    }

    /// `Δ`: the given one with its bias, made positive.
    // ANCHOR: delta
    fn reparametrised(&self) -> Vec<T> {
        let make = |x: f64| if self.softplus { softplus(x) } else { x };
        self.delta_given.iter().map(|&delta| rounded(|x| make(x + self.bias), delta)).collect()
    }
    // ANCHOR_END: delta

    /// The slopes of `Δ` by what was given.
    pub(crate) fn delta_slopes(&self) -> impl Iterator<Item = T> {
        let slope = |x: f64| if self.softplus { crate::activation::sigmoid(x) } else { 1.0 };
        self.delta_given.iter().map(move |&delta| rounded(|x| slope(x + self.bias), delta))
    }

    pub(crate) fn channel<'s>(&'s self, shared: &'s Shared<T>, batch: usize) -> Channel<'s, T> {
        Channel {
            u: &self.u,
            delta: &self.delta,
            a: &self.a,
            b: shared.b(batch, self.number),
            c: shared.c(batch, self.number),
        }
    }

    /// Past the states, and through the gate: `(y + D u) silu(z)`.
    // ANCHOR: finish
    fn finish(&self, y: &mut [T]) {
        self.skip(y);
        if let Some(z) = &self.z {
            for (y, &z) in y.iter_mut().zip(z.iter()) {
                *y = *y * rounded(silu, z);
            }
        }
    }
    // ANCHOR_END: finish

    /// `y + D u`.
    pub(crate) fn skip(&self, y: &mut [T]) {
        if let Some(d) = self.d {
            for (y, &u) in y.iter_mut().zip(self.u.iter()) {
                *y += d * u;
            }
        }
    }
}

/// A row, copied only if its elements are not neighbours.
fn contiguous<T: Real>(row: ArrayView1<'_, T>) -> Cow<'_, [T]> {
    row.to_slice().map_or_else(|| Cow::Owned(row.to_vec()), Cow::Borrowed)
}

/// A matrix row by row, copied only where it does not lie so.
fn flat<T: Real>(matrix: ArrayView2<'_, T>) -> Cow<'_, [T]> {
    match matrix.to_slice() {
        Some(slice) => Cow::Borrowed(slice),
        None => Cow::Owned(Array2::from(matrix.to_owned()).iter().copied().collect()),
    }
}
