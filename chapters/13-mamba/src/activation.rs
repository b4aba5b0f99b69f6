//! The two functions that bring a number into a range, and their slopes.
//!
//! They are computed in double precision and rounded once. Only arrays without the states'
//! dimension pass through them, so the cost is small, and an error bound counts one rounding.

use crate::Real;

/// `ln(1 + e^x)` maps any number to a positive one and hardly changes large ones.
///
/// This form neither overflows nor loses digits, for either sign of `x`.
// ANCHOR: softplus
pub fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// The slope of [`softplus`]: the sigmoid `1 / (1 + e^-x)`.
pub fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// `x σ(x)` lets positive numbers pass and almost blocks negative ones.
pub fn silu(x: f64) -> f64 {
    x * sigmoid(x)
}
// ANCHOR_END: softplus

/// The slope of [`silu`].
pub fn silu_slope(x: f64) -> f64 {
    let gate = sigmoid(x);
    gate * (1.0 + x * (1.0 - gate))
}

/// Evaluates a function in double precision and rounds the result once.
pub fn rounded<T: Real>(function: impl Fn(f64) -> f64, x: T) -> T {
    T::narrow(function(x.widen()))
}
