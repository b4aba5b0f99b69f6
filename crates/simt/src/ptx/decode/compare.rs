//! `setp` and `selp`.

use super::super::body::Body;
use super::super::program::{Compare, Guard, Op, Slot};
use super::super::statement::{Atom, Operand};
use super::super::types::{Kind, Typed, word};
use super::bits::logic;
use super::modifiers::compare;
use super::refusal::{Refusal, exactly};

pub(super) fn decode<'s>(
    body: &mut Body<'_, 's>,
    parts: &[&str],
    operands: &[Operand<'s>],
) -> Result<Op, Refusal> {
    match *parts {
        ["selp", ty] if let Some(typed) = word(ty) => {
            let [d, a, b, predicate] = exactly(operands)?;
            let d = body.destination(d, typed)?;
            let (a, b) = (body.source(a, typed)?, body.source(b, typed)?);
            let Guard { predicate, negated } = body.guard(predicate)?;
            let (a, b) = if negated { (b, a) } else { (a, b) };
            Ok(Op::Select { ty: typed.ty, d, a, b, predicate })
        }
        ["setp", test @ ("num" | "nan"), ty @ ("f32" | "f64")] if let Some(typed) = word(ty) => {
            let [d, a, b] = exactly(operands)?;
            let (d, complement) = destinations(body, d)?;
            if complement.is_some() {
                return Err("a second destination is not supported here".to_string().into());
            }
            let (a, b) = (body.source(a, typed)?, body.source(b, typed)?);
            Ok(Op::SetNan { nan: test == "nan", ty: typed.ty, d, a, b })
        }
        ["setp", test, ty]
            if let Some(typed) = word(ty)
                && let Some((compare, or_unordered)) = comparison(test, typed) =>
        {
            let [d, a, b] = exactly(operands)?;
            let (d, complement) = destinations(body, d)?;
            let (a, b) = (body.source(a, typed)?, body.source(b, typed)?);
            let combine = None;
            Ok(Op::SetPredicate {
                compare,
                or_unordered,
                ty: typed.ty,
                d,
                complement,
                combine,
                a,
                b,
            })
        }
        ["setp", test, combination, ty]
            if let (Some(logic), Some(typed)) = (logic(combination), word(ty))
                && let Some((compare, or_unordered)) = comparison(test, typed) =>
        {
            let [d, a, b, c] = exactly(operands)?;
            let (d, complement) = destinations(body, d)?;
            let (a, b) = (body.source(a, typed)?, body.source(b, typed)?);
            let combine = Some((logic, body.guard(c)?));
            Ok(Op::SetPredicate {
                compare,
                or_unordered,
                ty: typed.ty,
                d,
                complement,
                combine,
                a,
                b,
            })
        }
        _ => Err(Refusal::Unknown),
    }
}

/// The comparison, and whether it also holds where an operand is NaN. Which there are depends on
/// the type: bits are equal or not, only unsigned integers are `lo`wer or `hi`gher.
fn comparison(name: &str, typed: Typed) -> Option<(Compare, bool)> {
    match (typed.kind, name) {
        (Kind::Bits, "eq" | "ne") | (Kind::Integer | Kind::Float, _)
            if let Some(compare) = compare(name) =>
        {
            Some((compare, false))
        }
        (Kind::Integer, _) if !typed.ty.is_signed() => match name {
            "lo" => Some((Compare::Lt, false)),
            "ls" => Some((Compare::Le, false)),
            "hi" => Some((Compare::Gt, false)),
            "hs" => Some((Compare::Ge, false)),
            _ => None,
        },
        (Kind::Float, _) => Some((compare(name.strip_suffix('u')?)?, true)),
        _ => None,
    }
}

/// `%p1` or `%p1|%p2`, of which the second may be `_`.
fn destinations<'s>(
    body: &mut Body<'_, 's>,
    operand: &Operand<'s>,
) -> Result<(Slot, Option<Slot>), String> {
    match *operand {
        Operand::Atom(Atom::Name(name)) => Ok((body.destination_predicate(name)?, None)),
        Operand::Pair(first, "_") => Ok((body.destination_predicate(first)?, None)),
        Operand::Pair(first, second) => {
            let first = body.destination_predicate(first)?;
            Ok((first, Some(body.destination_predicate(second)?)))
        }
        _ => Err("the destination must be a `.pred` register, or two".to_string()),
    }
}
