//! Integer arithmetic.

use super::refusal::{Refusal, exactly};
use crate::isa::{Binary, Factors, Op, Ternary, Type, Unary};
use crate::parse::body::slots::Constant;
use crate::parse::body::state::Body;
use crate::parse::source::statement::Operand;
use crate::parse::source::types::{Typed, U32, any, integer, signed};

pub(super) fn decode<'s>(
    body: &mut Body<'_, 's>,
    parts: &[&str],
    operands: &[Operand<'s>],
) -> Result<Op, Refusal> {
    match *parts {
        ["mul", "wide", ty] if let Some((typed, product)) = widened(ty) => {
            let [d, a, b] = exactly(operands)?;
            let d = body.destination(d, product)?;
            let (a, b) = (body.source(a, typed)?, body.source(b, typed)?);
            Ok(Op::MulWide { ty: typed.ty, d, a, b })
        }
        ["mad", "wide", ty] if let Some((typed, product)) = widened(ty) => {
            let [d, a, b, c] = exactly(operands)?;
            let d = body.destination(d, product)?;
            let (a, b) = (body.source(a, typed)?, body.source(b, typed)?);
            Ok(Op::MadWide { ty: typed.ty, d, a, b, c: body.source(c, product)? })
        }
        ["mad", half @ ("lo" | "hi"), ty] if let Some(typed) = integer(ty) => {
            let op = if half == "lo" { Ternary::MadLow } else { Ternary::MadHigh };
            ternary(body, op, typed, operands)
        }
        ["sad", ty] if let Some(typed) = integer(ty) => {
            ternary(body, Ternary::AbsoluteDifference, typed, operands)
        }
        ["mul24", half @ ("lo" | "hi"), ty @ ("u32" | "s32")] if let Some(typed) = integer(ty) => {
            let [d, a, b] = exactly(operands)?;
            let op = Ternary::Mad24 { high: half == "hi", sat: false };
            let d = body.destination(d, typed)?;
            let (a, b) = (body.source(a, typed)?, body.source(b, typed)?);
            let c = body.slots.constant(Constant::Word(0))?;
            Ok(Op::Ternary { op, ty: typed.ty, d, a, b, c })
        }
        ["mad24", half @ ("lo" | "hi"), ty @ ("u32" | "s32")] if let Some(typed) = integer(ty) => {
            let op = Ternary::Mad24 { high: half == "hi", sat: false };
            ternary(body, op, typed, operands)
        }
        ["mad24", "hi", "sat", ty @ "s32"] if let Some(typed) = integer(ty) => {
            ternary(body, Ternary::Mad24 { high: true, sat: true }, typed, operands)
        }
        ["dp4a", a @ ("u32" | "s32"), b @ ("u32" | "s32")] => {
            dot_product(body, Factors::Bytes, a, b, operands)
        }
        ["dp2a", half @ ("lo" | "hi"), a @ ("u32" | "s32"), b @ ("u32" | "s32")] => {
            let with = if half == "lo" { Factors::LowHalves } else { Factors::HighHalves };
            dot_product(body, with, a, b, operands)
        }
        [op @ ("abs" | "neg"), ty] if let Some(typed) = signed(ty) => {
            let [d, a] = exactly(operands)?;
            let op = if op == "abs" { Unary::Absolute } else { Unary::Negate };
            let (d, a) = (body.destination(d, typed)?, body.source(a, typed)?);
            Ok(Op::Unary { op, ty: typed.ty, d, a })
        }
        [.., ty] if let (Some(op), Some(typed)) = (binary(parts), integer(ty)) => {
            let [d, a, b] = exactly(operands)?;
            let d = body.destination(d, typed)?;
            let (a, b) = (body.source(a, typed)?, body.source(b, typed)?);
            Ok(Op::Binary { op, ty: typed.ty, d, a, b })
        }
        _ => Err(Refusal::Unknown),
    }
}

/// Operations of two operands and one type, which is the last part.
fn binary(parts: &[&str]) -> Option<Binary> {
    Some(match *parts {
        ["add", _] => Binary::Add,
        ["sub", _] => Binary::Sub,
        ["mul", "lo", _] => Binary::MulLow,
        ["mul", "hi", _] => Binary::MulHigh,
        ["div", _] => Binary::Div,
        ["rem", _] => Binary::Rem,
        ["min", _] => Binary::Min,
        ["max", _] => Binary::Max,
        _ => return None,
    })
}

fn ternary<'s>(
    body: &mut Body<'_, 's>,
    op: Ternary,
    typed: Typed,
    operands: &[Operand<'s>],
) -> Result<Op, Refusal> {
    let [d, a, b, c] = exactly(operands)?;
    let d = body.destination(d, typed)?;
    let (a, b, c) = (body.source(a, typed)?, body.source(b, typed)?, body.source(c, typed)?);
    Ok(Op::Ternary { op, ty: typed.ty, d, a, b, c })
}

fn dot_product<'s>(
    body: &mut Body<'_, 's>,
    with: Factors,
    a: &str,
    b: &str,
    operands: &[Operand<'s>],
) -> Result<Op, Refusal> {
    let op = Ternary::DotProduct { with, a_signed: a == "s32", b_signed: b == "s32" };
    ternary(body, op, U32, operands)
}

/// A type that can be multiplied to twice its width, and the type of the product.
fn widened(name: &str) -> Option<(Typed, Typed)> {
    let typed = integer(name)?;
    let product = match typed.ty {
        Type::U16 => "u32",
        Type::S16 => "s32",
        Type::U32 => "u64",
        Type::S32 => "s64",
        _ => return None,
    };
    Some((typed, any(product)?))
}
