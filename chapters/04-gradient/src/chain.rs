//! The chain rule behind the coefficients, for gradients of the variables that coefficients are
//! computed from.

use linrec::Gradients;
use ndarray::{Array1, Array2, ArrayView2, Axis};

/// Computes `σ(z) = 1 / (1 + e^-z)`, which turns any number into a gate between 0 and 1.
// ANCHOR: sigmoid
pub fn sigmoid(z: f64) -> f64 {
    1.0 / (1.0 + (-z).exp())
}

/// Returns the derivative `σ'(z) = σ(z) (1 - σ(z))`, given the gate `σ(z)`.
pub fn sigmoid_slope(gate: f64) -> f64 {
    gate * (1.0 - gate)
}
// ANCHOR_END: sigmoid

/// Computes the gradient of `z` if the inputs are `x = z` and the coefficients are `c = σ(z)`: the
/// gradients of both paths are added. All shapes are `[num_seqs, seq_len]`; `coeffs` are the gates
/// `σ(z)`.
// ANCHOR: common
pub fn common_input(gradients: &Gradients<f64>, coeffs: ArrayView2<f64>) -> Array2<f64> {
    &gradients.d_inputs + &gradients.d_coeffs * &coeffs.mapv(sigmoid_slope)
}
// ANCHOR_END: common

/// Computes the gradient of a coefficient that all positions of a sequence share: the sum of the
/// gradients at each position, of shape `[num_seqs]`.
// ANCHOR: shared
pub fn shared_coeff(gradients: &Gradients<f64>) -> Array1<f64> {
    gradients.d_coeffs.sum_axis(Axis(1))
}
// ANCHOR_END: shared
