//! Logic, shifts, counts and moves of bits, and logic on predicates.

use super::modifiers::{Coder, Decoded};
use super::refusal::Refusal;
use crate::isa::{Binary, Logic, Op, Permute, Ternary, Unary};
use crate::parse::body::state::Body;
use crate::parse::source::statement::{Atom, Operand};
use crate::parse::source::types::{B32, Number, S32, Typed, U32, bits, bits32, integer, integer32};

pub(super) fn decode(body: &mut Coder, parts: &[&str]) -> Decoded {
    match *parts {
        [op @ ("and" | "or" | "xor"), "pred"] => {
            let [d, a, b] = body.exactly()?;
            let (op, d) = (logic(op).ok_or(Refusal::Unknown)?, predicate_destination(body, d)?);
            Ok(Op::Predicate { op, d, a: body.predicate(a)?, b: body.predicate(b)? })
        }
        ["not", "pred"] => {
            let [d, a] = body.exactly()?;
            Ok(Op::NotPredicate { d: predicate_destination(body, d)?, a: body.predicate(a)? })
        }
        ["bfind", "shiftamt", ty] if let Some(typed) = integer32(ty) => {
            body.unary(Unary::FindBit { shift: true }, typed.ty, typed, U32)
        }
        [name, ty] if let Some((op, typed, result)) = unary(name, ty) => {
            body.unary(op, typed.ty, typed, result.unwrap_or(typed))
        }
        [name, ty] if let Some((op, typed, second)) = binary(name, ty) => {
            body.binary(op, typed.ty, typed, second.unwrap_or(typed))
        }
        ["bfe", ty] if let Some(typed) = integer32(ty) => {
            let (d, [a, b, c]) = body.slots(typed, [typed, U32, U32])?;
            Ok(Op::BitExtract { ty: typed.ty, d, a, b, c })
        }
        ["bfi", ty] if let Some(typed) = bits32(ty) => {
            let (d, [a, b, pos, len]) = body.slots(typed, [typed, typed, U32, U32])?;
            Ok(Op::BitInsert { ty: typed.ty, d, a, b, pos, len })
        }
        ["lop3", "b32"] => {
            let [d, a, b, c, table] = body.exactly()?;
            let Operand::Atom(Atom::Number(Number::Integer(table @ 0..=255))) = *table else {
                return Err("the table is a number from 0 to 255".into());
            };
            let d = body.destination(d, B32)?;
            let (a, b, c) = (body.source(a, B32)?, body.source(b, B32)?, body.source(c, B32)?);
            Ok(Op::Lop3 { table: table as u8, d, a, b, c })
        }
        ["prmt", "b32"] => body.ternary(Ternary::Permute(Permute::Selectors), B32),
        ["prmt", "b32", mode] if let Some(mode) = permute(mode) => {
            body.ternary(Ternary::Permute(mode), B32)
        }
        ["fns", "b32"] => body.ternary(Ternary::FindNth, B32),
        [ref name @ .., mode @ ("wrap" | "clamp"), ty] => {
            let wrap = mode == "wrap";
            match (name, ty) {
                (["shf", "l"], "b32") => body.ternary(Ternary::FunnelLeft { wrap }, B32),
                (["shf", "r"], "b32") => body.ternary(Ternary::FunnelRight { wrap }, B32),
                (["bmsk"], "b32") => two(body, Ternary::Mask { wrap }, B32),
                (["szext"], "u32") => two(body, Ternary::Extend { wrap }, U32),
                (["szext"], "s32") => two(body, Ternary::Extend { wrap }, S32),
                _ => Err(Refusal::Unknown),
            }
        }
        _ => Err(Refusal::Unknown),
    }
}

/// Returns an operation on one operand, its type, and the type of the result if it is another one.
fn unary(name: &str, ty: &str) -> Option<(Unary, Typed, Option<Typed>)> {
    Some(match name {
        "not" => (Unary::Not, bits(ty)?, None),
        "cnot" => (Unary::LogicalNot, bits(ty)?, None),
        "brev" => (Unary::BitReverse, bits32(ty)?, None),
        "popc" => (Unary::PopCount, bits32(ty)?, Some(U32)),
        "clz" => (Unary::LeadingZeros, bits32(ty)?, Some(U32)),
        "bfind" => (Unary::FindBit { shift: false }, integer32(ty)?, Some(U32)),
        _ => return None,
    })
}

/// Returns an operation on two operands, its type, and the type of the second if it is another one.
fn binary(name: &str, ty: &str) -> Option<(Binary, Typed, Option<Typed>)> {
    Some(match name {
        "and" => (Binary::And, bits(ty)?, None),
        "or" => (Binary::Or, bits(ty)?, None),
        "xor" => (Binary::Xor, bits(ty)?, None),
        "shl" => (Binary::Shl, bits(ty)?, Some(U32)),
        "shr" => (Binary::Shr, bits(ty).or_else(|| integer(ty))?, Some(U32)),
        _ => return None,
    })
}

/// Returns the instruction of an operation with three operands that takes two.
fn two(body: &mut Coder, op: Ternary, typed: Typed) -> Decoded {
    let second = if typed == B32 { B32 } else { U32 };
    let (d, [a, b]) = body.slots(typed, [typed, second])?;
    Ok(Op::Ternary { op, ty: typed.ty, d, a, b, c: b })
}

fn permute(mode: &str) -> Option<Permute> {
    named!(mode, Permute {
        "f4e" => Forward, "b4e" => Backward, "rc8" => Byte, "rc16" => Half, "ecl" => ClampLeft,
        "ecr" => ClampRight,
    })
}

/// Returns the operation that combines two predicates.
pub(super) fn logic(name: &str) -> Option<Logic> {
    named!(name, Logic { "and" => And, "or" => Or, "xor" => Xor })
}

/// Returns the predicate that an operand names as a destination.
pub(super) fn predicate_destination<'s>(
    body: &mut Body<'_, 's>,
    operand: &Operand<'s>,
) -> Result<u16, String> {
    match *operand {
        Operand::Atom(Atom::Name(name)) => body.destination_predicate(name),
        _ => Err("the destination must be a `.pred` register".to_string()),
    }
}
