//! Instructions that the lanes of a warp execute together: shuffles, votes, reductions and matches.

use super::bits::predicate_destination;
use super::modifiers::{Coder, Decoded};
use super::refusal::Refusal;
use crate::isa::{Binary, Op, Shuffle, Slot, Vote};
use crate::parse::body::state::Body;
use crate::parse::source::cursor::Parsed;
use crate::parse::source::statement::{Atom, Operand};
use crate::parse::source::types::{B32, U32, any, bits32};

pub(super) fn decode(body: &mut Coder, parts: &[&str]) -> Decoded {
    match *parts {
        ["shfl", "sync", mode, "b32"] if let Some(op) = shuffle(mode) => {
            let [d, a, b, c, mask] = body.exactly()?;
            let (d, valid) = pair(body, d)?;
            let (a, b, c) = (body.source(a, B32)?, body.source(b, U32)?, body.source(c, U32)?);
            Ok(Op::Shuffle { op, d, valid, a, b, c, mask: body.source(mask, U32)? })
        }
        ["vote", "sync", mode, "pred"] if let Some(op) = vote(mode) => {
            let [d, a, mask] = body.exactly()?;
            let d = predicate_destination(body, d)?;
            Ok(Op::Vote { op, d, a: body.guard(a)?, mask: body.source(mask, U32)? })
        }
        ["vote", "sync", "ballot", "b32"] => {
            let [d, a, mask] = body.exactly()?;
            let d = body.destination(d, B32)?;
            Ok(Op::Ballot { d, a: body.guard(a)?, mask: body.source(mask, U32)? })
        }
        ["redux", "sync", op, ty] if let (Some(op), Some(typed)) = (reduction(op, ty), any(ty)) => {
            let (d, [a, mask]) = body.slots(typed, [typed, U32])?;
            Ok(Op::Reduce { op, ty: typed.ty, d, a, mask })
        }
        ["match", "any", "sync", ty] if let Some(typed) = bits32(ty) => {
            let [d, a, mask] = body.exactly()?;
            let (d, a) = (body.destination(d, B32)?, body.source(a, typed)?);
            let (ty, valid) = (typed.ty, None);
            Ok(Op::Match { all: false, ty, d, valid, a, mask: body.source(mask, U32)? })
        }
        ["match", "all", "sync", ty] if let Some(typed) = bits32(ty) => {
            let [d, a, mask] = body.exactly()?;
            let (d, valid) = pair(body, d)?;
            let (ty, a) = (typed.ty, body.source(a, typed)?);
            Ok(Op::Match { all: true, ty, d, valid, a, mask: body.source(mask, U32)? })
        }
        ["elect", "sync"] => {
            let [d, mask] = body.exactly()?;
            let Operand::Pair(d, p) = *d else {
                return Err("the destination is a register and a predicate".into());
            };
            let p = body.destination_predicate(p)?;
            let d = match d {
                "_" => None,
                d => Some(body.destination(&Operand::Atom(Atom::Name(d)), B32)?),
            };
            Ok(Op::Elect { d, p, mask: body.source(mask, U32)? })
        }
        ["activemask", "b32"] => {
            let [d] = body.exactly()?;
            Ok(Op::ActiveMask { d: body.destination(d, B32)? })
        }
        _ => Err(Refusal::Unknown),
    }
}

/// Reads `%r1` or `%r1|%p1`, where the predicate may be `_`.
fn pair<'s>(body: &mut Body<'_, 's>, operand: &Operand<'s>) -> Parsed<(Slot, Option<Slot>)> {
    let (d, valid) = match *operand {
        Operand::Pair(d, "_") => (d, None),
        Operand::Pair(d, valid) => (d, Some(body.destination_predicate(valid)?)),
        Operand::Atom(Atom::Name(d)) => (d, None),
        _ => return Err("the destination is a register".to_string()),
    };
    Ok((body.destination(&Operand::Atom(Atom::Name(d)), B32)?, valid))
}

fn shuffle(mode: &str) -> Option<Shuffle> {
    named!(mode, Shuffle { "up" => Up, "down" => Down, "bfly" => Butterfly, "idx" => Index })
}

fn vote(mode: &str) -> Option<Vote> {
    named!(mode, Vote { "all" => All, "any" => Any, "uni" => Uniform })
}

fn reduction(op: &str, ty: &str) -> Option<Binary> {
    named!((op, ty), Binary {
        ("add", "u32" | "s32") => Add, ("min", "u32" | "s32") => Min, ("max", "u32" | "s32") => Max,
        ("and", "b32") => And, ("or", "b32") => Or, ("xor", "b32") => Xor,
    })
}
