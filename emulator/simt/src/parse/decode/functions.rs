//! Roots, reciprocals, the approximate functions of f32 and of halves, and `copysign`.

use super::modifiers::Rest;
use super::refusal::{Refusal, exactly};
use crate::isa::{Approximate, Binary, Op, Unary};
use crate::parse::body::slots::Constant;
use crate::parse::body::state::Body;
use crate::parse::source::statement::Operand;
use crate::parse::source::types::{B64, float, half};

pub(super) fn decode<'s>(
    body: &mut Body<'_, 's>,
    parts: &[&str],
    operands: &[Operand<'s>],
) -> Result<Op, Refusal> {
    if let ["copysign", ty] = *parts {
        return copy_sign(body, ty, operands);
    }
    let (op, ty) = match *parts {
        [name @ ("sqrt" | "rcp"), "rn", ref rest @ .., ty] => {
            let typed = float(ty).ok_or(Refusal::Unknown)?;
            let mut rest = Rest(rest);
            let ty = rest.flushed(typed.ty);
            if !rest.0.is_empty() {
                return Err(Refusal::Unknown);
            }
            let op = if name == "sqrt" { Unary::Sqrt } else { Unary::Reciprocal };
            let [d, a] = exactly(operands)?;
            let (d, a) = (body.destination(d, typed)?, body.source(a, typed)?);
            return Ok(Op::Unary { op, ty, d, a });
        }
        // Of doubles it is nearly exact, so it is what two exact instructions make of it.
        ["rsqrt", "approx", "f64"] => {
            let typed = float("f64").ok_or(Refusal::Unknown)?;
            let [d, a] = exactly(operands)?;
            let (d, a) = (body.destination(d, typed)?, body.source(a, typed)?);
            let ty = typed.ty;
            body.followed_by.push(Op::Unary { op: Unary::Reciprocal, ty, d, a: d });
            return Ok(Op::Unary { op: Unary::Sqrt, ty, d, a });
        }
        ["ex2", "approx", ty @ ("f16" | "f16x2")]
        | ["ex2", "approx", "ftz", ty @ ("bf16" | "bf16x2")]
        | ["tanh", "approx", ty @ ("f16" | "f16x2" | "bf16" | "bf16x2")] => {
            let typed = half(ty).ok_or(Refusal::Unknown)?;
            let op = approximate(parts[0], parts[2] == "ftz")?;
            let [d, a] = exactly(operands)?;
            let (d, a) = (body.destination(d, typed)?, body.source(a, typed)?);
            return Ok(Op::Unary { op, ty: typed.ty, d, a });
        }
        [name, "approx", "f32"] => (approximate(name, false)?, "f32"),
        [name, "approx", "ftz", "f32"] if name != "tanh" => (approximate(name, true)?, "f32"),
        [name @ ("rcp" | "rsqrt"), "approx", "ftz", "f64"] => (approximate(name, true)?, "f64"),
        _ => return Err(Refusal::Unknown),
    };
    let typed = float(ty).ok_or(Refusal::Unknown)?;
    let [d, a] = exactly(operands)?;
    Ok(Op::Unary { op, ty: typed.ty, d: body.destination(d, typed)?, a: body.source(a, typed)? })
}

/// `copysign d, a, b`: the sign of `a` and the magnitude of `b`, of bit operations.
fn copy_sign<'s>(
    body: &mut Body<'_, 's>,
    ty: &str,
    operands: &[Operand<'s>],
) -> Result<Op, Refusal> {
    let typed = float(ty).ok_or(Refusal::Unknown)?;
    let [d, a, b] = exactly(operands)?;
    let d = body.destination(d, typed)?;
    let (a, b) = (body.source(a, typed)?, body.source(b, typed)?);
    if !typed.ty.is_wide() {
        // Where the bit of the third operand is 1 that of the first, else that of the second.
        let sign = body.slots.constant(Constant::Word(1 << 31))?;
        return Ok(Op::Lop3 { table: 0xe4, d, a, b, c: sign });
    }
    let sign = body.slots.constant(Constant::Long(1 << 63))?;
    let magnitude = body.slots.constant(Constant::Long(!(1 << 63)))?;
    let bits = body.sink(true)?;
    let ty = B64.ty;
    body.followed_by.push(Op::Binary { op: Binary::And, ty, d, a: b, b: magnitude });
    body.followed_by.push(Op::Binary { op: Binary::Or, ty, d, a: d, b: bits });
    Ok(Op::Binary { op: Binary::And, ty, d: bits, a, b: sign })
}

fn approximate(name: &str, ftz: bool) -> Result<Unary, Refusal> {
    let function = match name {
        "ex2" => Approximate::Ex2,
        "lg2" => Approximate::Lg2,
        "rcp" => Approximate::Rcp,
        "rsqrt" => Approximate::Rsqrt,
        "sqrt" => Approximate::Sqrt,
        "sin" => Approximate::Sin,
        "cos" => Approximate::Cos,
        "tanh" => Approximate::Tanh,
        _ => return Err(Refusal::Unknown),
    };
    Ok(Unary::Approximate { function, ftz })
}
