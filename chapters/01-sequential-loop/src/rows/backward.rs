//! The gradient, which chapter 4 derives: the same recurrence in the other direction, with
//! coefficients shifted by one step.

use linrec::{Element, Error, Gradients, Options, validate};
use ndarray::{Array1, ArrayView1, ArrayView2, ArrayViewMut1, s};

use super::{forward, in_walking_order, plain_coeffs};

/// Computes the gradients of every row with the same `row` function as [`forward`].
///
/// Shapes: all arrays are `[num_seqs, seq_len]`, the initial state is `[num_seqs]`. `outputs` must
/// come from the forward pass with the same `coeffs` and `options`.
///
/// # Errors
///
/// Same as [`forward`].
pub fn backward<T: Element>(
    d_outputs: ArrayView2<T>,
    coeffs: ArrayView2<T>,
    outputs: ArrayView2<T>,
    options: &Options<T>,
    row: impl Fn(ArrayView1<T>, ArrayView1<T>, T, ArrayViewMut1<T>) -> Result<T, Error>,
) -> Result<Gradients<T>, Error> {
    let shape = validate::backward(&d_outputs, &coeffs, &outputs, options)?;
    let (num_seqs, seq_len) = shape;
    let direction = options.direction;
    let plain = plain_coeffs("backward", coeffs, options)?;
    let coeffs = in_walking_order(plain.view(), direction);
    // All steps but the first, and all but the last; both are empty for an empty sequence.
    let (later, earlier) = (seq_len.min(1).., ..seq_len.saturating_sub(1));

    // The gradient flows from y_{l+1} to y_l through c_{l+1}. Nothing comes after the last step.
    let mut next_coeffs = validate::allocate("backward", shape)?;
    in_walking_order(next_coeffs.view_mut(), direction)
        .slice_mut(s![.., earlier])
        .zip_mut_with(&coeffs.slice(s![.., later.clone()]), |next, c: &T| *next = c.conj());
    let against = Options { direction: direction.reversed(), ..Options::default() };
    let d_inputs = forward(d_outputs, next_coeffs.view(), &against, row)?.outputs;

    // A coefficient multiplies the previous state: y_{l-1}, and y_{-1} in the first step.
    let mut d_coeffs = validate::allocate("backward", shape)?;
    let mut d_initial = Array1::zeros(num_seqs);
    {
        let mut previous = in_walking_order(d_coeffs.view_mut(), direction);
        let outputs = in_walking_order(outputs, direction);
        previous.slice_mut(s![.., later]).assign(&outputs.slice(s![.., earlier]));
        if seq_len > 0 {
            if let Some(initial) = &options.initial {
                previous.column_mut(0).assign(initial);
            }
            let d_inputs = in_walking_order(d_inputs.view(), direction);
            for i in 0..num_seqs {
                d_initial[i] = d_inputs[[i, 0]] * coeffs[[i, 0]].conj();
            }
        }
    }
    d_coeffs.zip_mut_with(&d_inputs, |d, &delta: &T| *d = delta * d.conj());
    if options.log_coeffs {
        d_coeffs.zip_mut_with(&plain, |d, c| *d = *d * c.conj());
    }
    Ok(Gradients { d_inputs, d_coeffs, d_initial })
}
