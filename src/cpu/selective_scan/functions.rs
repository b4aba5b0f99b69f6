//! The exponential, and what the scan makes of it, for vectors of real numbers.
//!
//! They consist of sums, products, one division and a shift of bits, without tables, branches or
//! fused multiply-adds. So a compiler makes vector instructions of them, and all instruction sets
//! give the same bits. The error bounds that the tests derive are in
//! `tests/suite/selective_scan/reference.rs`.

use num_traits::Float;

use crate::Element;

/// A real number that a selective scan computes with: `f32` or `f64`.
pub trait ScanReal: Element + Float {
    /// 1.5 times the power of two beyond which all numbers are integers: a number to which it is
    /// added is rounded to an integer, which ends up in the lowest bits.
    #[doc(hidden)]
    const ROUND: Self;
    /// The logarithm of 2 in two parts. The first has so few bits that its product with an exponent
    /// is exact.
    #[doc(hidden)]
    const LN_2: [Self; 2];
    /// The coefficients of the exponential's Taylor series, from the highest one to that of `r^2`.
    #[doc(hidden)]
    const TAYLOR: &'static [Self];
    /// The coefficients `1 / (2k + 1)` of the inverse hyperbolic tangent, from the highest one to
    /// that of `k = 1`.
    #[doc(hidden)]
    const ATANH: &'static [Self];
    /// The arguments between which the exponential is neither subnormal nor near infinity.
    #[doc(hidden)]
    const RANGE: [Self; 2];

    /// Returns `2^n`, where `rounded` is `n + ROUND`.
    #[doc(hidden)]
    fn power_of_two(rounded: Self) -> Self;
}

macro_rules! scan_real {
    ($real:ident, $digits:literal, $bias:literal, $round:literal, $ln_2:expr, $range:expr,
     [$($factorial:literal)*], [$($odd:literal)*]) => {
        impl ScanReal for $real {
            const ROUND: $real = $round;
            const LN_2: [$real; 2] = $ln_2;
            const TAYLOR: &'static [$real] = &[$(1.0 / $factorial),*];
            const ATANH: &'static [$real] = &[$(1.0 / $odd),*];
            const RANGE: [$real; 2] = $range;

            #[inline(always)]
            fn power_of_two(rounded: $real) -> $real {
                $real::from_bits((rounded.to_bits() << $digits).wrapping_add($bias << $digits))
            }
        }
    };
}

// The series leave errors of r^8 / 8! and r^14 / 14! with |r| <= 0.347, less than 0.1 u, and of
// s^16 / 17 and s^34 / 35 with |s| <= 1/3, less than 0.1 u as well.
scan_real!(f32, 23, 127, 12_582_912.0, [355.0 / 512.0, -2.121_944_4e-4], [-87.33, 88.0],
    [5040.0 720.0 120.0 24.0 6.0 2.0], [15.0 13.0 11.0 9.0 7.0 5.0 3.0]);
scan_real!(f64, 52, 1023, 6_755_399_441_055_744.0,
    [0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10], [-708.39, 709.0],
    [6_227_020_800.0 479_001_600.0 39_916_800.0 3_628_800.0 362_880.0 40_320.0 5040.0 720.0 120.0
     24.0 6.0 2.0],
    [33.0 31.0 29.0 27.0 25.0 23.0 21.0 19.0 17.0 15.0 13.0 11.0 9.0 7.0 5.0 3.0]);

/// `e^x`. With `n` the integer nearest to `x / ln 2`, it is `2^n e^r`, where `r = x - n ln 2` is
/// within 0.347 of zero. A subnormal result becomes 0; above the range (`e^88` for `f32`, `e^709`
/// for `f64`) it is infinite.
#[inline(always)]
pub fn exp<T: ScanReal>(x: T) -> T {
    let log2_e = T::from_real(std::f64::consts::LOG2_E);
    let rounded = x * log2_e + T::ROUND;
    let n = rounded - T::ROUND;
    let r = (x - n * T::LN_2[0]) - n * T::LN_2[1];
    let mut tail = T::TAYLOR[0];
    for &coeff in &T::TAYLOR[1..] {
        tail = tail * r + coeff;
    }
    let fraction = T::one() + (r + r * r * tail);
    let value = fraction * T::power_of_two(rounded);
    let value = if x < T::RANGE[0] { T::zero() } else { value };
    if x > T::RANGE[1] { T::infinity() } else { value }
}

/// `ln(1 + e^x) = max(x, 0) + ln(1 + e)` with `e = e^-|x|`. With `s = e / (2 + e)`, the logarithm
/// is `2 (s + s^3/3 + s^5/5 + ...)`.
#[inline(always)]
pub fn softplus<T: ScanReal>(x: T) -> T {
    let e = exp(-x.abs());
    let s = e / (T::one() + T::one() + e);
    let square = s * s;
    let mut tail = T::ATANH[0];
    for &coeff in &T::ATANH[1..] {
        tail = tail * square + coeff;
    }
    let logarithm = s + s * square * tail;
    let positive = if x > T::zero() { x } else { T::zero() };
    positive + (logarithm + logarithm)
}

/// `1 / (1 + e^-x)`.
#[inline(always)]
pub fn sigmoid<T: ScanReal>(x: T) -> T {
    T::one() / (T::one() + exp(-x))
}
