//! Comparing log space with the reference, and with its own bound, case by case.

use linrec::contract::{Case, Data};
use linrec::{Engine, Error, reference};
use ndarray::{Array, Array2, Dimension};

use crate::{LogSpace, Real, bound};

/// Runs a case of the contract's table forward and backward. Returns the largest error in units
/// of its bound.
///
/// # Errors
///
/// What exceeds its bound or is not a number, as a sentence, or the engine's own error.
pub fn check<T: Real>(engine: &LogSpace, case: &Case) -> Result<f64, String> {
    let data: Data<T> = case.data();
    let (x, c, options) = (data.inputs.view(), data.coeffs(), &data.options);
    let text = |error: Error| error.to_string();

    let exact = reference::forward(x, c, options).map_err(text)?;
    let limit = bound::forward(engine, x, c, options).map_err(text)?;
    let got = engine.forward(x, c, options).map_err(text)?;
    let outputs = worst("outputs", &got.outputs, &exact.outputs, &limit.outputs)?;
    let state = worst("final_state", &got.final_state, &exact.final_state, &limit.final_state)?;

    // Each pass is judged by itself: the backward pass gets the reference's outputs.
    let y: Array2<T> = case.layout.apply(exact.outputs.mapv(T::narrow));
    let (dy, y) = (data.d_outputs.view(), y.view());
    let exact = reference::backward(dy, c, y, options).map_err(text)?;
    let limit = bound::backward(engine, dy, c, y, options).map_err(text)?;
    let got = engine.backward(dy, c, y, options).map_err(text)?;
    let d_inputs = worst("d_inputs", &got.d_inputs, &exact.d_inputs, &limit.d_inputs)?;
    let d_coeffs = worst("d_coeffs", &got.d_coeffs, &exact.d_coeffs, &limit.d_coeffs)?;
    let d_initial = worst("d_initial", &got.d_initial, &exact.d_initial, &limit.d_initial)?;
    Ok([outputs, state, d_inputs, d_coeffs, d_initial].into_iter().fold(0.0, f64::max))
}

/// The largest `|got − exact| / bound` of an array.
///
/// # Errors
///
/// If a result exceeds its bound or is not a number, or if the shapes differ.
pub fn worst<T: Real, D: Dimension>(
    name: &str,
    got: &Array<T, D>,
    exact: &Array<f64, D>,
    bound: &Array<f64, D>,
) -> Result<f64, String> {
    if got.shape() != exact.shape() || got.shape() != bound.shape() {
        return Err(format!("{name} has shape {:?} instead of {:?}", got.shape(), exact.shape()));
    }
    let mut worst = 0.0_f64;
    for ((index, got), (exact, bound)) in got.indexed_iter().zip(exact.iter().zip(bound)) {
        let error = (got.widen() - exact).abs();
        // Written so that NaN fails.
        let within = error <= *bound;
        if !within {
            return Err(format!("{name}{index:?}: {got} instead of {exact}, bound {bound:.1e}"));
        }
        if error > 0.0 {
            worst = worst.max(error / bound);
        }
    }
    Ok(worst)
}
