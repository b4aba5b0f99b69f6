//! Sums of products as tensor cores form them.
//!
//! PTX leaves open how the floats of a matrix product are rounded on the way. This is a model that
//! has been published for GPUs since Hopper (Xie, Wang, Yang and Yang, *MMA-Sim*, arXiv 2511.10909,
//! 2025). Products are exact. They and the summand are aligned to the largest of their exponents
//! and cut off, toward zero, some bits after its point. Their sum is exact. It is cut off to an
//! `f32`, or rounded to nearest where summand and result are halves. Where only one of these is a
//! half, it is converted before or after the sum.
//!
//! An H100 (driver 580.159) has the same bits. The comparison took 16 million sums in `mma.sync`
//! and `wmma`, of all shapes with `f16`, `bf16` and `tf32`, and with `f16` and `f32` as summand and
//! as result. Operands were random bits, exponents near each other and far apart, subnormal
//! numbers, zeros, infinities and NaN; sums cancelled, overflowed and underflowed. Where every sum
//! is exact, as for small integers, there is no choice. Products of `f64` are fused multiply-adds,
//! one after the other in the order of the depth; a kernel of NVIDIA's samples has the bits of an
//! H100 with them.

use super::convert::float_bits;
use crate::isa::{Element, How, Round, Type, half_as_f32};

/// The number of bits after the point of the largest exponent that take part in a sum.
const FRACTION: i32 = 25;

/// The least exponent that terms are aligned to, as measured. (The smallest `f32` is 2^-149, and
/// 2^-158 takes part in its sum.)
const LEAST_EXPONENT: i32 = -133;

/// A number in the form in which sums take it: `significand` times 2 to the power of `exponent -
/// fraction`.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Number {
    significand: i64,
    exponent: i32,
    fraction: i32,
    /// The value, if it is not finite.
    special: Option<f64>,
}

impl Number {
    /// Returns the number that the bits of an element encode.
    pub(crate) fn of(element: Element, bits: u64) -> Number {
        let (fraction, exponent_bits, bits) = match element {
            Element::F16 => (10, 5, bits as u32),
            Element::Bf16 => (7, 8, bits as u32),
            Element::Tf32 => (10, 8, bits as u32 >> 13),
            _ => (23, 8, bits as u32),
        };
        let field = bits >> fraction & ((1 << exponent_bits) - 1);
        let rest = bits & ((1 << fraction) - 1);
        let is_negative = bits >> (fraction + exponent_bits) & 1 == 1;
        let sign = if is_negative { -1 } else { 1 };
        if field == (1 << exponent_bits) - 1 {
            let special = if rest == 0 { f64::from(sign) * f64::INFINITY } else { f64::NAN };
            return Number { special: Some(special), ..Number::default() };
        }
        let hidden = if field == 0 { 0 } else { 1 << fraction };
        let bias = (1 << (exponent_bits - 1)) - 1;
        Number {
            significand: i64::from(sign) * i64::from(rest | hidden),
            exponent: field.max(1) as i32 - bias,
            fraction,
            special: None,
        }
    }

    fn times(self, other: Number) -> Number {
        let value = |number: Number| number.special.unwrap_or(number.significand as f64);
        let special = match (self.special, other.special) {
            (None, None) => None,
            // One factor is infinite or NaN. Of the other factor only the sign counts, and whether
            // it is 0.
            _ => Some(value(self) * value(other)),
        };
        Number {
            significand: self.significand * other.significand,
            exponent: self.exponent + other.exponent,
            fraction: self.fraction + other.fraction,
            special,
        }
    }

    /// Cuts the number off to a whole number of units of 2 to the power of `largest - FRACTION`.
    fn aligned(self, largest: i32) -> i64 {
        let size = self.significand.unsigned_abs() << (FRACTION - self.fraction);
        let size = size.checked_shr((largest - self.exponent) as u32).unwrap_or(0) as i64;
        if self.significand < 0 { -size } else { size }
    }
}

/// Returns the bits of the sum of `c` and the products of `a` and `b`, as an `f32` or a half.
pub(crate) fn sum(a: &[Number], b: &[Number], c: Number, to: Element) -> u32 {
    let products = || a.iter().zip(b).map(|(a, b)| a.times(*b));
    let terms = || products().chain([c]);
    if a.iter().chain(b).chain([&c]).any(|number| number.special.is_some()) {
        let special: f64 = terms().filter_map(|term| term.special).sum();
        return finished(special, to);
    }
    let exponents = terms().filter(|term| term.significand != 0).map(|term| term.exponent);
    let Some(largest) = exponents.max() else { return 0 };
    let largest = largest.max(LEAST_EXPONENT);
    let sum: i64 =
        terms().map(|term| if term.significand == 0 { 0 } else { term.aligned(largest) }).sum();
    match to {
        Element::F16 => finished(sum as f64 * power(largest - FRACTION), to),
        _ => cut_off(sum, largest - FRACTION),
    }
}

