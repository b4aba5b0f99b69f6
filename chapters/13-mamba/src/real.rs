//! Real numbers, and an exponential that a compiler can turn into vector instructions.

use std::ops::{AddAssign, DivAssign};

use linrec::Element;
use ndarray::ScalarOperand;

/// `f32` and `f64`: the numbers a selective scan is made of.
pub trait Real: Element<Wide = f64> + PartialOrd + ScalarOperand + AddAssign + DivAssign {
    /// The relative error of [`exponential`](Real::exponential), in units of the round-off `u`.
    const EXP_ROUNDINGS: f64;

    /// A result of [`exponential`](Real::exponential) below this may be zero instead.
    const EXP_UNDERFLOW: f64;

    /// `e^self`.
    fn exponential(self) -> Self;
}

impl Real for f64 {
    /// Standard libraries promise less than one unit in the last place, which is at most `2 u`.
    const EXP_ROUNDINGS: f64 = 2.0;
    const EXP_UNDERFLOW: f64 = f64::MIN_POSITIVE;

    #[inline(always)]
    fn exponential(self) -> f64 {
        self.exp()
    }
}

impl Real for f32 {
    const EXP_ROUNDINGS: f64 = 2.0;
    const EXP_UNDERFLOW: f64 = 1.2e-38;

    #[inline(always)]
    fn exponential(self) -> f32 {
        exp_f32(self)
    }
}

/// `e^x`, without a branch or a table: products, sums, and a shift of bits.
///
/// With `n` the whole number nearest to `x / ln 2` it is `2^n e^r`, where `r = x - n ln 2` lies within
/// 0.347 of zero. There the Taylor series up to `r^7` leaves `r^8 / 8!`, less than `0.1 u`; the roundings
/// on the way are small against the last one, of `1 + (r + …)`. Where the result would be subnormal it is 0;
/// above `x = 88` (results from `1.6e38`) it is infinite.
// ANCHOR: exp
#[inline(always)]
fn exp_f32(x: f32) -> f32 {
    // 1.5 · 2^23: adding it rounds to a whole number, which is left in the lowest bits.
    const ROUND: f32 = 12_582_912.0;
    // ln 2 in two parts. The first has so few bits that its product with n is exact.
    const LN_2: [f32; 2] = [355.0 / 512.0, -2.121_944_4e-4];
    let rounded = x * std::f32::consts::LOG2_E + ROUND;
    let n = rounded - ROUND;
    let r = (x - n * LN_2[0]) - n * LN_2[1];
    let mut tail = 1.0 / 5040.0;
    for coeff in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 1.0 / 2.0] {
        tail = tail * r + coeff;
    }
    let fraction = 1.0 + (r + r * r * tail);
    // 2^n: n goes to where a float has its exponent, which counts from -127.
    let power = f32::from_bits((rounded.to_bits() << 23).wrapping_add(127 << 23));
    match fraction * power {
        _ if x < -87.33 => 0.0,
        _ if x > 88.0 => f32::INFINITY,
        value => value,
    }
}
// ANCHOR_END: exp
