//! What an engine says of itself: which cases it takes, and how often it rounds.

use super::{Case, CoeffKind};
use crate::Direction;

/// The part of the table that an engine takes, and the rounding that it is judged by.
///
/// The default takes everything and rounds like a sequential loop.
#[derive(Debug, Clone)]
pub struct Domain {
    /// The longest sequence the engine takes.
    pub max_len: usize,
    /// The sequence lengths that it takes are multiples of this.
    pub multiple_of: usize,
    /// A length at which the engine changes what it does; cases just around it join the table.
    pub tile: usize,
    /// `D` of the error bound for a sequence of the given length: see
    /// [`Rounding::levels`](crate::reference::Rounding).
    pub levels: fn(usize) -> usize,
    /// The error of the engine's `exp`, in units in the last place.
    pub exp_ulps: f64,
    /// Whether it computes gradients.
    pub backward: bool,
    /// Whether it takes sequences from their last step to their first.
    pub reverse: bool,
    /// Whether it takes coefficients as logarithms.
    pub log_coeffs: bool,
    /// Whether its numbers reach far enough for coefficients above one, whose products grow to e^16.
    pub growing: bool,
}

impl Default for Domain {
    fn default() -> Self {
        Domain {
            max_len: usize::MAX,
            multiple_of: 1,
            tile: 64,
            levels: |_| 0,
            exp_ulps: 1.0,
            backward: true,
            reverse: true,
            log_coeffs: true,
            growing: true,
        }
    }
}

impl Domain {
    /// The levels of an engine that combines partial results in a tree: `⌈log2 L⌉ + 4`.
    pub fn tree_levels(seq_len: usize) -> usize {
        seq_len.max(1).next_power_of_two().ilog2() as usize + 4
    }

    /// Whether the engine takes sequences of this length.
    pub fn takes(&self, seq_len: usize) -> bool {
        seq_len <= self.max_len && seq_len.is_multiple_of(self.multiple_of)
    }

    /// Whether the engine takes the case.
    pub fn contains(&self, case: &Case) -> bool {
        self.takes(case.seq_len)
            && (self.reverse || case.direction == Direction::Forward)
            && (self.log_coeffs || !case.log_coeffs)
            && (self.growing || case.coeffs != CoeffKind::Growing)
    }
}
