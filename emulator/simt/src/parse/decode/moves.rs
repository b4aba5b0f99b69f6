//! `mov` of whole registers, packing and unpacking, and `cvta`.

use super::bits::predicate_destination;
use super::modifiers::{Coder, Decoded, space};
use super::refusal::Refusal;
use crate::isa::{Logic, Op, Slot, Space, Unary};
use crate::parse::body::special::clock;
use crate::parse::body::state::Body;
use crate::parse::source::cursor::Parsed;
use crate::parse::source::statement::{Atom, Elements, Operand};
use crate::parse::source::types::{B16, B32, B64, Typed, U64, word};

pub(super) fn decode(body: &mut Coder, parts: &[&str]) -> Decoded {
    match *parts {
        ["mov", "pred"] => {
            let [d, a] = body.exactly()?;
            let (d, a) = (predicate_destination(body, d)?, body.predicate(a)?);
            Ok(Op::Predicate { op: Logic::Or, d, a, b: a })
        }
        ["mov", ty] if let Some(typed) = word(ty) => match body.exactly()? {
            [d, Operand::Vector(parts)] => pack(body, typed, d, parts),
            [Operand::Vector(parts), a] => unpack(body, typed, parts, a),
            [d, Operand::Atom(Atom::Name(name))]
                if let Some((part, whole)) = clock(name)
                    && whole.agrees_with(typed) =>
            {
                Ok(Op::Clock { part, d: body.destination(d, typed)? })
            }
            [d, a] => {
                let (d, a) = (body.destination(d, typed)?, body.source_or_place(a, typed)?);
                let ty = typed.bits();
                Ok(Op::Unary { op: Unary::Move, ty, d, a })
            }
        },
        ["cvta", name, "u64"] if let Some(space) = space_of_address(name) => {
            let [d, a] = body.exactly()?;
            let a = place_in(body, space, a)?;
            Ok(Op::ConvertAddress { space, to: false, d: body.destination(d, U64)?, a })
        }
        ["cvta", "to", name, "u64"] if let Some(space) = space_of_address(name) => {
            let (d, [a]) = body.slots(U64, [U64])?;
            Ok(Op::ConvertAddress { space, to: true, d, a })
        }
        _ => Err(Refusal::Unknown),
    }
}

fn space_of_address(name: &str) -> Option<Space> {
    match name {
        "const" => Some(Space::Constant),
        "param" | "param::entry" => Some(Space::Parameter),
        _ => space(name),
    }
}

/// Returns an address in a space: a register, or a variable, which must be in that space.
fn place_in<'s>(body: &mut Body<'_, 's>, space: Space, operand: &Operand<'s>) -> Parsed<Slot> {
    match *operand {
        Operand::Atom(atom) => body.address(&Operand::Address(atom, 0), space)?,
        Operand::Sum(name, offset) => {
            body.address(&Operand::Address(Atom::Name(name), offset), space)?
        }
        _ => return Err("an address was expected".to_string()),
    };
    body.source_or_place(operand, U64)
}

/// Decodes `mov.b64 d, {a, b}`: the first element becomes the lowest bits.
fn pack<'s>(body: &mut Body<'_, 's>, typed: Typed, d: &Operand<'s>, all: &Elements<'s>) -> Decoded {
    let part = part_type(typed, all)?;
    let d = body.destination(d, typed)?;
    let mut parts = [0; 4];
    for (slot, atom) in parts.iter_mut().zip(all.as_slice()) {
        *slot = body.atom(*atom, part)?;
    }
    let [x, y, ..] = parts;
    Ok(match (part, all.as_slice().len()) {
        (_, 4) => Op::Pack16x4 { d, parts },
        (B16, _) => Op::Pack16 { d, parts: [x, y] },
        _ => Op::Pack32 { d, parts: [x, y] },
    })
}

fn unpack<'s>(
    body: &mut Coder<'_, '_, 's>,
    typed: Typed,
    all: &Elements<'s>,
    a: &Operand<'s>,
) -> Decoded {
    let part = part_type(typed, all)?;
    let a = body.source(a, typed)?;
    let mut d = [None; 4];
    for (slot, &atom) in d.iter_mut().zip(all.as_slice()) {
        *slot = body.optional(&Operand::Atom(atom), part)?;
    }
    let [x, y, ..] = d;
    Ok(match (part, all.as_slice().len()) {
        (_, 4) => Op::Unpack16x4 { d, a },
        (B16, _) => Op::Unpack16 { d: [x, y], a },
        _ => Op::Unpack32 { d: [x, y], a },
    })
}

/// Returns the type of the elements of a `.b32` or `.b64`, given their number.
fn part_type(typed: Typed, elements: &Elements) -> Result<Typed, Refusal> {
    match (typed, elements.as_slice().len()) {
        (B32, 2) | (B64, 4) => Ok(B16),
        (B64, 2) => Ok(B32),
        (_, count) => Err(format!("a `.{}` is not moved as {count} elements", typed.name).into()),
    }
}
