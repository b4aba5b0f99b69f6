//! What goes into a selective scan, and whether it fits together.

use linrec::{Element, Error};
use ndarray::{
    Array, Array2, Array4, ArrayView1, ArrayView2, ArrayView3, ArrayView4, Dimension, IntoDimension,
};
use num_complex::Complex;

use crate::{Real, State};

/// The arguments of a selective scan, under the names and in the shapes of Mamba's own function.
///
/// Sizes: `batch`, `channels`, `groups` (a divisor of `channels`), `states` per channel, `len`. `S`
/// is what states are made of, and `S::Real` everything that has none: the same, if states are
/// real.
#[derive(Debug, Clone, Copy)]
// ANCHOR: arguments
pub struct Arguments<'a, S: State> {
    /// What is scanned, `[batch, channels, len]`.
    pub u: ArrayView3<'a, S::Real>,
    /// How much each step counts, `[batch, channels, len]`.
    pub delta: ArrayView3<'a, S::Real>,
    /// How fast each state decays, `[channels, states]`; negative numbers.
    pub a: ArrayView2<'a, S>,
    /// What writes into the states, `[batch, groups, states, len]`.
    pub b: MixingView<'a, S>,
    /// What reads from them, `[batch, groups, states, len]`.
    pub c: MixingView<'a, S>,
    /// How much of `u` goes past the states, `[channels]`.
    pub d: Option<ArrayView1<'a, S::Real>>,
    /// What gates the result, `[batch, channels, len]`.
    pub z: Option<ArrayView3<'a, S::Real>>,
    /// What is added to `delta`, `[channels]`.
    pub delta_bias: Option<ArrayView1<'a, S::Real>>,
    /// Whether `delta` then goes through softplus.
    pub delta_softplus: bool,
    /// The states before the first step, `[batch, channels, states]`; if there are none, zero.
    pub initial: Option<ArrayView3<'a, S>>,
}
// ANCHOR_END: arguments

/// `B` or `C`: what writes into the states, or what reads from them.
#[derive(Debug, Clone, Copy, PartialEq)]
// ANCHOR: mixing
pub enum Mixing<V, F> {
    /// Made from the input: `[batch, groups, states, len]`.
    Varying(V),
    /// Given once for all positions: `[channels, states]`.
    Fixed(F),
}
// ANCHOR_END: mixing

/// `B` or `C`, borrowed.
pub type MixingView<'a, S> = Mixing<ArrayView4<'a, S>, ArrayView2<'a, S>>;
/// `B` or `C`, or a gradient by one of them.
pub type MixingArray<S> = Mixing<Array4<S>, Array2<S>>;

impl<V, F> Mixing<V, F> {
    /// Whether it is the same at every position.
    pub fn is_fixed(&self) -> bool {
        matches!(self, Mixing::Fixed(_))
    }

    /// `B` or `C` by reference: of which kind it is stays, the array is borrowed.
    pub fn as_ref(&self) -> Mixing<&V, &F> {
        match self {
            Mixing::Varying(array) => Mixing::Varying(array),
            Mixing::Fixed(array) => Mixing::Fixed(array),
        }
    }
}

impl<'a, S> From<ArrayView4<'a, S>> for MixingView<'a, S> {
    fn from(array: ArrayView4<'a, S>) -> Self {
        Mixing::Varying(array)
    }
}

impl<'a, S> From<ArrayView2<'a, S>> for MixingView<'a, S> {
    fn from(array: ArrayView2<'a, S>) -> Self {
        Mixing::Fixed(array)
    }
}

impl<S> From<Array4<S>> for MixingArray<S> {
    fn from(array: Array4<S>) -> Self {
        Mixing::Varying(array)
    }
}

impl<S> From<Array2<S>> for MixingArray<S> {
    fn from(array: Array2<S>) -> Self {
        Mixing::Fixed(array)
    }
}

impl<S: Copy> MixingView<'_, S> {
    /// The number for a sequence, a channel, a state and a position, with so many channels in a
    /// group.
    pub fn at(&self, [i, j, n, l]: [usize; 4], group_size: usize) -> S {
        match self {
            Mixing::Varying(array) => array[[i, j / group_size, n, l]],
            Mixing::Fixed(array) => array[[j, n]],
        }
    }

    /// Its shape.
    pub fn shape(&self) -> &[usize] {
        match self {
            Mixing::Varying(array) => array.shape(),
            Mixing::Fixed(array) => array.shape(),
        }
    }
}

