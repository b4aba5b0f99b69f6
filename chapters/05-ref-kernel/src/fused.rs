//! Chapter 1's loop, with the kernel's rounding.

use ch01_sequential_loop::rows;
use linrec::{Element, Error, Options, Outputs};
use ndarray::ArrayView2;

/// Computes the recurrence with one rounding per step: `mul_add` multiplies and adds exactly, and
/// rounds the sum.
///
/// Shapes: `inputs` and `coeffs` are `[num_seqs, seq_len]`.
///
/// # Errors
///
/// Returns an error if the shapes do not match.
// ANCHOR: fused
pub fn fused<T: Element>(
    inputs: ArrayView2<T>,
    coeffs: ArrayView2<T>,
    options: &Options<T>,
) -> Result<Outputs<T>, Error> {
    rows::forward(inputs, coeffs, options, |x, c, initial, mut y| {
        let mut state = initial;
        for l in 0..x.len() {
            state = state.mul_add(c[l], x[l]);
            y[l] = state;
        }
        Ok(state)
    })
}
// ANCHOR_END: fused
