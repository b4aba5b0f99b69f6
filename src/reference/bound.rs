//! The distance of a correct engine's results from the reference: a bound derived from rounding.
//!
//! Every output is a sum of terms, `y_l = Σ_k c_{k+1} ⋯ c_l x_k`, and in floating point every
//! operation multiplies what it computes by some `1 + μ` with `|μ| ≤ ε`, the unit round-off. A term
//! `x_k` meets at most `l − k` products and additions on its way to `y_l` in a loop, and in an
//! engine that combines partial results in a tree at most as many, plus the `d` additions at the
//! levels of the tree. So its relative error is at most `(m (l − k) + 2 + d) ε`, with `m` the
//! roundings of one product and one addition. Summed over the terms with absolute values, that is
//! itself a linear recurrence, and [`Bound`] walks it together with the recurrence on absolute
//! values:
//!
//! ```text
//! ŷ_l = |c_l| ŷ_{l-1} + |x_l|
//! ẑ_l = |c_l| (ẑ_{l-1} + m ŷ_{l-1}) + (2 + d) |x_l|       error of y_l ≤ γ ẑ_l
//! ```
//!
//! `γ = v / (1 − n v)` with `v = ε + 2^-53` (the reference rounds, too) and `n` the largest number
//! of roundings that a term meets: the textbook bound for products of `1 + μ` (Higham, *Accuracy
//! and Stability of Numerical Algorithms*, lemma 3.1).
//!
//! Numbers near zero do not follow `1 + μ`: they are off by up to the smallest subnormal `η`. Each
//! of the `L + d` operations can add one `η`, which the later steps multiply by at most the largest
//! product of coefficients, and which, inside such a product, is multiplied by at most the largest
//! `ŷ`. (A complex product is four real ones: each of its parts can be off by `η`, the whole by
//! `√2 η`.)

use ndarray::{Array1, Array2, ArrayView2};

use super::{backward, wide_coeffs};
use crate::{Element, Error, Gradients, Options, Outputs, validate};

/// The roundings of an engine beyond the roundings of the recurrence itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rounding {
    /// `d`: the number of levels of additions that combine partial results. 0 for a loop, the depth
    /// of the tree for engines that compute parts independently.
    pub levels: usize,
    /// The error of the engine's `exp`, in units in the last place; used only with
    /// [`Options::log_coeffs`].
    pub exp_ulps: f64,
}

/// The largest errors that [`Engine::forward`](crate::Engine::forward) may make, result by result.
///
/// # Errors
///
/// If the shapes do not match.
pub fn forward_bound<T: Element>(
    inputs: ArrayView2<T>,
    coeffs: ArrayView2<T>,
    options: &Options<T>,
    rounding: Rounding,
) -> Result<Outputs<f64>, Error> {
    let (num_seqs, seq_len) = validate::forward(&inputs, &coeffs, options)?;
    let coeffs = wide_coeffs(coeffs, options).mapv(|c| c.modulus());
    let mut outputs = Array2::zeros((num_seqs, seq_len));
    let mut final_state = Array1::zeros(num_seqs);
    for row in 0..num_seqs {
        let initial = options.initial.as_ref().map_or(0.0, |initial| initial[row].modulus());
        let mut bound = Bound::new::<T>(seq_len, initial, options, rounding);
        for step in 0..seq_len {
            let l = options.direction.position(step, seq_len);
            outputs[[row, l]] = bound.step(coeffs[[row, l]], inputs[[row, l]].modulus());
            final_state[row] = outputs[[row, l]];
        }
    }
    Ok(Outputs { outputs, final_state })
}