impl<S> MixingArray<S> {
    /// A view of it.
    pub fn view(&self) -> MixingView<'_, S> {
        match self {
            Mixing::Varying(array) => Mixing::Varying(array.view()),
            Mixing::Fixed(array) => Mixing::Fixed(array.view()),
        }
    }

    /// Its elements, if they lie in standard order.
    pub fn as_slice(&self) -> Option<&[S]> {
        match self {
            Mixing::Varying(array) => array.as_slice(),
            Mixing::Fixed(array) => array.as_slice(),
        }
    }

    /// `B` or `C` with each element replaced by what `number` makes of it, which may be of another
    /// type.
    pub fn mapv<R>(&self, number: impl FnMut(S) -> R) -> MixingArray<R>
    where
        S: Copy,
    {
        match self {
            Mixing::Varying(array) => Mixing::Varying(array.mapv(number)),
            Mixing::Fixed(array) => Mixing::Fixed(array.mapv(number)),
        }
    }
}

/// Complex `B` or `C` as Mamba's function takes them if they depend on the input:
/// `[batch, groups, states, 2 · len]`, real and imaginary parts in turns.
///
/// # Errors
///
/// [`Error::Unsupported`] if the last axis is of odd length.
pub fn interleaved<T: Real>(array: ArrayView4<T>) -> Result<Array4<Complex<T>>, Error> {
    let (batch, groups, states, len) = array.dim();
    if len % 2 != 0 {
        let what = format!("real and imaginary parts in turns along {len} positions");
        return Err(Error::Unsupported { engine: "selective scan".to_owned(), what });
    }
    let shape = (batch, groups, states, len / 2);
    Ok(Array4::from_shape_fn(shape, |(i, g, n, l)| {
        Complex::new(array[[i, g, n, 2 * l]], array[[i, g, n, 2 * l + 1]])
    }))
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
        (self.channels / self.groups.max(1)).max(1)
    }
}

impl<S: State> Arguments<'_, S> {
    /// Checks that all shapes fit together.
    ///
    /// # Errors
    ///
    /// [`Error::ShapeMismatch`] with the two arrays that do not.
    pub fn sizes(&self) -> Result<Sizes, Error> {
        let (batch, channels, len) = self.u.dim();
        let states = self.a.ncols();
        let u = ("u", self.u.shape());
        let agree = |expected: &[usize], name, shape: &[usize]| match shape == expected {
            true => Ok(()),
            false => Err(mismatch(u, (name, shape))),
        };
        agree(&[batch, channels, len], "delta", self.delta.shape())?;
        agree(&[channels, states], "A", self.a.shape())?;
        let mut groups = None;
        for (name, mixing) in [("B", &self.b), ("C", &self.c)] {
            let shape = mixing.shape();
            let &[its_batch, its_groups, its_states, its_len] = shape else {
                if shape != [channels, states] {
                    return Err(mismatch(("A", self.a.shape()), (name, shape)));
                }
                continue;
            };
            if let Some(groups) = groups
                && its_groups != groups
            {
                return Err(mismatch(("B", self.b.shape()), (name, shape)));
            }
            let is_divided = its_groups > 0 && channels % its_groups == 0 || channels == 0;
            // It has to fit to u and to A; whichever it does not fit to is named.
            if its_batch != batch || its_len != len || !is_divided {
                return Err(mismatch(u, (name, shape)));
            }
            if its_states != states {
                return Err(mismatch(("A", self.a.shape()), (name, shape)));
            }
            groups = Some(its_groups);
        }
        if let Some(z) = self.z {
            agree(&[batch, channels, len], "z", z.shape())?;
        }
        for (name, array) in [("D", self.d), ("delta_bias", self.delta_bias)] {
            if let Some(array) = array {
                agree(&[channels], name, array.shape())?;
            }
        }
        if let Some(initial) = self.initial
            && initial.shape() != [batch, channels, states]
        {
            return Err(mismatch(("A", self.a.shape()), ("initial", initial.shape())));
        }
        Ok(Sizes { batch, channels, groups: groups.unwrap_or(1), states, len })
    }
}

/// An array of zeros for a result, or an error where the memory cannot be had: a view that was
/// broadcast can describe far more elements than it holds.
pub(crate) fn zeros<T: Element, S: IntoDimension>(shape: S) -> Result<Array<T, S::Dim>, Error> {
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
