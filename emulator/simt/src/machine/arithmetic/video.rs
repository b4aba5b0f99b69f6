//! The scalar video instructions: a byte, a half or a whole word of each operand (9.7.17 of the PTX
//! ISA).

use super::integer::holds;
use crate::isa::{Part32, Video, VideoEnd, VideoOp};

/// What becomes of one word each of `a`, `b` and `c`.
pub(crate) fn word(video: Video, a: u32, b: u32, c: u32) -> u32 {
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

/// Where a part begins, and how many bits it has.
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
