//! The matrix `C̃`, and the two products with it.

use linrec::{Element, Error, validate};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, s};

/// Computes the mixing matrix `C̃` of a sequence, of shape `[L, L]`. The entry in row `k` and
/// column `l` is the product `c_{k+1} ⋯ c_l`, 1 on the diagonal and 0 below it. `coeffs` has the
/// shape `[L]`.
///
/// Row `k` is the recurrence's response to an input that is 1 at `k` and 0 elsewhere, so the
/// recurrence fills it: one product per entry, no division.
///
/// # Errors
///
/// Returns [`Error::OutOfMemory`] if `L²` elements do not fit into memory.
// ANCHOR: build
pub fn mixing_matrix<T: Element>(coeffs: ArrayView1<T>) -> Result<Array2<T>, Error> {
    let seq_len = coeffs.len();
    let mut matrix = validate::allocate("mixing_matrix", (seq_len, seq_len))?;
    for k in 0..seq_len {
        let mut product = T::one();
        matrix[[k, k]] = product;
        for l in k + 1..seq_len {
            product = product * coeffs[l];
            matrix[[k, l]] = product;
        }
    }
    Ok(matrix)
}
// ANCHOR_END: build

/// Computes the outputs `y = C̃ᵀ x` of a sequence: the sum of the matrix's rows, weighted by the
/// inputs. `inputs` and the result have the shape `[L]`.
///
/// # Errors
///
/// Returns [`Error::ShapeMismatch`] if the matrix is not `[L, L]`.
// ANCHOR: mix
pub fn mix<T: Element>(matrix: ArrayView2<T>, inputs: ArrayView1<T>) -> Result<Array1<T>, Error> {
    check_square(&matrix, inputs.len())?;
    let mut outputs = Array1::zeros(inputs.len());
    for (k, &input) in inputs.iter().enumerate() {
        // Left of the diagonal there is nothing to add: the past does not depend on the future.
        outputs.slice_mut(s![k..]).scaled_add(input, &matrix.slice(s![k, k..]));
    }
    Ok(outputs)
}
// ANCHOR_END: mix

/// Computes the gradient of the inputs, `δ^(x) = C̃ δ^(y)`. This is the product with the transposed
/// matrix of [`mix`] (for complex elements its conjugate, as PyTorch defines gradients).
///
/// # Errors
///
/// Returns [`Error::ShapeMismatch`] if the matrix is not `[L, L]`.
// ANCHOR: mix_back
pub fn mix_back<T: Element>(
    matrix: ArrayView2<T>,
    d_outputs: ArrayView1<T>,
) -> Result<Array1<T>, Error> {
    let seq_len = d_outputs.len();
    check_square(&matrix, seq_len)?;
    // Starting at the far end, terms with many factors take part in few additions, so the loop's
    // error bound holds.
    let d_input = |k: usize| {
        let terms = (k..seq_len).rev().map(|l| matrix[[k, l]].conj() * d_outputs[l]);
        terms.fold(T::zero(), |sum, term| sum + term)
    };
    Ok(Array1::from_shape_fn(seq_len, d_input))
}
// ANCHOR_END: mix_back

fn check_square<T>(matrix: &ArrayView2<T>, seq_len: usize) -> Result<(), Error> {
    let expected = [seq_len, seq_len];
    validate::same_shape("mix", ("a matrix of", &expected), ("matrix", matrix.shape()))
}

/// Computes the block of `C̃ᵀ` that crosses a split as an outer product. Its columns are the inputs
/// before the split, its rows the outputs from the split on; its shape is `[L - split, split]`.
///
/// One factor describes how the inputs of the first part form its last state, the other how that
/// state fades in the second part: the whole block passes through a single number, the carry.
///
/// # Errors
///
/// Returns [`Error::ShapeMismatch`] if the matrix is not square.
// ANCHOR: rank_one
pub fn rank_one_block<T: Element>(matrix: ArrayView2<T>, split: usize) -> Result<Array2<T>, Error> {
    let seq_len = matrix.ncols();
    check_square(&matrix, seq_len)?;
    let split = split.min(seq_len);
    Ok(Array2::from_shape_fn((seq_len - split, split), |(row, k)| {
        let (fades, makes_up) = (matrix[[split - 1, split + row]], matrix[[k, split - 1]]);
        fades * makes_up
    }))
}
// ANCHOR_END: rank_one
