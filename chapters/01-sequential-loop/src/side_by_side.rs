//! Many sequences in step: the same work as the loop's, with nothing to wait for.

use linrec::Element;

// ANCHOR: side_by_side
/// `N` sequences at once, from zero: element `l` of all of them lies in `inputs[l]`.
///
/// The arrays must have the same length; what exceeds the shortest is not used.
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
