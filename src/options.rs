//! What can be asked of a recurrence beside its inputs and coefficients.

use ndarray::{CowArray, Dimension, Ix1};

/// The direction in which a recurrence walks along the sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Direction {
    /// From the first element to the last: `y_l = y_{l-1} * c_l + x_l`.
    #[default]
    Forward,
    /// From the last element to the first: `y_l = y_{l+1} * c_l + x_l`.
    Reverse,
}

impl Direction {
    /// The other direction: the one in which gradients flow.
    pub fn reversed(self) -> Self {
        match self {
            Direction::Forward => Direction::Reverse,
            Direction::Reverse => Direction::Forward,
        }
    }

    /// The position, in an array of `seq_len` elements, of the step number `step`.
    #[inline(always)]
    pub fn position(self, step: usize, seq_len: usize) -> usize {
        match self {
            Direction::Forward => step,
            Direction::Reverse => seq_len - 1 - step,
        }
    }
}

/// Options of the recurrence. The default is forward, from zero, with plain coefficients.
///
/// ```
/// use linrec::{Direction, Options};
/// use ndarray::array;
///
/// let before = array![100.0];
/// let options = Options { initial: Some(before.view().into()), ..Options::default() };
/// assert_eq!(options.direction, Direction::Forward);
/// ```
///
/// A state is borrowed (`array.view().into()`, `(&array).into()`) or owned (`array.into()`).
///
/// `D` is the dimension of the states: one less than that of the arrays, and so `Ix1` for
/// `[num_seqs, seq_len]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Options<'a, T, D: Dimension = Ix1> {
    /// Which way the recurrence walks.
    pub direction: Direction,
    /// The state before the first step, one per sequence (shape `[num_seqs]`; of arrays of more
    /// dimensions, their shape without the axis of the sequence): `y_{-1}`, and for
    /// [`Direction::Reverse`] `y_L`. `None` means zero.
    pub initial: Option<CowArray<'a, T, D>>,
    /// The coefficients are given as `ln c`; gradients are with respect to `ln c` as well. Each
    /// engine computes `c` by an exponential of its own: the CPU's by the standard library's, those
    /// of devices by one of multiply-adds, which gives the same bits on every device
    /// ([`Recurrence`](crate::device::Recurrence#logarithms)).
    pub log_coeffs: bool,
}

impl<T, D: Dimension> Default for Options<'_, T, D> {
    fn default() -> Self {
        Options { direction: Direction::Forward, initial: None, log_coeffs: false }
    }
}
