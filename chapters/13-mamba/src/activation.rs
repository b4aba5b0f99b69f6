//! The two functions that bring a number into a range, with their slopes.
//!
//! They are computed in double precision and rounded once. Only arrays without the state's
//! dimension go through them, so that costs little, and an error bound has one rounding to count.

use crate::Real;

/// `ln(1 + e^x)`: any number becomes a positive one; large ones stay almost as they are.
///
/// Written so that nothing overflows and no digit is lost on either side.
// ANCHOR: softplus
pub fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// The slope of [`softplus`]: the sigmoid `1 / (1 + e^-x)`.
pub fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// `x σ(x)`: lets positive numbers pass, and hardly any of a negative one.
pub fn silu(x: f64) -> f64 {
    x * sigmoid(x)
}
// ANCHOR_END: softplus

/// The slope of [`silu`].
pub fn silu_slope(x: f64) -> f64 {
    let gate = sigmoid(x);
    gate * (1.0 + x * (1.0 - gate))
}

/// A function in double precision, rounded once.
pub fn rounded<T: Real>(function: impl Fn(f64) -> f64, x: T) -> T {
    T::narrow(function(x.widen()))
}
