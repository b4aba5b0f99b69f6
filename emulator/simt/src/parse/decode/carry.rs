//! Sums, differences and products of integers of many words: what one instruction carries the next
//! one takes.

use super::refusal::{Refusal, exactly};
use crate::isa::{Carry, Op};
use crate::parse::body::state::Body;
use crate::parse::source::statement::Operand;
use crate::parse::source::types::integer32;

pub(super) fn decode<'s>(
    body: &mut Body<'_, 's>,
    parts: &[&str],
    operands: &[Operand<'s>],
) -> Result<Op, Refusal> {
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
            let [d, a, b] = exactly(operands)?;
            (d, a, b, b)
        }
        Some(_) => {
            let [d, a, b, c] = exactly(operands)?;
            (d, a, b, c)
        }
    };
    let d = body.destination(d, typed)?;
    let (a, b, c) = (body.source(a, typed)?, body.source(b, typed)?, body.source(c, typed)?);
    let flag = body.carry()?;
    let takes = name.ends_with('c').then_some(flag);
    Ok(Op::Carry { op, ty: typed.ty, takes, gives: gives.then_some(flag), d, a, b, c })
}
