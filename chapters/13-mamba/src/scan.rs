//! The selective scan with all options of Mamba's own function, one channel at a time.

use std::borrow::Cow;

use linrec::cpu::Cpu;
use linrec::{Element, Engine, Error};
use ndarray::{Array3, ArrayView1, ArrayView2, ArrayView3, s};
use rayon::prelude::*;

use crate::activation::{rounded, silu, softplus};
use crate::arguments::{Arguments, Mixing, MixingView, Sizes, zeros};
use crate::channel::{Channel, Expanded, contract};
use crate::{Real, State};

/// The results of a selective scan.
#[derive(Debug, Clone, PartialEq)]
pub struct Output<S: State> {
    /// The outputs, `[batch, channels, len]`.
    pub y: Array3<S::Real>,
    /// The states after the last step, `[batch, channels, states]`.
    pub last_state: Array3<S>,
}

/// Computes a selective scan, with the channels distributed over the threads of the current rayon
/// pool.
///
/// The result is the same for every number of threads. The recurrences use the vector instructions
/// of `cpu`.
///
/// # Errors
///
/// Returns an error if the shapes do not fit together.
pub fn selective_scan<S: State>(cpu: &Cpu, arguments: &Arguments<S>) -> Result<Output<S>, Error> {
    // One thread is enough for a channel; the other threads have channels too.
    selective_scan_by(&cpu.clone().single_threaded(), arguments)
}

/// Computes a selective scan with any engine for its recurrences; the channels are distributed over
/// the threads of the current rayon pool.
///
/// # Errors
///
/// Returns an error if the shapes do not fit together, or if the engine fails.
// ANCHOR: selective_scan
pub fn selective_scan_by<S: State>(
    engine: &dyn Engine<S>,
    arguments: &Arguments<S>,
) -> Result<Output<S>, Error> {
    let sizes = arguments.sizes()?;
    let mut y = zeros((sizes.batch, sizes.channels, sizes.len))?;
    let mut last_state = zeros((sizes.batch, sizes.channels, sizes.states))?;
    if let Some(initial) = arguments.initial {
        last_state.assign(&initial);
    }
    if y.is_empty() {
        return Ok(Output { y, last_state });
    }
    let shared = Shared::new(arguments, sizes);
    let rows = y.as_slice_mut().unwrap_or_default().par_chunks_exact_mut(sizes.len);
    let states = last_state.rows_mut().into_iter().collect::<Vec<_>>();
    rows.zip(states).enumerate().try_for_each_init(
        || Expanded::new(sizes.states, sizes.len),
        |expanded, (index, (y, mut last_state))| {
            let own = Own::of(arguments, &shared, index / sizes.channels, index % sizes.channels);
            let channel = own.channel();
            last_state.assign(&expanded.states(engine, &channel)?);
            contract(channel.c, expanded.outputs.as_slice().unwrap_or_default(), y);
            own.finish(y);
            Ok(())
        },
    )?;
    Ok(Output { y, last_state })
}
// ANCHOR_END: selective_scan

/// The arrays that a group of channels shares, in contiguous memory.
pub(crate) struct Shared<'a, S: Clone> {
    sizes: Sizes,
    b: Mixed<'a, S>,
    c: Mixed<'a, S>,
}

/// `B` or `C`: a matrix `[states, len]` for each sequence and group, or a row for each channel.
type Mixed<'a, S> = Mixing<Vec<Cow<'a, [S]>>, ArrayView2<'a, S>>;

impl<'a, S: State> Shared<'a, S> {
    pub(crate) fn new(arguments: &Arguments<'a, S>, sizes: Sizes) -> Self {
        let all = |mixing: MixingView<'a, S>| match mixing {
            Mixing::Varying(array) => {
                let pairs = (0..sizes.batch).flat_map(|i| (0..sizes.groups).map(move |g| (i, g)));
                let matrix = |(i, g)| flat(array.slice_move(s![i, g, .., ..]));
                Mixing::Varying(pairs.map(matrix).collect())
            }
            Mixing::Fixed(array) => Mixing::Fixed(array),
        };
        Shared { sizes, b: all(arguments.b), c: all(arguments.c) }
    }

    /// Returns `B` or `C` of a channel, `[states, len]`.
    fn of<'s>(&'s self, mixed: &'s Mixed<'a, S>, batch: usize, channel: usize) -> Cow<'s, [S]> {
        match mixed {
            Mixing::Varying(matrices) => {
                let group = channel / self.sizes.group_size();
                Cow::Borrowed(&matrices[batch * self.sizes.groups + group])
            }
            Mixing::Fixed(array) => {
                let repeated = |&number| std::iter::repeat_n(number, self.sizes.len);
                Cow::Owned(array.row(channel).iter().flat_map(repeated).collect())
            }
        }
    }
}

