//! What can be asked of a recurrence beside its inputs and coefficients.

use ndarray::Array1;

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
/// let options = Options { initial: Some(array![100.0]), ..Options::default() };
/// assert_eq!(options.direction, Direction::Forward);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Options<T> {
    /// Which way the recurrence walks.
    pub direction: Direction,
    /// The state before the first step, one per sequence (shape `[num_seqs]`): `y_{-1}`, and for
    /// [`Direction::Reverse`] `y_L`. `None` means zero.
    pub initial: Option<Array1<T>>,
    /// The coefficients are given as `ln c`; gradients are with respect to `ln c` as well.
    pub log_coeffs: bool,
}

impl<T> Default for Options<T> {
    fn default() -> Self {
        Options { direction: Direction::Forward, initial: None, log_coeffs: false }
    }
}
