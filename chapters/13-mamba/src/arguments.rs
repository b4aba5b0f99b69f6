//! What goes into a selective scan, and whether it fits together.

use linrec::Error;
use ndarray::{Array, ArrayView1, ArrayView2, ArrayView3, ArrayView4, Dimension, IntoDimension};

use crate::Real;

/// The arguments of a selective scan, under the names and in the shapes of Mamba's own function.
///
/// Sizes: `batch`, `channels`, `groups` (a divisor of `channels`), `states` per channel, `len`.
#[derive(Debug, Clone, Copy)]
// ANCHOR: arguments
pub struct Arguments<'a, T> {
    /// What is scanned, `[batch, channels, len]`.
    pub u: ArrayView3<'a, T>,
    /// How much each step counts, `[batch, channels, len]`.
    pub delta: ArrayView3<'a, T>,
    /// How fast each state decays, `[channels, states]`; negative numbers.
    pub a: ArrayView2<'a, T>,
    /// What writes into the states, `[batch, groups, states, len]`.
    pub b: ArrayView4<'a, T>,
    /// What reads from them, `[batch, groups, states, len]`.
    pub c: ArrayView4<'a, T>,
    /// How much of `u` goes past the states, `[channels]`.
    pub d: Option<ArrayView1<'a, T>>,
    /// What gates the result, `[batch, channels, len]`.
    pub z: Option<ArrayView3<'a, T>>,
    /// What is added to `delta`, `[channels]`.
    pub delta_bias: Option<ArrayView1<'a, T>>,
    /// Whether `delta` then goes through softplus.
    pub delta_softplus: bool,
}
// ANCHOR_END: arguments

/// `B` or `C`: what writes into the states, or what reads from them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mixing<V, F> {
    /// Made from the input: `[batch, groups, states, len]`.
    Varying(V),
    /// The same at every position: `[channels, states]`.
    Fixed(F),
}

impl<V, F> Mixing<V, F> {
    /// Whether it is the same at every position.
    pub fn is_fixed(&self) -> bool {
        matches!(self, Mixing::Fixed(_))
    }
}

/// The sizes of a selective scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Sequences that have nothing to do with each other.
    pub batch: usize,
    /// Channels of each sequence.
    pub channels: usize,
    /// Groups of channels that share `B` and `C`.
    pub groups: usize,
    /// States of each channel.
    pub states: usize,
    /// Steps.
    pub len: usize,
}

impl Sizes {
    /// The number of channels in a group.
    pub fn group_size(&self) -> usize {
        self.channels / self.groups.max(1)
    }
}

impl<T> Arguments<'_, T> {
    /// Checks that all shapes fit together.
    ///
    /// # Errors
    ///
    /// [`Error::ShapeMismatch`] with the two arrays that do not.
    pub fn sizes(&self) -> Result<Sizes, Error> {
        let (batch, channels, len) = self.u.dim();
        let states = self.a.ncols();
        let groups = self.b.dim().1;
        let is_divided = groups > 0 && channels % groups == 0 || channels == 0;
        let u = ("u", self.u.shape());
        let agree = |expected: &[usize], name, shape: &[usize]| match shape == expected {
            true => Ok(()),
            false => Err(mismatch(u, (name, shape))),
        };
        agree(&[batch, channels, len], "delta", self.delta.shape())?;
        agree(&[channels, states], "A", self.a.shape())?;
        if self.b.shape() != [batch, groups, states, len] || !is_divided {
            // B has to fit to u and to A; whichever it does not fit to is named.
            let fits_u = self.b.dim().0 == batch && self.b.dim().3 == len && is_divided;
            let expected = if fits_u { ("A", self.a.shape()) } else { u };
            return Err(mismatch(expected, ("B", self.b.shape())));
        }
        if self.c.shape() != self.b.shape() {
            return Err(mismatch(("B", self.b.shape()), ("C", self.c.shape())));
        }
        if let Some(z) = self.z {
            agree(&[batch, channels, len], "z", z.shape())?;
        }
        for (name, array) in [("D", self.d), ("delta_bias", self.delta_bias)] {
            if let Some(array) = array {
                agree(&[channels], name, array.shape())?;
            }
        }
        Ok(Sizes { batch, channels, groups, states, len })
    }
}

/// An array of zeros for a result, or an error where the memory cannot be had: a view that was broadcast can
/// describe far more elements than it holds.
pub(crate) fn zeros<T: Real, S: IntoDimension>(shape: S) -> Result<Array<T, S::Dim>, Error> {
    let shape = shape.into_dimension();
    let len = shape.slice().iter().fold(1_usize, |len, &n| len.saturating_mul(n));
    let bytes = len.saturating_mul(size_of::<T>());
    let operation = "selective scan";
    Vec::<T>::new().try_reserve_exact(len).map_err(|_| Error::OutOfMemory { operation, bytes })?;
    Ok(Array::zeros(shape))
}

fn mismatch(expected: (&'static str, &[usize]), given: (&'static str, &[usize])) -> Error {
    let arrays = vec![(expected.0, expected.1.to_vec()), (given.0, given.1.to_vec())];
    Error::ShapeMismatch { operation: "selective scan", arrays }
}
