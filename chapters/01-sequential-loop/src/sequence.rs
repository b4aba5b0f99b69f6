//! The recurrence along one sequence.

use linrec::Element;
use ndarray::{ArrayView1, ArrayViewMut1};

// ANCHOR: linrec
/// Computes the outputs `y_l = y_{l-1} * c_l + x_l`, where `y_{-1}` is `initial`.
///
/// There is one output for every pair of an input and a coefficient. If one slice is longer, its
/// other elements are ignored.
pub fn linrec<T: Element>(inputs: &[T], coeffs: &[T], initial: T) -> Vec<T> {
    let mut state = initial;
    let step = |(&x, &c): (&T, &T)| {
        state = state * c + x;
        state
    };
    inputs.iter().zip(coeffs).map(step).collect()
}
// ANCHOR_END: linrec

// ANCHOR: linrec_into
/// Writes the outputs `y_l = y_{l-1} * c_l + x_l`, where `y_{-1}` is `initial`, into a given array.
/// Returns the final state: `y_{L-1}`, or `initial` if there are no elements.
///
/// `L` is the length of the shortest array. Other elements of longer arrays are neither read nor
/// written.
pub fn linrec_into<T: Element>(
    inputs: ArrayView1<T>,
    coeffs: ArrayView1<T>,
    initial: T,
    mut outputs: ArrayViewMut1<T>,
) -> T {
    let mut state = initial;
    for ((y, &x), &c) in outputs.iter_mut().zip(inputs).zip(coeffs) {
        state = state * c + x;
        *y = state;
    }
    state
}
// ANCHOR_END: linrec_into
