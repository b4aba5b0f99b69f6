//! The domain of an engine: the cases that it takes, and how often it rounds.

use std::collections::HashSet;

use super::{Case, CoeffKind, Table};
use crate::Direction;
#[cfg(any(feature = "cuda", feature = "simt"))]
use crate::device::{Choice, GroupEngine, KernelEngine, Narrowing, Split, Storage};

/// The part of the table that an engine takes, and the rounding that it is judged by (it is an
/// [`ErrorBound`](super::ErrorBound)).
///
/// The default takes everything and rounds like a sequential loop.
#[derive(Debug, Clone)]
pub struct Domain {
    /// The part of the table that is run; by default all of it.
    pub table: Table,
    /// The longest sequence that the engine takes.
    pub max_len: usize,
    /// The engine takes sequences whose lengths are multiples of this. The table's lengths are
    /// rounded up to multiples: see [`Domain::fitted`].
    pub multiple_of: usize,
    /// A length at which the engine changes its method; the table gets cases next to it.
    pub tile: usize,
    /// `d` of the error bound for a sequence of the given length: see
    /// [`Rounding::levels`](crate::reference::Rounding).
    pub levels: fn(usize) -> usize,
    /// The error of the engine's `exp`, in units in the last place.
    pub exp_ulps: f64,
    /// True if it computes gradients.
    pub backward: bool,
    /// True if it takes sequences from their last step to their first.
    pub reverse: bool,
    /// True if it takes coefficients as logarithms.
    pub log_coeffs: bool,
    /// True if its numbers have the range for coefficients above one, whose products grow to e^16.
    pub growing: bool,
    /// True if the final state is the last output, to the bit. It may not be where outputs are
    /// rounded to 16 bits and states are not: whole tiles may have computed the state from the
    /// initial one, which rounds in another order.
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
    /// Returns the levels of an engine that combines partial results in a tree: `⌈log2 L⌉ + 4`.
    pub fn tree_levels(seq_len: usize) -> usize {
        seq_len.max(1).next_power_of_two().ilog2() as usize + 4
    }

    /// Returns whether the engine takes sequences of this length.
    pub fn takes(&self, seq_len: usize) -> bool {
        seq_len <= self.max_len && seq_len.is_multiple_of(self.multiple_of)
    }

    /// Returns this domain with the part of the table that the environment selects, for tests: see
    /// [`Table::asked`].
    pub fn as_asked(self) -> Domain {
        Domain { table: Table::asked(), ..self }
    }

    /// Returns the cases of the table that the engine takes, each once, with lengths that it takes.
    pub fn cases(&self) -> Vec<Case> {
        let mut seen = HashSet::new();
        let fitted = self.table.cases(self.tile).into_iter().filter_map(|case| self.fitted(&case));
        fitted.filter(|case| seen.insert(case.clone())).collect()
    }

    /// Returns the case with the next length that is a multiple of `multiple_of`; `None` if the
    /// engine does not take it.
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

    /// Returns whether the engine takes the case as it is.
    pub fn contains(&self, case: &Case) -> bool {
        self.takes(case.seq_len)
            && (self.reverse || case.direction == Direction::Forward)
            && (self.log_coeffs || !case.log_coeffs)
            && (self.growing || case.coeffs != CoeffKind::Growing)
    }
}

#[cfg(any(feature = "cuda", feature = "simt"))]
impl<S: Storage> KernelEngine<S> {
    /// Returns the domain of the engine. With the fastest kernels it has any length, and the engine
    /// rounds at most as often as a tree.
    pub fn domain(&self) -> Domain {
        let domain = Domain {
            log_coeffs: self.recurrence().takes_logs(),
            // The products grow to e^16 times everything else.
            growing: S::NARROWING.largest > 1e9,
            // A 16-bit output is rounded, and the state is not.
            final_is_last: S::NARROWING == Narrowing::NONE,
            ..Domain::default()
        };
        let Choice::Kernel(kernel) = self.recurrence().choice() else {
            return Domain { levels: Domain::tree_levels, tile: 1024, ..domain };
        };
        let tile = kernel.tile(S::ELEMENT);
        Domain {
            // The loop rounds once per step.
            levels: if tile.is_some() { Domain::tree_levels } else { |_| 0 },
            tile: tile.map_or(domain.tile, |steps| steps as usize),
            max_len: kernel.max_len(S::ELEMENT).map_or(domain.max_len, |len| len as usize),
            multiple_of: kernel.multiple_of(S::ELEMENT) as usize,
            ..domain
        }
    }
}

#[cfg(any(feature = "cuda", feature = "simt"))]
impl<S: Storage> GroupEngine<S> {
    /// Returns the domain of the engine.
    pub fn domain(&self) -> Domain {
        let one = KernelEngine::<S>::new(&self.group().devices()[0], self.choice);
        let domain = one.map_or_else(|_| Domain::default(), |engine| engine.domain());
        // A kernel that takes multiples of a length takes them in each piece.
        let multiple_of = match domain.multiple_of {
            1 => 1,
            of => of * self.pieces.unwrap_or(1),
        };
        match self.split {
            Split::Rows => domain,
            Split::Steps => {
                Domain { levels: |len| 2 * Domain::tree_levels(len), multiple_of, ..domain }
            }
        }
    }
}
