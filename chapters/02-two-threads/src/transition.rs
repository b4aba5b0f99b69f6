//! The effect of a part of a sequence on the state.

use linrec::Element;

// ANCHOR: transition
/// A stretch of a sequence as a function of the state before it: `before * coeff + state`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Transition<T> {
    /// The product of the stretch's coefficients.
    pub coeff: T,
    /// The last output of the stretch if it started from zero.
    pub state: T,
}

impl<T: Element> Transition<T> {
    /// Returns the state after the stretch.
    pub fn apply(self, before: T) -> T {
        before * self.coeff + self.state
    }

    /// Combines this stretch and a later one to a single stretch.
    pub fn then(self, later: Self) -> Self {
        Transition {
            coeff: self.coeff * later.coeff,
            state: self.state * later.coeff + later.state,
        }
    }
}
// ANCHOR_END: transition
