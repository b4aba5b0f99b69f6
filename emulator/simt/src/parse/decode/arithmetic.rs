//! Arithmetic on floats, roots, reciprocals, the approximate functions, and `copysign`. An
//! operation without a rounding modifier is rounded to nearest and recorded.

use super::modifiers::{Coder, Decoded, Rest, round};
use super::refusal::Refusal;
use crate::isa::{Approximate, Arithmetic, Binary, Clamp, Op, Round, Type, Unary};
use crate::parse::body::slots::Constant;
use crate::parse::source::types::{B64, float, half};

/// Returns true if the instruction works on floats of any size; integers have a separate family.
pub(super) fn is_float(parts: &[&str]) -> bool {
    matches!(parts.last(), Some(&("f32" | "f64" | "f16" | "f16x2" | "bf16" | "bf16x2" | "f32x2")))
}

pub(super) fn decode(body: &mut Coder, parts: &[&str]) -> Decoded {
    let [name, modifiers @ .., ty] = parts else { return Err(Refusal::Unknown) };
    let typed = float(ty).or_else(|| half(ty)).ok_or(Refusal::Unknown)?;
    let Modifiers { ty, round, clamp, nan, quotient } =
        Modifiers::read(name, modifiers, typed.ty).ok_or(Refusal::Unknown)?;
    if let Some(op) = quotient {
        return body.binary(op, ty, typed, typed);
    }
    match *name {
        "add" | "sub" | "mul" | "div" => {
            let [d, a, b] = body.exactly()?;
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
            let (d, [a, b, c]) = body.slots(typed, [typed; 3])?;
            Ok(Op::Fma { ty, round: round.ok_or(Refusal::Unknown)?, clamp, d, a, b, c })
        }
        "abs" | "neg" => {
            let op = if *name == "abs" { Unary::Absolute } else { Unary::Negate };
            body.unary(op, ty, typed, typed)
        }
        "min" | "max" => {
            let op = match (*name, nan) {
                ("min", false) => Binary::Min,
                ("min", true) => Binary::MinNan,
                (_, false) => Binary::Max,
                (_, true) => Binary::MaxNan,
            };
            body.binary(op, ty, typed, typed)
        }
        _ => Err(Refusal::Unknown),
    }
}

/// The modifiers between an operation and its type: `.round.ftz.sat`, where the operation has them.
struct Modifiers {
    /// The type, changed by `.ftz`.
    ty: Type,
    round: Option<Round>,
    clamp: Clamp,
    nan: bool,
    /// The operation of `div.approx` or `div.full`.
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
    named!(name, Arithmetic { "add" => Add, "sub" => Sub, "mul" => Mul, "div" => Div })
}

pub(super) fn function(body: &mut Coder, parts: &[&str]) -> Decoded {
    if let ["copysign", ty] = *parts {
        return copy_sign(body, ty);
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
            return body.unary(op, ty, typed, typed);
        }
        // For doubles it is nearly exact, so two exact instructions compute it.
        ["rsqrt", "approx", "f64"] => {
            let typed = float("f64").ok_or(Refusal::Unknown)?;
            let (d, [a]) = body.slots(typed, [typed])?;
            let ty = typed.ty;
            body.followed_by.push(Op::Unary { op: Unary::Reciprocal, ty, d, a: d });
            return Ok(Op::Unary { op: Unary::Sqrt, ty, d, a });
        }
        ["ex2", "approx", ty @ ("f16" | "f16x2")]
        | ["ex2", "approx", "ftz", ty @ ("bf16" | "bf16x2")]
        | ["tanh", "approx", ty @ ("f16" | "f16x2" | "bf16" | "bf16x2")] => {
            let typed = half(ty).ok_or(Refusal::Unknown)?;
            let op = approximate(parts[0], parts[2] == "ftz")?;
            return body.unary(op, typed.ty, typed, typed);
        }
        [name, "approx", "f32"] => (approximate(name, false)?, "f32"),
        [name, "approx", "ftz", "f32"] if name != "tanh" => (approximate(name, true)?, "f32"),
        [name @ ("rcp" | "rsqrt"), "approx", "ftz", "f64"] => (approximate(name, true)?, "f64"),
        _ => return Err(Refusal::Unknown),
    };
    let typed = float(ty).ok_or(Refusal::Unknown)?;
    body.unary(op, typed.ty, typed, typed)
}

/// Decodes `copysign d, a, b`: the sign of `a` and the magnitude of `b`, by operations on bits.
fn copy_sign(body: &mut Coder, ty: &str) -> Decoded {
    let typed = float(ty).ok_or(Refusal::Unknown)?;
    let (d, [a, b]) = body.slots(typed, [typed; 2])?;
    if !typed.ty.is_wide() {
        // Takes a bit of the first operand where the third has a 1, else a bit of the second.
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
    let function = named!(name, Approximate {
        "ex2" => Ex2, "lg2" => Lg2, "rcp" => Rcp, "rsqrt" => Rsqrt, "sqrt" => Sqrt, "sin" => Sin,
        "cos" => Cos, "tanh" => Tanh,
    });
    Ok(Unary::Approximate { function: function.ok_or(Refusal::Unknown)?, ftz })
}
