//! Branches, exits and barriers.

use super::bits::predicate_destination;
use super::modifiers::{Coder, Decoded};
use super::refusal::Refusal;
use crate::isa::{BarrierId, Op, Reduction, Slot};
use crate::parse::body::state::Body;
use crate::parse::source::statement::{Atom, Operand};
use crate::parse::source::types::{Number, U32};

pub(super) fn decode(body: &mut Coder, parts: &[&str]) -> Decoded {
    match *parts {
        ["bra"] => branch(body, false),
        ["bra", "uni"] => branch(body, true),
        ["ret"] | ["ret", "uni"] => {
            let [] = body.exactly()?;
            Ok(body.leave())
        }
        ["exit"] => body.plain(Op::Exit {}),
        ["trap"] => body.plain(Op::Trap {}),
        ["nanosleep", "u32"] => {
            let [time] = body.exactly()?;
            body.source(time, U32)?;
            Ok(Op::Nothing {})
        }
        ["bar", "warp", "sync"] => {
            let [mask] = body.exactly()?;
            Ok(Op::WarpBarrier { mask: body.source(mask, U32)? })
        }
        [name @ ("bar" | "barrier"), "cta", ref rest @ ..]
        | [name @ ("bar" | "barrier"), ref rest @ ..] => of_block(body, rest, name == "barrier"),
        _ => Err(Refusal::Unknown),
    }
}

/// Decodes a barrier of the block, without `bar.cta` or `barrier.cta`, which may be `.aligned`.
fn of_block(body: &mut Coder, parts: &[&str], may_be_aligned: bool) -> Decoded {
    let (op, rest) = match parts {
        [op @ ("sync" | "arrive"), "aligned"] if may_be_aligned => (*op, &[][..]),
        ["red", op, "aligned", ty] if may_be_aligned => ("red", &[*op, *ty][..]),
        [op, rest @ ..] => (*op, rest),
        [] => return Err(Refusal::Unknown),
    };
    match (op, rest) {
        ("sync", []) => {
            let (id, threads) = match body.operands {
                [id] => (id, None),
                [id, threads] => (id, Some(threads)),
                _ => return Err("it takes the barrier's number, and that of threads".into()),
            };
            let (id, threads) = barrier(body, id, threads)?;
            Ok(Op::Barrier { id, threads })
        }
        ("arrive", []) => {
            let [id, threads] = body.exactly()?;
            let threads = body.source(threads, U32)?;
            Ok(Op::BarrierArrive { id: barrier(body, id, None)?.0, threads })
        }
        ("red", [op, ty]) => {
            let op = reduction(op, ty).ok_or(Refusal::Unknown)?;
            let (d, id, threads, a) = match body.operands {
                [d, id, a] => (d, id, None, a),
                [d, id, threads, a] => (d, id, Some(threads), a),
                _ => return Err("it takes 3 or 4 operands".into()),
            };
            let d = match op {
                Reduction::Count => body.destination(d, U32)?,
                _ => predicate_destination(body, d)?,
            };
            let (id, threads) = barrier(body, id, threads)?;
            Ok(Op::BarrierReduce { op, id, threads, d, a: body.guard(a)? })
        }
        _ => Err(Refusal::Unknown),
    }
}

/// Reads the number of a barrier, and the number of threads if it is given.
fn barrier<'s>(
    body: &mut Body<'_, 's>,
    id: &Operand<'s>,
    threads: Option<&Operand<'s>>,
) -> Result<(BarrierId, Option<Slot>), String> {
    let id = match *id {
        Operand::Atom(Atom::Number(Number::Integer(id @ 0..16))) => BarrierId::Number(id as u8),
        Operand::Atom(Atom::Name(name)) if name != "WARP_SZ" => {
            BarrierId::Register(body.source(id, U32)?)
        }
        _ => return Err("the barrier is a literal from 0 to 15, or a register".to_string()),
    };
    let threads = threads.map(|threads| body.source(threads, U32)).transpose()?;
    Ok((id, threads))
}

fn reduction(op: &str, ty: &str) -> Option<Reduction> {
    named!((op, ty), Reduction {
        ("popc", "u32") => Count, ("and", "pred") => All, ("or", "pred") => Any,
    })
}

fn branch(body: &mut Coder, uniform: bool) -> Decoded {
    match body.exactly()? {
        [Operand::Atom(Atom::Name(label))] => Ok(body.branch(label, uniform)),
        _ => Err("the target is a label".into()),
    }
}