/// Returns a power of two, which is normal for every sum of products of halves.
fn power(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// Rounds a sum to nearest. A sum of 0 is positive, even if it was less before it was rounded.
fn finished(value: f64, to: Element) -> u32 {
    let ty = if to == Element::F16 { Type::F16 } else { Type::F32 };
    match float_bits(ty, value, Round::Nearest) as u32 {
        0x8000 if to == Element::F16 => 0,
        bits => bits,
    }
}

/// Converts a summand to the type of the sum.
pub(crate) fn summand(from: Element, bits: u32, to: Element) -> u32 {
    match (from, to) {
        (Element::F16, Element::F32) => half_as_f32(bits as u16).to_bits(),
        _ => bits,
    }
}

/// Converts a sum to the type of the result.
pub(crate) fn rounded(from: Element, bits: u32, to: Element) -> u32 {
    match (from, to) {
        (Element::F32, Element::F16) => {
            float_bits(Type::F16, f32::from_bits(bits).into(), Round::Nearest) as u32
        }
        _ => bits,
    }
}

/// Returns `units` times 2 to the power of `exponent` as an `f32`, with the other bits cut off.
fn cut_off(units: i64, exponent: i32) -> u32 {
    let (size, sign) = (units.unsigned_abs(), if units < 0 { 1 << 31 } else { 0 });
    if size == 0 {
        return 0;
    }
    let highest = 63 - size.leading_zeros() as i32;
    // The exponent of the result's last bit, which is fixed for small numbers.
    let last = (highest + exponent - 23).max(-149);
    let shifted = |by: i32| match by {
        0.. => size.checked_shr(by as u32).unwrap_or(0),
        _ => size << -by,
    };
    let significand = shifted(last - exponent) as u32;
    match last {
        _ if significand == 0 => 0,
        105.. => sign | 0x7f80_0000,
        // Without a hidden bit the result is subnormal, and its field stays 0.
        _ => sign | ((((last + 149) as u32) << 23) + significand),
    }
}

/// Returns the exact sum of products of integers and a summand, brought to 32 bits.
pub(crate) fn integer_sum(products: impl Iterator<Item = i64>, c: u32, how: How) -> u32 {
    let sum = products.sum::<i64>() + i64::from(c as i32);
    match how {
        How::Saturate => sum.clamp(i32::MIN.into(), i32::MAX.into()) as u32,
        _ => sum as u32,
    }
}

/// Returns the sum of products of `f64` and a summand, one fused multiply-add after the other.
pub(crate) fn double_sum(pairs: impl Iterator<Item = [u64; 2]>, c: u64) -> u64 {
    let sum = pairs
        .fold(f64::from_bits(c), |sum, [a, b]| f64::from_bits(a).mul_add(f64::from_bits(b), sum));
    float_bits(Type::F64, sum, Round::Nearest)
}

/// Returns the value of an integer element.
pub(crate) fn integer(element: Element, bits: u64) -> i64 {
    match element {
        Element::S8 => (bits as i8).into(),
        Element::S4 => ((bits << 60) as i64) >> 60,
        Element::U8 => (bits & 0xff) as i64,
        _ => (bits & 0xf) as i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_cut_off_behind_the_largest() {
        let of = |value: f32| Number::of(Element::F32, value.to_bits().into());
        let half =
            |value: f64| Number::of(Element::F16, float_bits(Type::F16, value, Round::Nearest));
        let total = |terms: &[(f64, f64)], c: f32| {
            let (a, b): (Vec<_>, Vec<_>) = terms.iter().map(|(a, b)| (half(*a), half(*b))).unzip();
            f32::from_bits(sum(&a, &b, of(c), Element::F32))
        };
        let tiny = |power: i32| (2_f64.powi(power / 2), 2_f64.powi(power - power / 2));
        assert_eq!(total(&[(3.0, 5.0), (-2.0, 0.5)], 0.25), 14.25);
        // Two halves of the last place make one, and four quarters do. Eighths take no part.
        assert_eq!(total(&[tiny(-24), tiny(-24)], 1.0), 1.0 + 2_f32.powi(-23));
        assert_eq!(total(&[tiny(-25); 4], 1.0), 1.0 + 2_f32.powi(-23));
        assert_eq!(total(&[tiny(-26); 8], 1.0), 1.0);
        // Toward zero, on either side of it.
        assert_eq!(total(&[tiny(-24)], 1.0), 1.0);
        assert_eq!(total(&[(2_f64.powi(-12), -2_f64.powi(-12))], -1.0), -1.0);
        // For small numbers 2^-158 takes part: 512 of them make the smallest `f32`.
        let small = Number::of(Element::Bf16, (127 - 79) << 7);
        assert_eq!(sum(&[small; 512], &[small; 512], of(0.0), Element::F32), 1);
        let smaller = Number::of(Element::Bf16, (127 - 80) << 7);
        assert_eq!(sum(&[small; 1024], &[smaller; 1024], of(0.0), Element::F32), 0);
        // Terms that cancel leave nothing of what has been cut off.
        assert_eq!(total(&[(1024.0, 1024.0), (-1024.0, 1024.0), tiny(-8)], 0.0), 0.0);
        assert_eq!(total(&[(1024.0, 1024.0), (-1024.0, 1024.0), tiny(-4)], 0.0), 0.0625);
        assert!(total(&[(f64::INFINITY, 0.0)], 1.0).is_nan());
        assert_eq!(total(&[(f64::INFINITY, -2.0)], 1.0), f32::NEG_INFINITY);
        assert!(total(&[(f64::INFINITY, 1.0), (f64::INFINITY, -1.0)], 1.0).is_nan());
    }

    #[test]
    fn every_kind_of_f32_comes_back() {
        for bits in [0, 1, 0x7f_ffff, 0x80_0000, 0x80_0001, 0x3f80_0001, 0x7f7f_ffff, 0x8000_0001] {
            let c = Number::of(Element::F32, bits);
            assert_eq!(sum(&[], &[], c, Element::F32), bits as u32, "{bits:#x}");
        }
        let largest = Number::of(Element::F32, f32::MAX.to_bits().into());
        let twice = Number { significand: 2 * largest.significand, ..largest };
        assert_eq!(sum(&[], &[], twice, Element::F32), 0x7f80_0000);
    }
}
