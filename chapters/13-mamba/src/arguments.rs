//! The arguments of a selective scan, and the check that their shapes fit together.
//!
//! The names and shapes come from Mamba's function, so that the page can show both calls. Every
//! implementation of the scan (on the CPU, step by step, on a device) begins with
//! [`Arguments::sizes`]. Therefore all of them refuse the same arguments with the same error, which
//! names the argument and its shape. `tests/suite/scan.rs` tests the errors.

use linrec::{Element, Error};
use ndarray::{
    Array, Array2, Array4, ArrayView1, ArrayView2, ArrayView3, ArrayView4, Dimension, IntoDimension,
};
use num_complex::Complex;

use crate::{Real, State};

/// The arguments of a selective scan, under the names and in the shapes of Mamba's own function.
///
/// The sizes are `batch`, `channels`, `groups` (a divisor of `channels`), `states` per channel, and
/// `len`. `S` is the type of the states. `S::Real` is the type of every array without a states'
/// dimension, and the same type if states are real.
#[derive(Debug, Clone, Copy)]
// ANCHOR: arguments
pub struct Arguments<'a, S: State> {
    /// The input, `[batch, channels, len]`.
    pub u: ArrayView3<'a, S::Real>,
    /// The length of each time step, `[batch, channels, len]`.
    pub delta: ArrayView3<'a, S::Real>,
    /// The rate at which each state decays, `[channels, states]`; negative numbers.
    pub a: ArrayView2<'a, S>,
    /// The weights that write into the states, `[batch, groups, states, len]`.
    pub b: MixingView<'a, S>,
    /// The weights that read from the states, `[batch, groups, states, len]`.
    pub c: MixingView<'a, S>,
    /// The share of `u` that bypasses the states, `[channels]`.
    pub d: Option<ArrayView1<'a, S::Real>>,
    /// The gate of the result, `[batch, channels, len]`.
    pub z: Option<ArrayView3<'a, S::Real>>,
    /// The bias of `delta`, `[channels]`.
    pub delta_bias: Option<ArrayView1<'a, S::Real>>,
    /// True if `delta` plus its bias goes through softplus.
    pub delta_softplus: bool,
    /// The states before the first step, `[batch, channels, states]`; `None` means zero.
    pub initial: Option<ArrayView3<'a, S>>,
}
// ANCHOR_END: arguments

/// `B` or `C`: the weights that write into the states, or the weights that read from them.
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
/// `B` or `C`, or the gradient with respect to one of them.
pub type MixingArray<S> = Mixing<Array4<S>, Array2<S>>;

impl<V, F> Mixing<V, F> {
    /// Returns true if it is the same at every position.
    pub fn is_fixed(&self) -> bool {
        matches!(self, Mixing::Fixed(_))
    }

    /// Borrows the array and keeps the variant.
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
    /// Returns the element for sequence `i`, channel `j`, state `n` and position `l`, with
    /// `group_size` channels in each group.
    pub fn at(&self, [i, j, n, l]: [usize; 4], group_size: usize) -> S {
        match self {
            Mixing::Varying(array) => array[[i, j / group_size, n, l]],
            Mixing::Fixed(array) => array[[j, n]],
        }
    }

    /// Returns the shape of the array.
    pub fn shape(&self) -> &[usize] {
        match self {
            Mixing::Varying(array) => array.shape(),
            Mixing::Fixed(array) => array.shape(),
        }
    }
}

impl<S> MixingArray<S> {
    /// Returns a view of the array.
    pub fn view(&self) -> MixingView<'_, S> {
        match self {
            Mixing::Varying(array) => Mixing::Varying(array.view()),
            Mixing::Fixed(array) => Mixing::Fixed(array.view()),
        }
    }

    /// Returns the elements, if the array is in standard layout.
    pub fn as_slice(&self) -> Option<&[S]> {
        match self {
            Mixing::Varying(array) => array.as_slice(),
            Mixing::Fixed(array) => array.as_slice(),
        }
    }

    /// Applies `number` to every element, which may change the element type.
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

/// Complex `B` or `C` in the form in which Mamba's function takes them when they depend on the
/// input: `[batch, groups, states, 2 · len]`, with real and imaginary parts alternating.
///
/// # Errors
///
/// Returns [`Error::Unsupported`] if the last axis has an odd length.
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
    /// The number of independent sequences.
    pub batch: usize,
    /// The number of channels of each sequence.
    pub channels: usize,
    /// The number of groups; the channels of a group share `B` and `C`.
    pub groups: usize,
    /// The number of states of each channel.
    pub states: usize,
    /// The number of steps.
    pub len: usize,
}

impl Sizes {
    /// Returns the number of channels in a group.
    pub fn group_size(&self) -> usize {
        (self.channels / self.groups.max(1)).max(1)
    }
}

impl<S: State> Arguments<'_, S> {
    /// Checks that all shapes fit together.
    ///
    /// # Errors
    ///
    /// [`Error::ShapeMismatch`] names the two arrays that do not fit.
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
            // B has to fit both u and A; the error names the one that it does not fit.
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

/// Allocates zeros for a result. A broadcast view can describe far more elements than it holds, so
/// the memory may not suffice: then this returns an error instead of aborting.
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
