//! `tex`, `suld`, `sust`, `txq` and `suq`, by handles in registers.

use super::modifiers::{Coder, Decoded};
use super::refusal::Refusal;
use crate::isa::{Geometry, Op, Outside, Query, Slot};
use crate::parse::body::state::Body;
use crate::parse::source::statement::{Atom, Operand};
use crate::parse::source::types::{self, B32, F32, S32, Typed, U64, unsigned};

pub(super) fn decode(body: &mut Coder, parts: &[&str]) -> Decoded {
    match *parts {
        ["tex", geometry, "v4", ty, at @ ("f32" | "s32")] if at == "f32" || geometry == "1d" => {
            let fetched = fetched(geometry, ty)?;
            let [d, place] = body.exactly()?;
            fetch(body, fetched, at == "s32", d, place)
        }
        // A texture has one level, so its number does not matter.
        ["tex", "level", geometry, "v4", ty, "f32"] => {
            let fetched = fetched(geometry, ty)?;
            let [d, at, level] = body.exactly()?;
            body.source(level, F32)?;
            fetch(body, fetched, false, d, at)
        }
        [base @ ("suld" | "sust"), "b", ref rest @ ..] => {
            let Access { geometry, count, typed, outside } =
                Access::read(rest).ok_or(Refusal::Unknown)?;
            let [first, second] = body.exactly()?;
            let loads = base == "suld";
            let (all, at) = if loads { (first, second) } else { (second, first) };
            let (object, at) = place(body, geometry, S32, at)?;
            let (slots, wide) = values(count, all, |atom| match loads {
                true => body.destination_or_wider(&Operand::Atom(atom), typed),
                false => body.source_or_wider(&Operand::Atom(atom), typed),
            })?;
            let (ty, d, a) = (unsigned(typed.ty), slots, slots);
            Ok(match loads {
                true => Op::SurfaceLoad { geometry, outside, ty, count, wide, d, object, at },
                false => Op::SurfaceStore { geometry, outside, ty, count, wide, a, object, at },
            })
        }
        [base @ ("txq" | "suq"), query, "b32"] => {
            let surface = base == "suq";
            let query = asked(query)
                .filter(|query| !(surface && *query == Query::Normalized))
                .ok_or(Refusal::Unknown)?;
            let [d, object] = body.exactly()?;
            let Operand::Address(object, 0) = *object else {
                return Err("a texture or surface in brackets was expected".into());
            };
            let object = handle(body, object)?;
            Ok(Op::ObjectQuery { query, surface, d: body.destination(d, B32)?, object })
        }
        _ => Err(Refusal::Unknown),
    }
}

fn fetched(geometry: &str, ty: &str) -> Result<(Geometry, Typed), Refusal> {
    let geometry = Geometry::of(geometry).ok_or(Refusal::Unknown)?;
    let typed = match ty {
        "f32" => F32,
        "s32" => S32,
        "u32" => types::U32,
        _ => return Err(Refusal::Unknown),
    };
    Ok((geometry, typed))
}

fn asked(query: &str) -> Option<Query> {
    named!(query, Query {
        "width" => Width, "height" => Height, "depth" => Depth, "array_size" => Layers,
        "normalized_coords" => Normalized,
    })
}

