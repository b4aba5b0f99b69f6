//! Derivatives without a derivation: two ways to measure a slope.

use ndarray::{Array1, ArrayView1};
use num_complex::Complex;

/// Measures the slope of `loss` along every coordinate of `at` by central differences: two
/// evaluations, a little above and a little below.
///
/// # Errors
///
/// Returns the loss's own error.
// ANCHOR: central
pub fn central_differences<E>(
    at: ArrayView1<f64>,
    step: f64,
    loss: impl Fn(ArrayView1<f64>) -> Result<f64, E>,
) -> Result<Array1<f64>, E> {
    let mut point = at.to_owned();
    let mut slopes = Array1::zeros(at.len());
    for (i, &middle) in at.iter().enumerate() {
        let (above, below) = (middle + step, middle - step);
        point[i] = above;
        let loss_above = loss(point.view())?;
        point[i] = below;
        let loss_below = loss(point.view())?;
        point[i] = middle;
        // Not 2 * step: `above` and `below` were rounded.
        slopes[i] = (loss_above - loss_below) / (above - below);
    }
    Ok(slopes)
}
// ANCHOR_END: central

/// Measures the slope of `loss` along every coordinate of `at` by a step in the imaginary
/// direction: `loss(at + i h) = loss(at) + i h loss'(at) - …`. The imaginary part is the slope
/// times `h`, and no two numbers are subtracted.
///
/// `loss` must consist of analytic functions: no absolute value, no conjugate.
///
/// # Errors
///
/// Returns the loss's own error.
// ANCHOR: complex_step
pub fn complex_step<E>(
    at: ArrayView1<f64>,
    loss: impl Fn(ArrayView1<Complex<f64>>) -> Result<Complex<f64>, E>,
) -> Result<Array1<f64>, E> {
    const STEP: f64 = 1e-100;
    let mut point = at.mapv(Complex::from);
    let mut slopes = Array1::zeros(at.len());
    for i in 0..at.len() {
        point[i].im = STEP;
        slopes[i] = loss(point.view())?.im / STEP;
        point[i].im = 0.0;
    }
    Ok(slopes)
}
// ANCHOR_END: complex_step
