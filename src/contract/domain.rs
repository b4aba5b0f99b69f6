//! What an engine says of itself: which cases it takes, and how often it rounds.

use std::collections::HashSet;

use super::{Case, CoeffKind, Table};
use crate::Direction;

/// The part of the table that an engine takes, and the rounding that it is judged by (it is an
/// [`ErrorBound`](super::ErrorBound)).
///
/// The default takes everything and rounds like a sequential loop.
#[derive(Debug, Clone)]
pub struct Domain {
    /// How much of the table is run: all of it, unless something else is said.
    pub table: Table,
    /// The longest sequence the engine takes.
    pub max_len: usize,
    /// The sequence lengths that it takes are multiples of this. The table's lengths are rounded up
    /// to such ones: see [`Domain::fitted`].
    pub multiple_of: usize,
    /// A length at which the engine changes what it does; cases just around it join the table.
    pub tile: usize,
    /// `d` of the error bound for a sequence of the given length: see
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
    /// Whether its numbers reach far enough for coefficients above one, whose products grow to
    /// e^16.
    pub growing: bool,
    /// Whether the final state is the last output, to the bit. Where an output is rounded to 16
    /// bits and the state is not, the state may be what whole tiles have made of the initial one,
    /// which rounds in another order.
    pub final_is_last: bool,
}

impl Default for Domain {
    fn default() -> Self {
        Domain {
            table: Table::Full,
            max_len: usize::MAX,
            multiple_of: 1,
            tile: 64,
            levels: |_| 0,
            exp_ulps: 1.0,
            backward: true,
            reverse: true,
            log_coeffs: true,
            growing: true,
            final_is_last: true,
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

    /// This domain with as much of the table as the environment asks for: see [`Table::asked`]. For
    /// tests.
    pub fn as_asked(self) -> Domain {
        Domain { table: Table::asked(), ..self }
    }

    /// The cases of the table that the engine takes, each with a length that it takes; none twice.
    pub fn cases(&self) -> Vec<Case> {
        let mut seen = HashSet::new();
        let fitted = self.table.cases(self.tile).into_iter().filter_map(|case| self.fitted(&case));
        fitted.filter(|case| seen.insert(case.clone())).collect()
    }

    /// The case with the next length that is a multiple of `multiple_of`; `None` if the engine does
    /// not take it.
    ///
    /// ```
    /// use linrec::contract::{Domain, cases};
    ///
    /// let words = Domain { multiple_of: 4, max_len: 1000, ..Domain::default() };
    /// assert!(words.cases().iter().all(|case| case.seq_len % 4 == 0 && case.seq_len <= 1000));
    /// let odd = cases(64).into_iter().find(|case| case.seq_len == 33).expect("it is in the table");
    /// assert_eq!(words.fitted(&odd).map(|case| case.seq_len), Some(36));
    /// ```
    pub fn fitted(&self, case: &Case) -> Option<Case> {
        let seq_len = case.seq_len.checked_next_multiple_of(self.multiple_of)?;
        Some(Case { seq_len, ..case.clone() }).filter(|case| self.contains(case))
    }

    /// Whether the engine takes the case as it is.
    pub fn contains(&self, case: &Case) -> bool {
        self.takes(case.seq_len)
            && (self.reverse || case.direction == Direction::Forward)
            && (self.log_coeffs || !case.log_coeffs)
            && (self.growing || case.coeffs != CoeffKind::Growing)
    }
}
