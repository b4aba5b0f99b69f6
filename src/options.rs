//! The options of a recurrence.

use ndarray::{CowArray, Dimension, Ix1};

/// The direction in which a recurrence walks along the sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Direction {
    /// The walk from the first element to the last: `y_l = y_{l-1} * c_l + x_l`.
    #[default]
    Forward,
    /// The walk from the last element to the first: `y_l = y_{l+1} * c_l + x_l`.
    Reverse,
}

impl Direction {
    /// Returns the other direction, in which gradients flow.
    pub fn reversed(self) -> Self {
        match self {
            Direction::Forward => Direction::Reverse,
            Direction::Reverse => Direction::Forward,
        }
    }

    /// Returns the position of a step, counted from 0, in an array of `seq_len` elements.
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
/// The order of the steps is no option, but a property of the engine:
/// [`Cpu::in_order`](crate::cpu::Cpu::in_order) and
/// [`Recurrence::in_order`](crate::device::Recurrence::in_order) compute no products of
/// coefficients, which may overflow.
///
/// A state is borrowed (`array.view().into()`, `(&array).into()`) or owned (`array.into()`).
///
/// `D` is the dimension of the states, one less than the dimension of the arrays: `Ix1` for
/// `[num_seqs, seq_len]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Options<'a, T, D: Dimension = Ix1> {
    /// The direction of the recurrence.
    pub direction: Direction,
    /// The state before the first step, one per sequence: `y_{-1}`, or `y_L` for
    /// [`Direction::Reverse`]. The shape is `[num_seqs]`; for arrays of more dimensions, their
    /// shape without the axis of the sequence. `None` means zero.
    pub initial: Option<CowArray<'a, T, D>>,
    /// True if the coefficients are given as `ln c`; gradients are then with respect to `ln c` as
    /// well. The engine of the CPU computes `c` by the standard library's exponential. Devices use
    /// an exponential of multiply-adds, which gives the same bits on every device
    /// ([`Recurrence`](crate::device::Recurrence#logarithms)).
    pub log_coeffs: bool,
}

impl<T, D: Dimension> Default for Options<'_, T, D> {
    fn default() -> Self {
        Options { direction: Direction::Forward, initial: None, log_coeffs: false }
    }
}
