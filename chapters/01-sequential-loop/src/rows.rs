//! Makes forward and backward passes over `[num_seqs, seq_len]` arrays from a function that
//! computes one row. Later chapters pass their own row functions.

use linrec::{Direction, Element, Error, Options, Outputs, validate};
use ndarray::{ArrayBase, ArrayView1, ArrayView2, ArrayViewMut1, Axis, CowArray, Ix2, RawData};

pub use crate::rows::backward::backward;

mod backward;

// ANCHOR: forward
/// Computes every row with `row(inputs, coeffs, initial, outputs)`, which returns the final state.
///
/// Shapes: `inputs` and `coeffs` are `[num_seqs, seq_len]`, the initial state is `[num_seqs]`.
///
/// # Errors
///
/// Returns an error if the shapes do not match, if the result does not fit into memory, or if `row`
/// fails.
pub fn forward<T: Element>(
    inputs: ArrayView2<T>,
    coeffs: ArrayView2<T>,
    options: &Options<T>,
    row: impl Fn(ArrayView1<T>, ArrayView1<T>, T, ArrayViewMut1<T>) -> Result<T, Error>,
) -> Result<Outputs<T>, Error> {
    let (num_seqs, seq_len) = validate::forward(&inputs, &coeffs, options)?;
    let mut outputs = validate::allocate("forward", (num_seqs, seq_len))?;
    let mut states = validate::initial_states("forward", options, num_seqs)?;
    let coeffs = plain_coeffs("forward", coeffs, options)?;

    let x = in_walking_order(inputs, options.direction);
    let c = in_walking_order(coeffs.view(), options.direction);
    let mut y = in_walking_order(outputs.view_mut(), options.direction);
    for i in 0..num_seqs {
        states[i] = row(x.row(i), c.row(i), states[i], y.row_mut(i))?;
    }
    Ok(Outputs { outputs, final_state: states })
}

/// Reverses every row if `direction` is reverse, so that the first element comes first in the
/// direction of the walk. Only the stride changes its sign; nothing is copied.
fn in_walking_order<S: RawData>(
    mut array: ArrayBase<S, Ix2>,
    direction: Direction,
) -> ArrayBase<S, Ix2> {
    if direction == Direction::Reverse {
        array.invert_axis(Axis(1));
    }
    array
}
// ANCHOR_END: forward

/// Returns the coefficients that the recurrence multiplies by: `exp` of coefficients that are given
/// as logarithms.
fn plain_coeffs<'a, T: Element>(
    operation: &'static str,
    coeffs: ArrayView2<'a, T>,
    options: &Options<T>,
) -> Result<CowArray<'a, T, Ix2>, Error> {
    if !options.log_coeffs {
        return Ok(coeffs.into());
    }
    let mut plain = validate::allocate(operation, coeffs.dim())?;
    plain.zip_mut_with(&coeffs, |plain, log| *plain = log.exp());
    Ok(plain.into())
}
