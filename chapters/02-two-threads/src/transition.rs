//! What a part of a sequence does to the state.

use linrec::Element;

// ANCHOR: transition
/// A stretch of a sequence as a function of the state before it: `before * coeff + state`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Transition<T> {
    /// The product of the stretch's coefficients.
    pub coeff: T,
    /// Its last output, had it started from zero.
    pub state: T,
}

impl<T: Element> Transition<T> {
    /// The state after the stretch.
    pub fn apply(self, before: T) -> T {
        before * self.coeff + self.state
    }

    /// This stretch and then a later one, as a single one.
    pub fn then(self, later: Self) -> Self {
        Transition {
            coeff: self.coeff * later.coeff,
            state: self.state * later.coeff + later.state,
        }
    }
}
// ANCHOR_END: transition
