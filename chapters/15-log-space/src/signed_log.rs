//! Numbers as a sign and a logarithm.

use linrec::Element;
use num_traits::Float;

/// A real number type with logarithms: `f32` or `f64`.
pub trait Real: Element<Wide = f64> + Float {}

impl<T: Element<Wide = f64> + Float> Real for T {}

// ANCHOR: signed_log
/// A real number as its sign and the logarithm of its size. Zero has the logarithm −∞.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SignedLog<T> {
    /// `ln |v|`.
    pub log: T,
    /// True if `v < 0`.
    pub negative: bool,
}

impl<T: Real> SignedLog<T> {
    /// Takes the number `v` to log space.
    pub fn of(v: T) -> Self {
        SignedLog { log: Float::ln(Float::abs(v)), negative: v < T::zero() }
    }

    /// Makes the number `e^log`.
    pub fn positive(log: T) -> Self {
        SignedLog { log, negative: false }
    }

    /// Returns the number itself. It may be too large or too small for its type, even though its
    /// logarithm is not.
    pub fn value(self) -> T {
        let size = Float::exp(self.log);
        if self.negative { -size } else { size }
    }

    /// Multiplies: logarithms add, and two minus signs cancel.
    pub fn times(self, other: Self) -> Self {
        SignedLog { log: self.log + other.log, negative: self.negative != other.negative }
    }

    /// Divides.
    pub fn over(self, other: Self) -> Self {
        SignedLog { log: self.log - other.log, negative: self.negative != other.negative }
    }
    // ANCHOR_END: signed_log

    // ANCHOR: plus
    /// Adds: the larger number times `1 ± e^-d`, where `d ≥ 0` is the distance of the logarithms.
    pub fn plus(self, other: Self) -> Self {
        let (large, small) = if self.log >= other.log { (self, other) } else { (other, self) };
        if small.log == T::neg_infinity() {
            return large; // plus zero
        }
        let ratio = Float::exp(small.log - large.log);
        let ratio = if large.negative == small.negative { ratio } else { -ratio };
        SignedLog { log: large.log + Float::ln_1p(ratio), negative: large.negative }
    }
    // ANCHOR_END: plus
}

#[cfg(test)]
mod tests {
    use super::SignedLog;
    use approx::assert_abs_diff_eq;

    #[test]
    fn arithmetic_matches_plain_numbers() {
        let values = [-3.5_f64, -1.0, -1e-300, 0.0, 1e-300, 0.25, 1.0, 7.0];
        for a in values {
            for b in values {
                let (p, q) = (SignedLog::of(a), SignedLog::of(b));
                let close = |got: f64, exact: f64, size: f64| {
                    assert!((got - exact).abs() <= 1e-12 * size, "{a} {b}: {got} {exact}");
                };
                close(p.plus(q).value(), a + b, a.abs() + b.abs());
                close(p.times(q).value(), a * b, (a * b).abs());
                if b != 0.0 {
                    close(p.over(q).value(), a / b, (a / b).abs());
                }
            }
        }
    }

    #[test]
    fn sums_may_exceed_every_type() {
        let huge = |log: f64| SignedLog::positive(log);
        assert_abs_diff_eq!(huge(1e4).plus(huge(1e4)).log, 1e4 + 2_f64.ln(), epsilon = 1e-11);
        assert_eq!(huge(-1e6).plus(huge(0.0)).log, 0.0);
        let nothing = huge(5.0).plus(SignedLog { log: 5.0, negative: true });
        assert_eq!(nothing.value(), 0.0);
    }

    #[test]
    fn nan_stays_nan() {
        let (nan, one) = (SignedLog::of(f64::NAN), SignedLog::of(1.0));
        for sum in [nan.plus(one), one.plus(nan), nan.plus(SignedLog::of(0.0)), nan.times(one)] {
            assert!(sum.value().is_nan());
        }
    }
}
