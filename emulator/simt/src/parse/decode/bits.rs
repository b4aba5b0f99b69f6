//! Logic, shifts, counts and moves of bits, and logic on predicates.

use super::modifiers::{Coder, Decoded};
use super::refusal::Refusal;
use crate::isa::{Binary, Logic, Op, Permute, Ternary, Unary};
use crate::parse::body::state::Body;
use crate::parse::source::statement::{Atom, Operand};
use crate::parse::source::types::{B32, Number, Typed, U32, bits, bits32, integer, integer32};

pub(super) fn decode(body: &mut Coder, parts: &[&str]) -> Decoded {
    match *parts {
        [op @ ("and" | "or" | "xor"), "pred"] => {
            let [d, a, b] = body.exactly()?;
            let d = predicate_destination(body, d)?;
            let (a, b) = (body.predicate(a)?, body.predicate(b)?);
            Ok(Op::Predicate { op: logic(op).ok_or(Refusal::Unknown)?, d, a, b })
        }
        ["not", "pred"] => {
            let [d, a] = body.exactly()?;
            Ok(Op::NotPredicate { d: predicate_destination(body, d)?, a: body.predicate(a)? })
        }
        [op @ ("and" | "or" | "xor"), ty] if let Some(typed) = bits(ty) => {
            let op = match op {
                "and" => Binary::And,
                "or" => Binary::Or,
                _ => Binary::Xor,
            };
            binary(body, op, typed, typed)
        }
        ["shl", ty] if let Some(typed) = bits(ty) => binary(body, Binary::Shl, typed, U32),
        ["shr", ty] if let Some(typed) = bits(ty).or_else(|| integer(ty)) => {
            binary(body, Binary::Shr, typed, U32)
        }
        ["not", ty] if let Some(typed) = bits(ty) => unary(body, Unary::Not, typed, typed),
        ["cnot", ty] if let Some(typed) = bits(ty) => unary(body, Unary::LogicalNot, typed, typed),
        ["brev", ty] if let Some(typed) = bits32(ty) => {
            unary(body, Unary::BitReverse, typed, typed)
        }
        ["popc", ty] if let Some(typed) = bits32(ty) => unary(body, Unary::PopCount, typed, U32),
        ["clz", ty] if let Some(typed) = bits32(ty) => unary(body, Unary::LeadingZeros, typed, U32),
        ["bfind", ty] if let Some(typed) = integer32(ty) => {
            unary(body, Unary::FindBit { shift: false }, typed, U32)
        }
        ["bfind", "shiftamt", ty] if let Some(typed) = integer32(ty) => {
            unary(body, Unary::FindBit { shift: true }, typed, U32)
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
        ["prmt", "b32"] => ternary(body, Ternary::Permute(Permute::Selectors)),
        ["prmt", "b32", mode] if let Some(mode) = permute(mode) => {
            ternary(body, Ternary::Permute(mode))
        }
        ["szext", mode @ ("wrap" | "clamp"), ty @ ("u32" | "s32")]
            if let Some(typed) = integer(ty) =>
        {
            let (d, [a, b]) = body.slots(typed, [typed, U32])?;
            let op = Ternary::Extend { wrap: mode == "wrap" };
            Ok(Op::Ternary { op, ty: typed.ty, d, a, b, c: b })
        }
        ["bmsk", mode @ ("wrap" | "clamp"), "b32"] => {
            let (d, [a, b]) = body.slots(B32, [B32; 2])?;
            Ok(Op::Ternary {
                op: Ternary::Mask { wrap: mode == "wrap" },
                ty: B32.ty,
                d,
                a,
                b,
                c: b,
            })
        }
        ["fns", "b32"] => ternary(body, Ternary::FindNth),
        ["shf", "l", mode @ ("wrap" | "clamp"), "b32"] => {
            ternary(body, Ternary::FunnelLeft { wrap: mode == "wrap" })
        }
        ["shf", "r", mode @ ("wrap" | "clamp"), "b32"] => {
            ternary(body, Ternary::FunnelRight { wrap: mode == "wrap" })
        }
        _ => Err(Refusal::Unknown),
    }
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

fn unary(body: &mut Coder, op: Unary, typed: Typed, result: Typed) -> Decoded {
    let (d, [a]) = body.slots(result, [typed])?;
    Ok(Op::Unary { op, ty: typed.ty, d, a })
}

fn binary(body: &mut Coder, op: Binary, typed: Typed, second: Typed) -> Decoded {
    let (d, [a, b]) = body.slots(typed, [typed, second])?;
    Ok(Op::Binary { op, ty: typed.ty, d, a, b })
}

fn ternary(body: &mut Coder, op: Ternary) -> Decoded {
    let (d, [a, b, c]) = body.slots(B32, [B32; 3])?;
    Ok(Op::Ternary { op, ty: B32.ty, d, a, b, c })
}
