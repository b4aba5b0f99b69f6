//! The video instructions: `vadd2`, `vadd4` and the like on the halves or bytes of words, and
//! `vadd`, `vmad` and the like on a part of each word.

use super::integer::holds;
use crate::isa::{Part32, Simd, SimdFinish, SimdOp, Video, VideoEnd, VideoOp};

/// Executes a SIMD video instruction on one word each of `a`, `b` and `c`.
pub(crate) fn simd_word(simd: Simd, a: u32, b: u32, c: u32) -> u32 {
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
        // The summands are not cut off to their width.
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
        SimdOp::Compare(compare) => (holds(compare, |_| a, |_| b) & 1) as i32,
    }
}

/// Executes a scalar video instruction on one word each of `a`, `b` and `c`.
pub(crate) fn video_word(video: Video, a: u32, b: u32, c: u32) -> u32 {
    let Video { op, signed: [a_signed, b_signed], select, end } = video;
    let (a, b) = (value(a, select[0], a_signed), value(b, select[1], b_signed));
    let shift = |wrap: bool| if wrap { b & 31 } else { b.min(32) } as u32;
    let result = match op {
        VideoOp::Add => a + b,
        VideoOp::Sub => a - b,
        VideoOp::AbsoluteDifference => (a - b).abs(),
        VideoOp::Min => a.min(b),
        VideoOp::Max => a.max(b),
        VideoOp::ShiftLeft { wrap } => a << shift(wrap),
        VideoOp::ShiftRight { wrap } => a >> shift(wrap),
        VideoOp::Compare(compare) => i128::from(holds(compare, |_| a, |_| b) & 1),
        VideoOp::MultiplyAdd { more } => a * b + i128::from(c) + i128::from(more),
    };
    match end {
        VideoEnd::Plain => result as u32,
        VideoEnd::Add => (result as u32).wrapping_add(c),
        VideoEnd::Merge(part) => {
            let (first, bits) = place(part);
            let mask = (u32::MAX >> (32 - bits)) << first;
            c & !mask | (result as u32) << first & mask
        }
    }
}

/// Returns the first bit of a part, and its number of bits.
fn place(part: Part32) -> (u32, u32) {
    match part {
        Part32::Whole => (0, 32),
        Part32::Byte(number) => (8 * u32::from(number), 8),
        Part32::Half(number) => (16 * u32::from(number), 16),
    }
}

fn value(word: u32, part: Part32, signed: bool) -> i128 {
    let (first, bits) = place(part);
    let high = word << (32 - bits - first);
    if signed { (high as i32 >> (32 - bits)).into() } else { (high >> (32 - bits)).into() }
}
