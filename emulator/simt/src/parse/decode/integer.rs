//! Integer arithmetic, and arithmetic on integers of several words, where an instruction passes a
//! carry to the next.

use super::modifiers::{Coder, Decoded, is_signed};
use super::refusal::Refusal;
use crate::isa::{Binary, Carry, Factors, Op, Ternary, Type, Unary};
use crate::parse::body::slots::Constant;
use crate::parse::source::types::{S32, Typed, U32, any, integer, integer32, signed};

pub(super) fn decode(body: &mut Coder, parts: &[&str]) -> Decoded {
    match *parts {
        ["mul", "wide", ty] if let Some((typed, product)) = widened(ty) => {
            let (d, [a, b]) = body.slots(product, [typed; 2])?;
            Ok(Op::MulWide { ty: typed.ty, d, a, b })
        }
        ["mad", "wide", ty] if let Some((typed, product)) = widened(ty) => {
            let (d, [a, b, c]) = body.slots(product, [typed, typed, product])?;
            Ok(Op::MadWide { ty: typed.ty, d, a, b, c })
        }
        ["mad", half @ ("lo" | "hi"), ty] if let Some(typed) = integer(ty) => {
            body.ternary(if half == "lo" { Ternary::MadLow } else { Ternary::MadHigh }, typed)
        }
        ["sad", ty] if let Some(typed) = integer(ty) => {
            body.ternary(Ternary::AbsoluteDifference, typed)
        }
        ["mul24", half @ ("lo" | "hi"), ty @ ("u32" | "s32")] if let Some(typed) = integer(ty) => {
            let op = Ternary::Mad24 { high: half == "hi", sat: false };
            let (d, [a, b]) = body.slots(typed, [typed; 2])?;
            let c = body.slots.constant(Constant::Word(0))?;
            Ok(Op::Ternary { op, ty: typed.ty, d, a, b, c })
        }
        ["mad24", half @ ("lo" | "hi"), ty @ ("u32" | "s32")] if let Some(typed) = integer(ty) => {
            body.ternary(Ternary::Mad24 { high: half == "hi", sat: false }, typed)
        }
        ["mad24", "hi", "sat", "s32"] => {
            body.ternary(Ternary::Mad24 { high: true, sat: true }, S32)
        }
        [ref name @ .., a, b]
            if let (Some(with), Some(a_signed), Some(b_signed)) =
                (factors(name), is_signed(a), is_signed(b)) =>
        {
            body.ternary(Ternary::DotProduct { with, a_signed, b_signed }, U32)
        }
        [op @ ("abs" | "neg"), ty] if let Some(typed) = signed(ty) => {
            let op = if op == "abs" { Unary::Absolute } else { Unary::Negate };
            body.unary(op, typed.ty, typed, typed)
        }
        [.., ty] if let (Some(op), Some(typed)) = (binary(parts), integer(ty)) => {
            body.binary(op, typed.ty, typed, typed)
        }
        _ => Err(Refusal::Unknown),
    }
}

/// Returns an operation on two operands of one type, which is the last part.
fn binary(parts: &[&str]) -> Option<Binary> {
    named!(*parts, Binary {
        ["add", _] => Add, ["sub", _] => Sub, ["mul", "lo", _] => MulLow,
        ["mul", "hi", _] => MulHigh, ["div", _] => Div, ["rem", _] => Rem, ["min", _] => Min,
        ["max", _] => Max,
    })
}

/// Returns the factors of a product of bytes.
fn factors(name: &[&str]) -> Option<Factors> {
    named!(*name, Factors {
        ["dp4a"] => Bytes, ["dp2a", "lo"] => LowHalves, ["dp2a", "hi"] => HighHalves,
    })
}

/// Returns a type with a product of twice its width, and the type of the product.
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

pub(super) fn carry(body: &mut Coder, parts: &[&str]) -> Decoded {
    let (name, half, gives, ty) = match *parts {
        [name @ ("addc" | "subc"), ty] => (name, None, false, ty),
        [name @ ("add" | "sub" | "addc" | "subc"), "cc", ty] => (name, None, true, ty),
        ["madc", half, ty] => ("madc", Some(half), false, ty),
        [name @ ("mad" | "madc"), half, "cc", ty] => (name, Some(half), true, ty),
        _ => return Err(Refusal::Unknown),
    };
    let op = match (name, half) {
        ("add" | "addc", None) => Carry::Add,
        ("sub" | "subc", None) => Carry::Sub,
        (_, Some("lo")) => Carry::MadLow,
        (_, Some("hi")) => Carry::MadHigh,
        _ => return Err(Refusal::Unknown),
    };
    let typed = integer32(ty).ok_or(Refusal::Unknown)?;
    let (d, a, b, c) = match half {
        None => {
            let [d, a, b] = body.exactly()?;
            (d, a, b, b)
        }
        Some(_) => {
            let [d, a, b, c] = body.exactly()?;
            (d, a, b, c)
        }
    };
    let d = body.destination(d, typed)?;
    let (a, b, c) = (body.source(a, typed)?, body.source(b, typed)?, body.source(c, typed)?);
    let flag = body.carry()?;
    let takes = name.ends_with('c').then_some(flag);
    Ok(Op::Carry { op, ty: typed.ty, takes, gives: gives.then_some(flag), d, a, b, c })
}
