//! Which of two floats is the larger, and what kind of number a float is.

use super::integer::mask;
use super::rounding::{ordered, single};
use crate::isa::{Compare, Slot, TestFloat, Type};
use crate::machine::arithmetic::half;
use crate::machine::state::Registers;

/// The lanes in which numbers compare, with `or_unordered` also those where one is NaN, and the
/// others; of pairs those of the lower and of the upper halves. (`ne` does not hold for NaN in PTX,
/// unlike in Rust.)
pub(crate) fn compare(
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

/// The lanes of which the numbers are what is asked.
pub(crate) fn test(r: &Registers, test: TestFloat, ty: Type, a: Slot) -> u32 {
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
