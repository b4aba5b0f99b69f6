//! The causal depthwise convolution: every channel mixes its own latest few positions.

use ndarray::{Array2, Array3, ArrayView2, s};

use crate::Real;

/// Computes `x'_l = bias + Σ_k w_k x_{l-k}` in every channel, with `w_0` the last of the `weights`
/// `[channels, reach]`.
///
/// `x` is `[channels, batch · len]`. Positions before the first one of a sequence count as zero.
// ANCHOR: convolution
pub fn forward<T: Real>(
    x: ArrayView2<T>,
    len: usize,
    weights: ArrayView2<T>,
    bias: ArrayView2<T>,
) -> Array2<T> {
    let mut results = Array2::zeros(x.dim());
    let channels = results.rows_mut().into_iter().zip(x.rows());
    for (((mut results, x), weights), &bias) in channels.zip(weights.rows()).zip(bias) {
        results.fill(bias);
        let sequences = results.exact_chunks_mut(len).into_iter().zip(x.exact_chunks(len));
        for (mut results, x) in sequences {
            for (k, &weight) in weights.iter().rev().enumerate() {
                for (result, &x) in results.iter_mut().skip(k).zip(x) {
                    *result += weight * x;
                }
            }
        }
    }
    results
}
// ANCHOR_END: convolution

/// Computes one more position of the convolution for each sequence: `bias + Σ_k w_k x_{l-k}` in
/// every channel. `x_l` is `x` `[channels, batch]`, and the earlier positions are in `window`
/// `[channels, batch, reach - 1]`, the newest first. The window moves on by one.
// ANCHOR: step
pub fn step<T: Real>(
    x: ArrayView2<T>,
    window: &mut Array3<T>,
    weights: ArrayView2<T>,
    bias: ArrayView2<T>,
) -> Array2<T> {
    Array2::from_shape_fn(x.dim(), |(j, i)| {
        let mut result = bias[[j, 0]];
        let mut newest = x[[j, i]];
        let mut older = window.slice_mut(s![j, i, ..]).into_iter();
        for &weight in weights.row(j).iter().rev() {
            result += weight * newest;
            // Each position takes the place of the one before it.
            match older.next() {
                Some(place) => newest = std::mem::replace(place, newest),
                None => break,
            }
        }
        result
    })
}
// ANCHOR_END: step

/// The gradients of a convolution.
pub struct Gradients<T> {
    /// The gradient with respect to `x`.
    pub d_x: Array2<T>,
    /// The gradient with respect to the weights.
    pub d_weights: Array2<T>,
    /// The gradient with respect to the bias, one column.
    pub d_bias: Array2<T>,
}

/// Computes the gradients: every position passes its gradient to the inputs that it was made of.
pub fn backward<T: Real>(
    d_results: ArrayView2<T>,
    x: ArrayView2<T>,
    len: usize,
    weights: ArrayView2<T>,
) -> Gradients<T> {
    let mut d_x = Array2::zeros(x.dim());
    let mut d_weights = Array2::zeros(weights.dim());
    let mut d_bias = Array2::zeros((weights.nrows(), 1));
    for (channel, d_results) in d_results.rows().into_iter().enumerate() {
        d_bias[[channel, 0]] = d_results.sum();
        let mut d_x = d_x.row_mut(channel);
        let d_sequences = d_x.exact_chunks_mut(len).into_iter();
        let sequences = x.row(channel);
        let sequences = sequences.exact_chunks(len).into_iter().zip(d_results.exact_chunks(len));
        for (mut d_x, (x, d_results)) in d_sequences.zip(sequences) {
            for (k, &weight) in weights.row(channel).iter().rev().enumerate() {
                let d_weight = &mut d_weights[[channel, weights.ncols() - 1 - k]];
                for ((d_x, &x), &d_result) in d_x.iter_mut().zip(x).zip(d_results.iter().skip(k)) {
                    *d_x += weight * d_result;
                    *d_weight += x * d_result;
                }
            }
        }
    }
    Gradients { d_x, d_weights, d_bias }
}
