//! The reference: the loop in double precision, and how far from it an engine may be.
//!
//! [`forward`] and [`backward`] are the plain sequential loop in `f64` (or `Complex<f64>`).
//! [`forward_bound`] and [`backward_bound`] give, for every single result, the largest error that
//! correct arithmetic in the engine's own precision can make. The bound is derived, not tuned:
//! an engine that exceeds it has a bug, or rounds more often than it says.

pub(crate) mod bound;
pub(crate) mod loops;

pub use bound::Rounding;

use ndarray::ArrayView2;

use crate::{Element, Error, Gradients, Options, Outputs};

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
    T::exact_forward(inputs, coeffs, options)
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
    T::exact_backward(d_outputs, coeffs, outputs, options)
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
    T::forward_bound(inputs, coeffs, options, rounding)
}

/// The largest errors that [`Engine::backward`](crate::Engine::backward) may make, result by
/// result, when it is given the same `outputs` as the reference.
///
/// The gradient of the inputs is a recurrence itself, in the other direction. The gradient of a
/// coefficient is `y_{i-1} δ_i`, so it inherits the error of `δ_i` and adds that of the product.
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
    T::backward_bound(d_outputs, coeffs, outputs, options, rounding)
}
