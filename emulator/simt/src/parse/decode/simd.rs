//! The SIMD video instructions, without selectors and masks: `vadd4.s32.s32.s32.sat` and their
//! like.

use super::modifiers::compare;
use super::refusal::{Refusal, exactly};
use crate::isa::{Op, Simd, SimdFinish, SimdOp, Ternary};
use crate::parse::body::state::Body;
use crate::parse::source::statement::Operand;
use crate::parse::source::types::B32;

/// An operation of halves or bytes.
pub(super) fn is_simd(name: &str) -> bool {
    split(name).is_some()
}

/// The name without its number, and the bits that one element has.
fn split(name: &str) -> Option<(&str, u8)> {
    let (name, bits) = match name.strip_suffix('4') {
        Some(name) => (name, 8),
        None => (name.strip_suffix('2')?, 16),
    };
    let known = matches!(name, "vadd" | "vsub" | "vavrg" | "vabsdiff" | "vmin" | "vmax" | "vset");
    known.then_some((name, bits))
}

pub(super) fn decode<'s>(
    body: &mut Body<'_, 's>,
    parts: &[&str],
    operands: &[Operand<'s>],
) -> Result<Op, Refusal> {
    let simd = read(parts).ok_or(Refusal::Unknown)?;
    let [d, a, b, c] = exactly(operands)?;
    let d = body.destination(d, B32)?;
    let (a, b, c) = (body.source(a, B32)?, body.source(b, B32)?, body.source(c, B32)?);
    Ok(Op::Ternary { op: Ternary::Simd(simd), ty: B32.ty, d, a, b, c })
}

fn read(parts: &[&str]) -> Option<Simd> {
    let (name, bits) = split(parts[0])?;
    // `vset` says what it compares where the others say what they give.
    let (op, [d, a, b], rest) = match (name, &parts[1..]) {
        ("vset", [a, b, test, rest @ ..]) => {
            (SimdOp::Compare(compare(test)?), ["u32", *a, *b], rest)
        }
        (_, [d, a, b, rest @ ..]) => (operation(name)?, [*d, *a, *b], rest),
        _ => return None,
    };
    let finish = match *rest {
        [] => SimdFinish::Cut,
        ["sat"] if name != "vset" => SimdFinish::Clamp,
        ["add"] => SimdFinish::Sum,
        _ => return None,
    };
    let is_signed = |name: &str| match name {
        "u32" => Some(false),
        "s32" => Some(true),
        _ => None,
    };
    Some(Simd { op, bits, signed: [is_signed(a)?, is_signed(b)?, is_signed(d)?], finish })
}

fn operation(name: &str) -> Option<SimdOp> {
    Some(match name {
        "vadd" => SimdOp::Add,
        "vsub" => SimdOp::Sub,
        "vavrg" => SimdOp::Average,
        "vabsdiff" => SimdOp::AbsoluteDifference,
        "vmin" => SimdOp::Min,
        "vmax" => SimdOp::Max,
        _ => return None,
    })
}
