//! Many sequences in step: the same work as the loop's, but without waiting.

use linrec::Element;

// ANCHOR: side_by_side
/// Computes `N` sequences at once, from zero. `inputs[l]` contains element `l` of all of them.
///
/// The arrays must have the same length; elements past the end of the shortest are ignored.
pub fn side_by_side<T: Element, const N: usize>(
    inputs: &[[T; N]],
    coeffs: &[[T; N]],
    outputs: &mut [[T; N]],
) {
    let mut states = [T::zero(); N];
    for ((y, x), c) in outputs.iter_mut().zip(inputs).zip(coeffs) {
        for i in 0..N {
            states[i] = states[i] * c[i] + x[i];
        }
        *y = states;
    }
}
// ANCHOR_END: side_by_side
