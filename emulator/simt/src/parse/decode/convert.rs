//! `cvt`.
//!
//! A register may be wider than the type on its side of the conversion. A wider source provides its
//! low bits, and a wider destination gets the result extended as its type requires. [`Op::Convert`]
//! does neither, so such a conversion becomes two or three operations.

use super::modifiers::{Coder, Decoded, Rest, round, round_to_integer};
use super::refusal::Refusal;
use crate::isa::{Clamp, Op, Round, Tf32Round, Type, Unary};
use crate::parse::body::special::special;
use crate::parse::source::statement::{Atom, Operand};
use crate::parse::source::types::{B32, BF16X2, F16X2, F32, Kind, Typed, any};

pub(super) fn decode(body: &mut Coder, parts: &[&str]) -> Decoded {
    if let ["cvt", ref modifiers @ .., pair @ ("f16x2" | "bf16x2"), "f32"] = *parts {
        let mut rest = Rest(modifiers);
        let round = rest.take(nearest_or_zero).ok_or(Refusal::Unknown)?;
        let clamp = if rest.accept(&["relu"]) { Clamp::Relu } else { Clamp::Not };
        if !rest.0.is_empty() {
            return Err(Refusal::Unknown);
        }
        let [d, a, b] = body.exactly()?;
        let (to, typed) = if pair == "f16x2" { (Type::F16, F16X2) } else { (Type::Bf16, BF16X2) };
        let d = body.destination(d, typed)?;
        let (a, b) = (body.source(a, F32)?, body.source(b, F32)?);
        return Ok(Op::ConvertPair { to, round, clamp, d, a, b });
    }
    if let ["cvt", round, ref relu @ .., "tf32", "f32"] = *parts {
        let (round, relu) = match (round, relu) {
            ("rna", []) => (Tf32Round::Away, false),
            ("rn", [] | ["relu"]) => (Tf32Round::Even, !relu.is_empty()),
            ("rz", [] | ["relu"]) => (Tf32Round::Zero, !relu.is_empty()),
            _ => return Err(Refusal::Unknown),
        };
        let (d, [a]) = body.slots(B32, [F32])?;
        return Ok(Op::Unary { op: Unary::Tf32 { round, relu }, ty: Type::F32, d, a });
    }
    let mut rest = Rest(&parts[1..]);
    let integral = rest.take(round_to_integer);
    let round = rest.take(round);
    let ftz = rest.accept(&["ftz"]);
    let sat = rest.accept(&["sat"]);
    let relu = !ftz && !sat && rest.accept(&["relu"]);
    let &[to, from] = rest.0 else { return Err(Refusal::Unknown) };
    let (Some(to), Some(from)) = (any(to), any(from)) else { return Err(Refusal::Unknown) };
    let round = rounding(to, from, round, integral).ok_or(Refusal::Unknown)?;
    // PTX has no conversion between `bf16` and bytes; programs go through 16 bits or `f32`.
    let is_brain_and_byte = |a: Typed, b: Typed| a.ty == Type::Bf16 && b.bytes() == 1;
    if is_brain_and_byte(to, from) || is_brain_and_byte(from, to) {
        return Err(Refusal::Unknown);
    }
    if sat && (to.ty == Type::Bf16 || from.ty == Type::Bf16 || holds_all(to, from)) {
        return Err(Refusal::Unknown);
    }
    let has_relu = from.ty == Type::F32 && to.ty.is_half();
    if relu && !(has_relu && matches!(round, Round::Nearest | Round::Zero)) {
        return Err(Refusal::Unknown);
    }
    if ftz && to.ty != Type::F32 && from.ty != Type::F32 {
        return Err(Refusal::Unknown);
    }
    let flushed = |ty| if ftz && ty == Type::F32 { Type::F32Ftz } else { ty };
    let integral = integral.is_some() && to.kind == Kind::Float;
    let [d, a] = body.exactly()?;
    let (a, a_bytes) = match *a {
        Operand::Atom(Atom::Name(name)) if special(name).is_some() && to.kind == Kind::Integer => {
            (body.source_or_place(a, from)?, from.bytes())
        }
        _ => body.source_or_wider(a, from)?,
    };
    let (d, d_bytes) = body.destination_or_wider(d, to)?;
    if d_bytes == 8 && to.bytes() < 8 {
        return Err(format!("a `.{}` in a 64-bit register", to.name).into());
    }

    let narrows = a_bytes == 8 && from.bytes() < 8;
    let a_low = if narrows { body.scratch()? } else { a };
    // PTX flushes values that become a half, too. GPUs do not: rounded up, a subnormal number
    // becomes the smallest half.
    let from_ty = if to.ty == Type::F16 { from.ty } else { flushed(from.ty) };
    let to_ty = flushed(to.ty);
    let clamp = match (sat, relu) {
        (true, _) => Clamp::Saturate,
        (_, true) => Clamp::Relu,
        _ => Clamp::Not,
    };
    let convert = Op::Convert { to: to_ty, from: from_ty, round, integral, clamp, d, a: a_low };
    if narrows {
        body.followed_by.push(convert);
    }
    if to.ty.is_signed() && to.bytes() < 4 && d_bytes == 4 {
        let (from, round, integral, clamp) = (to.ty, Round::Nearest, false, Clamp::Not);
        let extend = Op::Convert { to: Type::S32, from, round, integral, clamp, d, a: d };
        body.followed_by.push(extend);
    }
    Ok(if narrows { Op::Unpack32 { d: [Some(a_low), None], a } } else { convert })
}

/// Returns true if an integer type has every value of another type. Then PTX has no `.sat`.
fn holds_all(to: Typed, from: Typed) -> bool {
    let unsigned = !from.ty.is_signed();
    let are_integers = to.kind == Kind::Integer && from.kind == Kind::Integer;
    are_integers
        && match unsigned != to.ty.is_signed() {
            true => from.bytes() <= to.bytes(),
            false => unsigned && from.bytes() < to.bytes(),
        }
}

/// Returns the rounding of the conversion, or `None` if its modifiers are not the required ones.
fn rounding(to: Typed, from: Typed, round: Option<Round>, whole: Option<Round>) -> Option<Round> {
    use Type::{Bf16, F16, F32, F64};
    match (from.kind, to.kind, round, whole) {
        (Kind::Integer, Kind::Integer, None, None) => Some(Round::Nearest),
        (Kind::Float, Kind::Integer, None, Some(round)) => Some(round),
        (Kind::Integer, Kind::Float, Some(round), None) => Some(round),
        (Kind::Float, Kind::Float, None, _) if from.ty == to.ty => whole.or(Some(Round::Nearest)),
        (Kind::Float, Kind::Float, _, None) if from.ty != to.ty => match (from.ty, to.ty) {
            // The target type has every value of the source type.
            (F16 | Bf16, F32 | F64) | (F32, F64) => round.is_none().then_some(Round::Nearest),
            _ => round,
        },
        _ => None,
    }
}

fn nearest_or_zero(name: &str) -> Option<Round> {
    round(name).filter(|round| matches!(round, Round::Nearest | Round::Zero))
}
