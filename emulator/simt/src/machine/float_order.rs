//! Which of two floats is the larger, and what kind of number a float is.

use std::ops::{BitAnd, BitOr};

use super::float::single;
use super::half;
use super::integer::{holds, mask};
use super::registers::Registers;
use crate::program::{Binary, Compare, Slot, TestFloat, Type};

/// The bits of the smaller or the larger of two numbers, given with theirs; the one that is a
/// number, if one is not and `op` does not say otherwise.
#[inline(always)]
pub(super) fn extreme<F: PartialOrd, B: BitOr<Output = B> + BitAnd<Output = B>>(
    op: Binary,
    (a, x): (F, B),
    (b, y): (F, B),
    nan: B,
) -> B {
    let min = matches!(op, Binary::Min | Binary::MinNan);
    let passes_on = matches!(op, Binary::MinNan | Binary::MaxNan);
    let is_nan = |number: &F| number.partial_cmp(number).is_none();
    match (is_nan(&a), is_nan(&b)) {
        (true, true) => nan,
        (true, _) | (_, true) if passes_on => nan,
        (true, false) => y,
        (false, true) => x,
        // Equal numbers differ at most in the sign of a zero.
        _ if a == b && min => x | y,
        _ if a == b => x & y,
        _ if (a < b) == min => x,
        _ => y,
    }
}

/// The lanes in which numbers compare, with `or_unordered` also those where one is NaN, and the
/// others; of pairs those of the lower and of the upper halves. (`ne` does not hold for NaN in PTX,
/// unlike in Rust.)
pub(super) fn compare(
    r: &Registers,
    compare: Compare,
    or_unordered: bool,
    ty: Type,
    a: Slot,
    b: Slot,
) -> [u32; 2] {
    let test = |[holds, unordered]: [u32; 2]| {
        if or_unordered { holds | unordered } else { holds & !unordered }
    };
    if ty.is_pair() {
        return half::compare(r, compare, ty, a, b).map(test);
    }
    let lanes = test(match ty {
        Type::F64 => {
            let (a, b) = (r.longs(a), r.longs(b));
            ordered(compare, |i| f64::from_bits(a[i]), |i| f64::from_bits(b[i]))
        }
        Type::F32 | Type::F32Ftz => {
            let (a, b) = (single(r, ty, a), single(r, ty, b));
            ordered(compare, |i| f32::from_bits(a[i]), |i| f32::from_bits(b[i]))
        }
        _ => half::compare(r, compare, ty, a, b)[0],
    });
    [lanes, !lanes]
}

/// The lanes in which numbers compare, and those in which one of them is NaN.
#[inline(always)]
pub(super) fn ordered<F: PartialOrd>(
    compare: Compare,
    a: impl Fn(usize) -> F,
    b: impl Fn(usize) -> F,
) -> [u32; 2] {
    let unordered = mask(|i| a(i).partial_cmp(&b(i)).is_none());
    [holds(compare, a, b), unordered]
}

/// The lanes of which the numbers are what is asked.
pub(super) fn test(r: &Registers, test: TestFloat, ty: Type, a: Slot) -> u32 {
    use std::num::FpCategory::{Infinite, Nan, Normal, Subnormal, Zero};
    mask(|i| {
        let category = match ty {
            Type::F64 => f64::from_bits(r.longs(a)[i]).classify(),
            _ => f32::from_bits(r.words(a)[i]).classify(),
        };
        match test {
            TestFloat::Finite => !matches!(category, Infinite | Nan),
            TestFloat::Infinite => category == Infinite,
            TestFloat::Number => category != Nan,
            TestFloat::NotANumber => category == Nan,
            TestFloat::Normal => matches!(category, Normal | Zero),
            TestFloat::Subnormal => category == Subnormal,
        }
    })
}
