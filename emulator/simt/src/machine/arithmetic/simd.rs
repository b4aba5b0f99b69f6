//! The halves or bytes of words, side by side: PTX's SIMD video instructions (9.7.18 of the PTX
//! ISA).

use crate::isa::{Compare, Simd, SimdFinish, SimdOp};

/// What becomes of one word each of `a`, `b` and `c`.
pub(crate) fn word(simd: Simd, a: u32, b: u32, c: u32) -> u32 {
    let Simd { op, bits, signed: [a_signed, b_signed, signed], finish } = simd;
    let bits = u32::from(bits);
    let part = |word: u32, i: u32, signed: bool| {
        let high = word << (32 - bits - bits * i);
        if signed { high as i32 >> (32 - bits) } else { (high >> (32 - bits)) as i32 }
    };
    let results = (0..32 / bits).map(|i| (i, one(op, part(a, i, a_signed), part(b, i, b_signed))));
    let (low, high) =
        if signed { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) };
    let place =
        |all: u32, i: u32, value: i32| all | (value as u32 & ((1 << bits) - 1)) << (bits * i);
    match finish {
        SimdFinish::Cut => results.fold(0, |all, (i, value)| place(all, i, value)),
        SimdFinish::Clamp => {
            results.fold(0, |all, (i, value)| place(all, i, value.clamp(low, high)))
        }
        // What is summed up has not been cut off.
        SimdFinish::Sum => results.fold(c, |sum, (_, value)| sum.wrapping_add(value as u32)),
    }
}

fn one(op: SimdOp, a: i32, b: i32) -> i32 {
    match op {
        SimdOp::Add => a + b,
        SimdOp::Sub => a - b,
        SimdOp::Average => (a + b + i32::from(a + b >= 0)) >> 1,
        SimdOp::AbsoluteDifference => (a - b).abs(),
        SimdOp::Min => a.min(b),
        SimdOp::Max => a.max(b),
        SimdOp::Compare(compare) => i32::from(match compare {
            Compare::Eq => a == b,
            Compare::Ne => a != b,
            Compare::Lt => a < b,
            Compare::Le => a <= b,
            Compare::Gt => a > b,
            Compare::Ge => a >= b,
            Compare::Always => true,
            Compare::Never => false,
        }),
    }
}
