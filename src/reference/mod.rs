//! The reference: the loop in double precision, and a bound on the distance of an engine from it.
//!
//! [`forward`] and [`backward`] are the plain sequential loop in `f64` (or `Complex<f64>`).
//! [`forward_bound`] and [`backward_bound`] give, for every single result, the largest error that
//! correct arithmetic in the engine's own precision can make. The bound is derived, not tuned: an
//! engine that exceeds it has a bug, or rounds more often than it states.

mod bound;

pub use bound::{Rounding, backward_bound, forward_bound};

use ndarray::{Array1, Array2, ArrayView2};
use num_traits::Zero;

use crate::{Element, Error, Gradients, Options, Outputs, validate};

/// Computes the recurrence with a sequential loop in double precision.
///
/// # Errors
///
/// If the shapes do not match.
pub fn forward<T: Element>(
    inputs: ArrayView2<T>,
    coeffs: ArrayView2<T>,
    options: &Options<T>,
) -> Result<Outputs<T::Wide>, Error> {
    let (num_seqs, seq_len) = validate::forward(&inputs, &coeffs, options)?;
    let coeffs = wide_coeffs(coeffs, options);
    let mut outputs = Array2::zeros((num_seqs, seq_len));
    let mut final_state = Array1::zeros(num_seqs);
    for row in 0..num_seqs {
        let mut state = wide_initial(options, row);
        for step in 0..seq_len {
            let l = options.direction.position(step, seq_len);
            state = state * coeffs[[row, l]] + inputs[[row, l]].widen();
            outputs[[row, l]] = state;
        }
        final_state[row] = state;
    }
    Ok(Outputs { outputs, final_state })
}

/// Computes the gradients with a sequential loop in double precision.
///
/// # Errors
///
/// If the shapes do not match.
pub fn backward<T: Element>(
    d_outputs: ArrayView2<T>,
    coeffs: ArrayView2<T>,
    outputs: ArrayView2<T>,
    options: &Options<T>,
) -> Result<Gradients<T::Wide>, Error> {
    let (num_seqs, seq_len) = validate::backward(&d_outputs, &coeffs, &outputs, options)?;
    let coeffs = wide_coeffs(coeffs, options);
    let mut d_inputs = Array2::zeros((num_seqs, seq_len));
    let mut d_coeffs = Array2::zeros((num_seqs, seq_len));
    let mut d_initial = Array1::zeros(num_seqs);
    for row in 0..num_seqs {
        // `carry` is what flows back from the later output into this one: δ_{l+1} c_{l+1}.
        let mut carry = T::Wide::zero();
        for step in (0..seq_len).rev() {
            let l = options.direction.position(step, seq_len);
            let delta = carry + d_outputs[[row, l]].widen();
            let previous = match step {
                0 => wide_initial(options, row),
                _ => outputs[[row, options.direction.position(step - 1, seq_len)]].widen(),
            };
            let d_coeff = delta * previous.conj();
            carry = delta * coeffs[[row, l]].conj();
            d_inputs[[row, l]] = delta;
            d_coeffs[[row, l]] =
                if options.log_coeffs { d_coeff * coeffs[[row, l]].conj() } else { d_coeff };
        }
        d_initial[row] = carry;
    }
    Ok(Gradients { d_inputs, d_coeffs, d_initial })
}

/// The coefficients that the loop multiplies with, in double precision.
fn wide_coeffs<T: Element>(coeffs: ArrayView2<T>, options: &Options<T>) -> Array2<T::Wide> {
    coeffs.mapv(|c| if options.log_coeffs { c.widen().exp() } else { c.widen() })
}

fn wide_initial<T: Element>(options: &Options<T>, row: usize) -> T::Wide {
    options.initial.as_ref().map_or(T::Wide::zero(), |initial| initial[row].widen())
}
