//! `mov` of whole registers, packing and unpacking, and `cvta`.

use super::bits::predicate_destination;
use super::modifiers::{Coder, Decoded, space};
use super::refusal::Refusal;
use crate::isa::{Logic, Op, Slot, Space, Unary};
use crate::parse::body::special::clock;
use crate::parse::body::state::Body;
use crate::parse::source::statement::{Atom, Elements, Operand};
use crate::parse::source::types::{B16, B32, B64, Kind, Typed, U64, unsigned, word};

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
                let ty = if typed.kind == Kind::Float { typed.ty } else { unsigned(typed.ty) };
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
fn place_in<'s>(
    body: &mut Body<'_, 's>,
    space: Space,
    operand: &Operand<'s>,
) -> Result<Slot, String> {
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
fn pack<'s>(
    body: &mut Body<'_, 's>,
    typed: Typed,
    d: &Operand<'s>,
    elements: &Elements<'s>,
) -> Decoded {
    let part = part_type(typed, elements)?;
    let d = body.destination(d, typed)?;
    match *elements.as_slice() {
        [a, b] => {
            let parts = [body.atom(a, part)?, body.atom(b, part)?];
            Ok(if part == B16 { Op::Pack16 { d, parts } } else { Op::Pack32 { d, parts } })
        }
        [a, b, c, e] => {
            let (a, b) = (body.atom(a, part)?, body.atom(b, part)?);
            let parts = [a, b, body.atom(c, part)?, body.atom(e, part)?];
            Ok(Op::Pack16x4 { d, parts })
        }
        _ => Err(Refusal::Unknown),
    }
}

fn unpack<'s>(
    body: &mut Body<'_, 's>,
    typed: Typed,
    elements: &Elements<'s>,
    a: &Operand<'s>,
) -> Decoded {
    let part = part_type(typed, elements)?;
    let a = body.source(a, typed)?;
    let mut destination = |atom: Atom<'s>| -> Result<Option<Slot>, String> {
        match atom {
            Atom::Name("_") => Ok(None),
            _ => body.destination(&Operand::Atom(atom), part).map(Some),
        }
    };
    match *elements.as_slice() {
        [x, y] => {
            let d = [destination(x)?, destination(y)?];
            Ok(if part == B16 { Op::Unpack16 { d, a } } else { Op::Unpack32 { d, a } })
        }
        [x, y, z, w] => {
            let d = [destination(x)?, destination(y)?, destination(z)?, destination(w)?];
            Ok(Op::Unpack16x4 { d, a })
        }
        _ => Err(Refusal::Unknown),
    }
}

/// Returns the type of the elements of a `.b32` or `.b64`, given their number.
fn part_type(typed: Typed, elements: &Elements) -> Result<Typed, Refusal> {
    match (typed, elements.as_slice().len()) {
        (B32, 2) | (B64, 4) => Ok(B16),
        (B64, 2) => Ok(B32),
        (_, count) => Err(format!("a `.{}` is not moved as {count} elements", typed.name).into()),
    }
}