/// The largest errors that [`Engine::backward`](crate::Engine::backward) may make, result by
/// result, when it is given the same `outputs` as the reference.
///
/// The gradient of the inputs is a recurrence itself, in the other direction. The gradient of a
/// coefficient is `y_{i-1} δ_i`, so it inherits the error of `δ_i` and adds the error of the
/// product.
///
/// # Errors
///
/// If the shapes do not match.
pub fn backward_bound<T: Element>(
    d_outputs: ArrayView2<T>,
    coeffs: ArrayView2<T>,
    outputs: ArrayView2<T>,
    options: &Options<T>,
    rounding: Rounding,
) -> Result<Gradients<f64>, Error> {
    let exact = backward(d_outputs, coeffs, outputs, options)?;
    let (num_seqs, seq_len) = d_outputs.dim();
    let coeffs = wide_coeffs(coeffs, options).mapv(|c| c.modulus());
    let mut bounds = Gradients {
        d_inputs: Array2::zeros((num_seqs, seq_len)),
        d_coeffs: Array2::zeros((num_seqs, seq_len)),
        d_initial: Array1::zeros(num_seqs),
    };
    let unit = T::UNIT_ROUNDOFF + f64::UNIT_ROUNDOFF;
    let tiny = T::PRODUCT_ROUNDINGS * T::SMALLEST_SUBNORMAL;
    let product = T::PRODUCT_ROUNDINGS * unit;
    let product_with_coeff = product + exp_roundings::<T>(options, rounding) * unit;

    for row in 0..num_seqs {
        let mut bound = Bound::new::<T>(seq_len, 0.0, options, rounding);
        let mut later_coeff = 0.0;
        for step in (0..seq_len).rev() {
            let l = options.direction.position(step, seq_len);
            let coeff = coeffs[[row, l]];
            let previous = match step {
                0 => options.initial.as_ref().map_or(0.0, |initial| initial[row].modulus()),
                _ => outputs[[row, options.direction.position(step - 1, seq_len)]].modulus(),
            };
            let error = bound.step(later_coeff, d_outputs[[row, l]].modulus());
            let delta = exact.d_inputs[[row, l]].modulus() + error;
            let d_coeff_error = previous * error + product * previous * delta + tiny;
            bounds.d_inputs[[row, l]] = error;
            bounds.d_coeffs[[row, l]] = match options.log_coeffs {
                false => d_coeff_error,
                true => {
                    coeff * d_coeff_error + product_with_coeff * coeff * previous * delta + tiny
                }
            };
            bounds.d_initial[row] = coeff * error + product_with_coeff * coeff * delta + tiny;
            later_coeff = coeff;
        }
    }
    Ok(bounds)
}

/// The roundings that `exp` adds to every product with a coefficient that was given as a logarithm.
/// A unit in the last place is up to `2 ε`; a complex exponential also has an angle and a product.
fn exp_roundings<T: Element>(options: &Options<T>, rounding: Rounding) -> f64 {
    if options.log_coeffs { 2.0 * rounding.exp_ulps * T::PRODUCT_ROUNDINGS } else { 0.0 }
}

/// The recurrences of `ŷ` and `ẑ` along one row, and the quantities of the underflow term.
struct Bound {
    /// The roundings per step that a term meets: `m`.
    per_step: f64,
    /// The roundings that every term meets: `2 + d`.
    per_term: f64,
    gamma: f64,
    tiny: f64,
    y_hat: f64,
    z: f64,
    steps: f64,
    max_y_hat: f64,
    /// The largest product of coefficients that ends at this step, and at any step so far.
    product: f64,
    max_product: f64,
}

impl Bound {
    fn new<T: Element>(
        seq_len: usize,
        initial: f64,
        options: &Options<T>,
        rounding: Rounding,
    ) -> Self {
        let per_step = T::PRODUCT_ROUNDINGS + 1.0 + exp_roundings(options, rounding);
        let per_term = 2.0 + rounding.levels as f64;
        let unit = T::UNIT_ROUNDOFF + f64::UNIT_ROUNDOFF;
        let roundings = per_step * seq_len as f64 + per_term;
        // Beyond 1/ε roundings nothing can be promised.
        let gamma =
            if roundings * unit < 1.0 { unit / (1.0 - roundings * unit) } else { f64::INFINITY };
        Bound {
            per_step,
            per_term,
            gamma,
            tiny: T::PRODUCT_ROUNDINGS * T::SMALLEST_SUBNORMAL,
            y_hat: initial,
            z: per_term * initial,
            steps: 0.0,
            max_y_hat: initial,
            product: 0.0,
            max_product: 0.0,
        }
    }

    /// Takes one step; returns the bound on the error of its output.
    fn step(&mut self, coeff: f64, input: f64) -> f64 {
        self.z = coeff * (self.z + self.per_step * self.y_hat) + self.per_term * input;
        self.y_hat = coeff * self.y_hat + input;
        self.max_y_hat = self.max_y_hat.max(self.y_hat);
        self.product = coeff * self.product.max(1.0);
        self.max_product = self.max_product.max(self.product);
        self.steps += 1.0;
        let operations = self.per_step * self.steps + self.per_term;
        // The tiny factor comes last: arithmetic of subnormal numbers is slow.
        let factors = operations * (1.0 + self.max_y_hat) * (1.0 + self.max_product);
        let underflow = factors * self.tiny;
        self.gamma * self.z + underflow
    }
}
