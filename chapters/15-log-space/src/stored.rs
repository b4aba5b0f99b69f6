//! The two sums with every array stored in few bits, one array operation after another.

use linrec::Element;
use num_traits::{Float, NumCast};

use crate::{Order, SignedLog, bound};

// ANCHOR: stored
/// The recurrence from zero, written with nothing but arrays and prefix sums: each of the five
/// intermediate arrays is rounded to `S`. Within an operation it computes in `f32`.
///
/// The inputs, and the coefficients as logarithms, are given in storage precision.
pub fn array_by_array<S: Float>(inputs: &[S], log_coeffs: &[S]) -> Vec<S> {
    let keep = |v: SignedLog<f32>| SignedLog { log: widen(narrow::<S>(v.log)), ..v };
    let keep_all = |array: &mut [SignedLog<_>]| array.iter_mut().for_each(|v| *v = keep(*v));

    let mut a: Vec<_> = log_coeffs.iter().map(|c| SignedLog::positive(widen(*c))).collect();
    Order::Tree.prefix(&mut a, SignedLog::times);
    keep_all(&mut a);
    let x = inputs.iter().map(|x| keep(SignedLog::of(widen(*x))));
    let mut b: Vec<_> = x.zip(&a).map(|(x, &a)| keep(x.over(a))).collect();
    Order::Tree.prefix(&mut b, SignedLog::plus);
    keep_all(&mut b);
    a.iter().zip(&b).map(|(&a, &b)| narrow(keep(a.times(b)).value())).collect()
}
// ANCHOR_END: stored

/// Rounds to the nearest number of `S`.
pub(crate) fn narrow<S: Float>(number: f32) -> S {
    <S as NumCast>::from(number).unwrap_or_else(S::nan)
}

/// Converts a stored number to the `f32` of the computation.
pub(crate) fn widen<S: Float>(number: S) -> f32 {
    number.to_f32().unwrap_or(f32::NAN)
}

/// Bounds the errors of [`array_by_array`], relative to the recurrence on absolute values.
///
/// The rounding of each array adds to the bound of log space ([`bound::roundings`]): `a` counts
/// twice, once where it divides and once where it multiplies.
pub fn relative_bound(
    storage: Narrow,
    terms: usize,
    way: f64,
    largest_log: f64,
    log_y_hat: f64,
) -> f64 {
    let partial = largest_log + way + (terms as f64).ln();
    if partial >= storage.largest {
        return f64::INFINITY; // a logarithm that cannot be stored
    }
    let computed = bound::roundings(Order::Tree, terms, way, largest_log, log_y_hat);
    let stored = 2.0 * way + largest_log + 2.0 * partial + log_y_hat.abs() + 2.0;
    let u = f32::UNIT_ROUNDOFF;
    (computed * u + stored * storage.unit_roundoff).exp_m1() + storage.unit_roundoff
}

/// The properties of a narrow type.
#[derive(Debug, Clone, Copy)]
pub struct Narrow {
    /// The unit round-off.
    pub unit_roundoff: f64,
    /// The largest number.
    pub largest: f64,
    /// The smallest number above zero.
    pub smallest: f64,
}

/// bfloat16: 8 significant bits, the range of `f32`.
pub const BF16: Narrow = Narrow {
    unit_roundoff: 1.0 / 256.0,
    largest: 3.3895313892515355e38,
    smallest: 9.183549615799121e-41,
};

/// float16: 11 significant bits, and nothing above 65504.
pub const F16: Narrow =
    Narrow { unit_roundoff: 1.0 / 2048.0, largest: 65504.0, smallest: 5.960464477539063e-8 };

#[cfg(test)]
mod tests {
    use super::{BF16, F16, array_by_array};
    use crate::{Order, SignedLog, two_sums};
    use approx::assert_abs_diff_eq;
    use half::{bf16, f16};

    #[test]
    fn the_constants_match_the_types() {
        assert_eq!(F16.largest, f16::MAX.to_f64());
        assert_eq!(F16.unit_roundoff, f16::EPSILON.to_f64() / 2.0);
        assert_eq!(BF16.unit_roundoff, bf16::EPSILON.to_f64() / 2.0);
        assert_eq!(BF16.largest, bf16::MAX.to_f64());
        assert_eq!(BF16.smallest, bf16::from_bits(1).to_f64());
        assert_eq!(F16.smallest, f16::from_bits(1).to_f64());
    }

    #[test]
    fn storage_in_f32_gives_the_results_of_two_sums() {
        let (inputs, logs) = ([1.0_f32, -2.0, 0.5, 3.0, 0.0], [-0.5_f32, -0.1, 0.2, -3.0, -0.7]);
        let x: Vec<_> = inputs.iter().map(|&x| SignedLog::of(x)).collect();
        let c: Vec<_> = logs.iter().map(|&c| SignedLog::positive(c)).collect();
        let exact = two_sums(Order::Tree, &x, &c, SignedLog::of(0.0));
        for (got, exact) in array_by_array(&inputs, &logs).iter().zip(exact) {
            assert_abs_diff_eq!(*got, exact.value(), epsilon = 1e-6);
        }
    }

    #[test]
    fn storage_in_16_bits_loses_digits_but_no_signs() {
        let store = |v: f32| bf16::from_f32(v);
        let y = array_by_array(&[store(1.0), store(-3.0)], &[store(0.0), store(-0.5)]);
        assert_abs_diff_eq!(y[0].to_f32(), 1.0, epsilon = 0.02);
        let exact = -3.0 + (-0.5_f32).exp();
        assert_abs_diff_eq!(y[1].to_f32(), exact, epsilon = 0.1);
    }
}
