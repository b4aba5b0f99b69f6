//! Integer arithmetic.

use super::super::body::Body;
use super::super::program::{Binary, Op, Ternary, Type, Unary};
use super::super::statement::Operand;
use super::super::types::{Typed, any, integer, signed};
use super::refusal::{Refusal, exactly};

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
        ["sad", ty @ ("u32" | "s32")] if let Some(typed) = integer(ty) => {
            ternary(body, Ternary::AbsoluteDifference, typed, operands)
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
