//! Branches, exits and barriers.

use super::super::body::Body;
use super::super::number::Number;
use super::super::program::Op;
use super::super::statement::{Atom, Operand};
use super::super::types::U32;
use super::refusal::{Refusal, exactly};

pub(super) fn decode<'s>(
    body: &mut Body<'_, 's>,
    parts: &[&str],
    operands: &[Operand<'s>],
) -> Result<Op, Refusal> {
    match *parts {
        ["bra"] => branch(body, false, operands),
        ["bra", "uni"] => branch(body, true, operands),
        ["ret"] | ["ret", "uni"] => {
            let [] = exactly(operands)?;
            Ok(body.leave())
        }
        ["exit"] => {
            let [] = exactly(operands)?;
            Ok(Op::Exit)
        }
        ["trap"] => {
            let [] = exactly(operands)?;
            Ok(Op::Trap)
        }
        ["nanosleep", "u32"] => {
            let [time] = exactly(operands)?;
            body.source(time, U32)?;
            Ok(Op::Nothing)
        }
        ["bar", "warp", "sync"] => {
            let [mask] = exactly(operands)?;
            Ok(Op::WarpBarrier { mask: body.source(mask, U32)? })
        }
        ["bar", "sync"]
        | ["bar", "cta", "sync"]
        | ["barrier", "sync"]
        | ["barrier", "sync", "aligned"]
        | ["barrier", "cta", "sync"]
        | ["barrier", "cta", "sync", "aligned"] => match operands {
            [Operand::Atom(Atom::Number(Number::Integer(id @ 0..16)))] => {
                Ok(Op::Barrier { id: *id as u8, threads: None })
            }
            [Operand::Atom(Atom::Number(Number::Integer(id @ 0..16))), threads] => {
                Ok(Op::Barrier { id: *id as u8, threads: Some(body.source(threads, U32)?) })
            }
            [_] | [_, _] => Err("the barrier is a literal from 0 to 15".to_string().into()),
            _ => Err("it takes the barrier's number, and that of threads".to_string().into()),
        },
        _ => Err(Refusal::Unknown),
    }
}

fn branch<'s>(
    body: &mut Body<'_, 's>,
    uniform: bool,
    operands: &[Operand<'s>],
) -> Result<Op, Refusal> {
    match exactly(operands)? {
        [Operand::Atom(Atom::Name(label))] => Ok(body.branch(label, uniform)),
        _ => Err("the target is a label".to_string().into()),
    }
}
