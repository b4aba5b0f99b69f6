//! Arithmetic on f32 and f64. What comes without a rounding is rounded to nearest and noted.

use super::super::body::Body;
use super::super::program::{Arithmetic, Binary, Op, Round, Unary};
use super::super::statement::Operand;
use super::super::types::{F32, Typed, float};
use super::modifiers::round;
use super::refusal::{Refusal, exactly};

/// Whether the instruction is on floats of any size: integers have a family of their own.
pub(super) fn is_float(parts: &[&str]) -> bool {
    matches!(parts.last(), Some(&("f32" | "f64" | "f16" | "f16x2" | "bf16" | "bf16x2" | "f32x2")))
}

pub(super) fn decode<'s>(
    body: &mut Body<'_, 's>,
    parts: &[&str],
    operands: &[Operand<'s>],
) -> Result<Op, Refusal> {
    match *parts {
        [op @ ("add" | "sub" | "mul"), ty] if let Some(typed) = float(ty) => {
            body.note_unrounded(&parts.join("."));
            binary(body, operation(op), Round::Nearest, false, typed, operands)
        }
        [op @ ("add" | "sub" | "mul"), "sat", "f32"] => {
            body.note_unrounded(&parts.join("."));
            binary(body, operation(op), Round::Nearest, true, F32, operands)
        }
        [op @ ("add" | "sub" | "mul"), rounding, ty]
            if let (Some(round), Some(typed)) = (round(rounding), float(ty)) =>
        {
            binary(body, operation(op), round, false, typed, operands)
        }
        [op @ ("add" | "sub" | "mul"), rounding, "sat", "f32"]
            if let Some(round) = round(rounding) =>
        {
            binary(body, operation(op), round, true, F32, operands)
        }
        ["div", rounding, ty] if let (Some(round), Some(typed)) = (round(rounding), float(ty)) => {
            binary(body, Arithmetic::Div, round, false, typed, operands)
        }
        // Two ulp at most from the quotient, and no formula: the exact one stands for them.
        ["div", "approx" | "full", "f32"] => {
            binary(body, Arithmetic::Div, Round::Nearest, false, F32, operands)
        }
        ["fma" | "mad", rounding, ty]
            if let (Some(round), Some(typed)) = (round(rounding), float(ty)) =>
        {
            fma(body, round, false, typed, operands)
        }
        ["fma" | "mad", rounding, "sat", "f32"] if let Some(round) = round(rounding) => {
            fma(body, round, true, F32, operands)
        }
        [op @ ("abs" | "neg"), ty] if let Some(typed) = float(ty) => {
            let [d, a] = exactly(operands)?;
            let op = if op == "abs" { Unary::Absolute } else { Unary::Negate };
            let (d, a) = (body.destination(d, typed)?, body.source(a, typed)?);
            Ok(Op::Unary { op, ty: typed.ty, d, a })
        }
        [op @ ("min" | "max"), ty] if let Some(typed) = float(ty) => {
            let [d, a, b] = exactly(operands)?;
            let op = if op == "min" { Binary::Min } else { Binary::Max };
            let d = body.destination(d, typed)?;
            let (a, b) = (body.source(a, typed)?, body.source(b, typed)?);
            Ok(Op::Binary { op, ty: typed.ty, d, a, b })
        }
        _ => Err(Refusal::Unknown),
    }
}

fn operation(name: &str) -> Arithmetic {
    match name {
        "add" => Arithmetic::Add,
        "sub" => Arithmetic::Sub,
        _ => Arithmetic::Mul,
    }
}

fn binary<'s>(
    body: &mut Body<'_, 's>,
    op: Arithmetic,
    round: Round,
    sat: bool,
    typed: Typed,
    operands: &[Operand<'s>],
) -> Result<Op, Refusal> {
    let [d, a, b] = exactly(operands)?;
    let d = body.destination(d, typed)?;
    let (a, b) = (body.source(a, typed)?, body.source(b, typed)?);
    Ok(Op::Arithmetic { op, ty: typed.ty, round, sat, d, a, b })
}

fn fma<'s>(
    body: &mut Body<'_, 's>,
    round: Round,
    sat: bool,
    typed: Typed,
    operands: &[Operand<'s>],
) -> Result<Op, Refusal> {
    let [d, a, b, c] = exactly(operands)?;
    let d = body.destination(d, typed)?;
    let (a, b, c) = (body.source(a, typed)?, body.source(b, typed)?, body.source(c, typed)?);
    Ok(Op::Fma { ty: typed.ty, round, sat, d, a, b, c })
}