fn fetch<'s>(
    body: &mut Body<'_, 's>,
    (geometry, typed): (Geometry, Typed),
    linear: bool,
    d: &Operand<'s>,
    at: &Operand<'s>,
) -> Decoded {
    let (object, at) = place(body, geometry, if linear { S32 } else { F32 }, at)?;
    let (mut slots, mut elements) = ([0; 4], None);
    if let Operand::Vector(all) = d {
        elements = <[Atom<'s>; 4]>::try_from(all.as_slice()).ok();
    }
    let elements = elements.ok_or("a fetch has four values")?;
    for (slot, atom) in slots.iter_mut().zip(elements) {
        *slot = match atom {
            Atom::Name("_") => body.sink(false)?,
            _ => body.destination(&Operand::Atom(atom), typed)?,
        };
    }
    Ok(Op::Fetch { geometry, linear, ty: typed.ty, d: slots, object, at })
}

/// The modifiers of `suld.b` and `sust.b`.
struct Access {
    geometry: Geometry,
    count: u8,
    typed: Typed,
    outside: Outside,
}

impl Access {
    /// Reads `.geometry.cache.vector.type.outside`.
    fn read(parts: &[&str]) -> Option<Access> {
        let (geometry, mut rest) = parts.split_first()?;
        if let ["ca" | "cg" | "cs" | "cv" | "wb" | "wt", behind @ ..] = rest {
            rest = behind;
        }
        let (count, ty, outside) = match *rest {
            ["v2", ty, outside] => (2, ty, outside),
            ["v4", ty, outside] => (4, ty, outside),
            [ty, outside] => (1, ty, outside),
            _ => return None,
        };
        let typed = match ty {
            "b8" | "b16" | "b32" | "b64" => types::any(ty)?,
            _ => return None,
        };
        let outside =
            named!(outside, Outside { "trap" => Trap, "clamp" => Clamp, "zero" => Zero })?;
        let fits = typed.bytes() * u32::from(count) <= 16;
        fits.then_some(Access { geometry: Geometry::of(geometry)?, count, typed, outside })
    }
}

/// Returns the slots of the values, and true if they have 64 bits. `slot` returns the slot of a
/// value and the bytes of its register.
fn values<'s>(
    count: u8,
    operand: &Operand<'s>,
    mut slot: impl FnMut(Atom<'s>) -> Result<(Slot, u32), String>,
) -> Result<([Slot; 4], bool), String> {
    let one;
    let atoms = match operand {
        Operand::Vector(elements) => elements.as_slice(),
        Operand::Atom(atom) => {
            one = [*atom];
            &one
        }
        _ => &[],
    };
    if atoms.len() != usize::from(count) {
        return Err(format!("the access has {count} values, and so must the operand"));
    }
    let (mut slots, mut wide) = ([0; 4], None);
    for (found, atom) in slots.iter_mut().zip(atoms) {
        let bytes;
        (*found, bytes) = slot(*atom)?;
        if wide.is_some_and(|wide| wide != (bytes == 8)) {
            return Err("the registers of a vector differ in size".to_string());
        }
        wide = Some(bytes == 8);
    }
    Ok((slots, wide == Some(true)))
}

/// Returns the slots of `[object, {layer, x, y}]`. The number of a layer has no sign. Numbers
/// beyond the geometry are ignored.
fn place<'s>(
    body: &mut Body<'_, 's>,
    geometry: Geometry,
    coordinate: Typed,
    operand: &Operand<'s>,
) -> Result<(Slot, [Slot; 3]), String> {
    let Operand::Texel(object, at) = operand else {
        return Err("a texture or surface in brackets, with coordinates, was expected".to_string());
    };
    let object = handle(body, *object)?;
    let (numbers, at) = (geometry.numbers(), at.as_slice());
    let written = if numbers == 3 { 4 } else { numbers };
    if at.len() != written {
        let name = geometry.name();
        return Err(format!("`.{name}` has {written} numbers for a place, not {}", at.len()));
    }
    let mut slots = [0; 3];
    for (number, (slot, atom)) in slots.iter_mut().zip(at).take(numbers).enumerate() {
        let is_layer = geometry.is_layered() && number == 0;
        *slot = body.source(&Operand::Atom(*atom), if is_layer { B32 } else { coordinate })?;
    }
    Ok((object, slots))
}

/// Returns the slot of a handle.
fn handle<'s>(body: &mut Body<'_, 's>, object: Atom<'s>) -> Result<Slot, String> {
    body.source(&Operand::Atom(object), U64)
}
