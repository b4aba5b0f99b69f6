//! Arithmetic on floats. What comes without a rounding is rounded to nearest and noted.

use super::modifiers::{Rest, round};
use super::refusal::{Refusal, exactly};
use crate::isa::{Arithmetic, Binary, Clamp, Op, Round, Type, Unary};
use crate::parse::body::state::Body;
use crate::parse::source::statement::Operand;
use crate::parse::source::types::{float, half};

/// Whether the instruction is on floats of any size: integers have a family of their own.
pub(super) fn is_float(parts: &[&str]) -> bool {
    matches!(parts.last(), Some(&("f32" | "f64" | "f16" | "f16x2" | "bf16" | "bf16x2" | "f32x2")))
}

pub(super) fn decode<'s>(
    body: &mut Body<'_, 's>,
    parts: &[&str],
    operands: &[Operand<'s>],
) -> Result<Op, Refusal> {
    let [name, modifiers @ .., ty] = parts else { return Err(Refusal::Unknown) };
    let typed = float(ty).or_else(|| half(ty)).ok_or(Refusal::Unknown)?;
    let Modifiers { ty, round, clamp, nan, quotient } =
        Modifiers::read(name, modifiers, typed.ty).ok_or(Refusal::Unknown)?;
    if let Some(op) = quotient {
        let [d, a, b] = exactly(operands)?;
        let d = body.destination(d, typed)?;
        let (a, b) = (body.source(a, typed)?, body.source(b, typed)?);
        return Ok(Op::Binary { op, ty, d, a, b });
    }
    match *name {
        "add" | "sub" | "mul" | "div" => {
            let [d, a, b] = exactly(operands)?;
            if round.is_none() && *name != "div" {
                body.note_unrounded(&parts.join("."));
            }
            let op = operation(name).ok_or(Refusal::Unknown)?;
            let d = body.destination(d, typed)?;
            let (a, b) = (body.source(a, typed)?, body.source(b, typed)?);
            let round = round.unwrap_or(Round::Nearest);
            Ok(Op::Arithmetic { op, ty, round, clamp, d, a, b })
        }
        "fma" | "mad" => {
            let [d, a, b, c] = exactly(operands)?;
            let d = body.destination(d, typed)?;
            let (a, b) = (body.source(a, typed)?, body.source(b, typed)?);
            let c = body.source(c, typed)?;
            Ok(Op::Fma { ty, round: round.ok_or(Refusal::Unknown)?, clamp, d, a, b, c })
        }
        "abs" | "neg" => {
            let [d, a] = exactly(operands)?;
            let op = if *name == "abs" { Unary::Absolute } else { Unary::Negate };
            let (d, a) = (body.destination(d, typed)?, body.source(a, typed)?);
            Ok(Op::Unary { op, ty, d, a })
        }
        "min" | "max" => {
            let [d, a, b] = exactly(operands)?;
            let op = match (*name, nan) {
                ("min", false) => Binary::Min,
                ("min", true) => Binary::MinNan,
                (_, false) => Binary::Max,
                (_, true) => Binary::MaxNan,
            };
            let d = body.destination(d, typed)?;
            let (a, b) = (body.source(a, typed)?, body.source(b, typed)?);
            Ok(Op::Binary { op, ty, d, a, b })
        }
        _ => Err(Refusal::Unknown),
    }
}

/// What stands between an operation and its type: `.round.ftz.sat`, as far as the operation has
/// them.
struct Modifiers {
    /// The type, with what `.ftz` makes of it.
    ty: Type,
    round: Option<Round>,
    clamp: Clamp,
    nan: bool,
    /// Of `div.approx` and `div.full`.
    quotient: Option<Binary>,
}

impl Modifiers {
    fn read(name: &str, parts: &[&str], ty: Type) -> Option<Modifiers> {
        let is_half = ty.is_half() || ty.is_pair();
        let mut rest = Rest(parts);
        let (rounds, must_round) = match name {
            "add" | "sub" | "mul" => (true, false),
            "fma" => (true, true),
            "mad" | "div" if !is_half => (true, true),
            "abs" | "neg" | "min" | "max" => (false, false),
            _ => return None,
        };
        let quotient = match rest.0.first() {
            Some(&"approx") if name == "div" && ty == Type::F32 => Some(Binary::Quotient),
            Some(&"full") if name == "div" && ty == Type::F32 => Some(Binary::QuotientFull),
            _ => None,
        };
        let approximate = quotient.is_some() && rest.accept(&["approx", "full"]);
        let round = if rounds && !approximate { rest.take(round) } else { None };
        if must_round && round.is_none() && !approximate
            || is_half && round.is_some_and(|round| round != Round::Nearest)
        {
            return None;
        }
        let flushed = rest.flushed(ty);
        let nan = matches!(name, "min" | "max") && ty != Type::F64 && rest.accept(&["NaN"]);
        let saturates =
            rounds && name != "div" && matches!(ty, Type::F32 | Type::F16 | Type::F16x2);
        let clamp = match () {
            () if saturates && rest.accept(&["sat"]) => Clamp::Saturate,
            () if name == "fma" && is_half && rest.accept(&["relu"]) => Clamp::Relu,
            () => Clamp::Not,
        };
        rest.0.is_empty().then_some(Modifiers { ty: flushed, round, clamp, nan, quotient })
    }
}

fn operation(name: &str) -> Option<Arithmetic> {
    Some(match name {
        "add" => Arithmetic::Add,
        "sub" => Arithmetic::Sub,
        "mul" => Arithmetic::Mul,
        "div" => Arithmetic::Div,
        _ => return None,
    })
}