/// The inputs of one channel of one sequence.
pub(crate) struct Own<'a, 's, S: State> {
    pub(crate) u: Cow<'a, [S::Real]>,
    /// `Δ` before bias and softplus.
    delta_given: Cow<'a, [S::Real]>,
    /// `Δ` after bias and softplus.
    delta: Vec<S::Real>,
    a: Cow<'a, [S]>,
    b: Cow<'s, [S]>,
    c: Cow<'s, [S]>,
    initial: Option<ArrayView1<'a, S>>,
    pub(crate) d: Option<S::Real>,
    pub(crate) z: Option<Cow<'a, [S::Real]>>,
    bias: f64,
    softplus: bool,
}

impl<'a, 's, S: State> Own<'a, 's, S> {
    pub(crate) fn of(
        arguments: &Arguments<'a, S>,
        shared: &'s Shared<'a, S>,
        batch: usize,
        number: usize,
    ) -> Self {
        let row =
            |array: ArrayView3<'a, S::Real>| contiguous(array.slice_move(s![batch, number, ..]));
        let mut own = Own {
            u: row(arguments.u),
            delta_given: row(arguments.delta),
            delta: Vec::new(),
            a: contiguous(arguments.a.slice_move(s![number, ..])),
            b: shared.of(&shared.b, batch, number),
            c: shared.of(&shared.c, batch, number),
            initial: arguments.initial.map(|states| states.slice_move(s![batch, number, ..])),
            d: arguments.d.map(|d| d[number]),
            z: arguments.z.map(row),
            bias: arguments.delta_bias.map_or(0.0, |bias| bias[number].widen()),
            softplus: arguments.delta_softplus,
        };
        own.delta = own.delta_given.iter().map(|&given| own.reparametrised(given)).collect();
        own
    }

    fn reparametrised(&self, given: S::Real) -> S::Real {
        step_size(given, self.bias, self.softplus)
    }

    /// Returns the derivatives of `Δ` with respect to the given `delta`.
    pub(crate) fn delta_slopes(&self) -> impl Iterator<Item = S::Real> {
        let slope = |x: f64| if self.softplus { crate::activation::sigmoid(x) } else { 1.0 };
        self.delta_given.iter().map(move |&delta| rounded(|x| slope(x + self.bias), delta))
    }

    pub(crate) fn channel(&self) -> Channel<'_, S> {
        let initial = self.initial.as_ref().map(|states| states.view());
        Channel { u: &self.u, delta: &self.delta, a: &self.a, b: &self.b, c: &self.c, initial }
    }

    /// Adds the skip connection and applies the gate: `(y + D u) silu(z)`.
    // ANCHOR: finish
    fn finish(&self, y: &mut [S::Real]) {
        self.skip(y);
        if let Some(z) = &self.z {
            for (y, &z) in y.iter_mut().zip(z.iter()) {
                *y = *y * rounded(silu, z);
            }
        }
    }
    // ANCHOR_END: finish

    /// Adds the skip connection: `y + D u`.
    pub(crate) fn skip(&self, y: &mut [S::Real]) {
        if let Some(d) = self.d {
            for (y, &u) in y.iter_mut().zip(self.u.iter()) {
                *y += d * u;
            }
        }
    }
}

/// `Δ`: the given number plus the bias, made positive by softplus.
// ANCHOR: delta
pub(crate) fn step_size<T: Real>(given: T, bias: f64, is_softplus: bool) -> T {
    let make = |x: f64| if is_softplus { softplus(x) } else { x };
    rounded(|x| make(x + bias), given)
}
// ANCHOR_END: delta

/// Borrows a row, or copies it if its elements are not contiguous.
fn contiguous<T: Element>(row: ArrayView1<'_, T>) -> Cow<'_, [T]> {
    row.to_slice().map_or_else(|| Cow::Owned(row.to_vec()), Cow::Borrowed)
}

/// Borrows a matrix row by row, or copies it if its layout differs.
fn flat<T: Element>(matrix: ArrayView2<'_, T>) -> Cow<'_, [T]> {
    match matrix.to_slice() {
        Some(slice) => Cow::Borrowed(slice),
        None => Cow::Owned(matrix.iter().copied().collect()),
    }
}
