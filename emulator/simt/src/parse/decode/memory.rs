//! `ld`, `st` and `prefetch`, with their modifiers in PTX's order: `.order.scope .space .cache .nc
//! .L1::… .L2::… .vector .type`.
//!
//! Cache hints only change the time that an access takes and are dropped, except for the two that
//! programs use to communicate with other blocks. A register may be wider than the type of the
//! access. Parameters of a kernel are read at an offset. Parameters of a function are in its frame,
//! in local memory. Tested by `memory.rs`, `variables.rs` and `form.rs` in `tests/suite`, and by
//! `cases/memory.ptx`.

use super::modifiers::{Coder, Decoded, Rest, is_scope, order, space};
use super::refusal::Refusal;
use crate::isa::{Op, Order, Space};
use crate::parse::body::names::Named;
use crate::parse::body::state::Body;
use crate::parse::body::unit::VariableSpace;
use crate::parse::source::cursor::Parsed;
use crate::parse::source::lexer::show;
use crate::parse::source::statement::{Atom, Operand};
use crate::parse::source::types::{B64, Kind, Typed, memory, unsigned};

pub(super) fn decode(body: &mut Coder, parts: &[&str]) -> Decoded {
    match *parts {
        ["ld", ..] => {
            let access = Access::read(parts, true).ok_or(Refusal::Unknown)?;
            let [d, address] = body.exactly()?;
            load(body, access, d, address)
        }
        ["st", ..] => {
            let access = Access::read(parts, false).ok_or(Refusal::Unknown)?;
            let [address, a] = body.exactly()?;
            store(body, access, address, a)
        }
        ["prefetch", "L1" | "L2"] | ["prefetchu", "L1"] => prefetch(body, Space::Generic),
        ["prefetch", name @ ("global" | "local"), "L1" | "L2"] if let Some(space) = space(name) => {
            prefetch(body, space)
        }
        _ => Err(Refusal::Unknown),
    }
}

fn load<'s>(body: &mut Body<'_, 's>, access: Access, d: &Operand<'s>, at: &Operand<'s>) -> Decoded {
    let Access { space, order, typed, count } = access;
    let atoms = elements(d, count)?;
    let mut d = [0; 4];
    let mut register_bytes = 0;
    for (slot, &atom) in d.iter_mut().zip(&atoms[..usize::from(count)]) {
        let bytes;
        (*slot, bytes) = match atom {
            Atom::Name("_") if count > 1 => continue,
            _ => body.destination_or_wider(&Operand::Atom(atom), typed)?,
        };
        if register_bytes != 0 && bytes != register_bytes {
            return Err("the registers of a vector differ in size".into());
        }
        register_bytes = bytes;
    }
    let wide = register_bytes == 8;
    // Elements that the program ignores go to a sink.
    for (slot, atom) in d.iter_mut().zip(&atoms[..usize::from(count)]) {
        if *atom == Atom::Name("_") {
            *slot = body.sink(wide)?;
        }
    }
    let ty = if typed.kind == Kind::Bits { unsigned(typed.ty) } else { typed.ty };
    let place = match space {
        Some(space) => Place::At(space),
        None => param_place(body, at, typed.bytes() * u32::from(count))?,
    };
    let space = match place {
        Place::Kernel(offset) => return Ok(Op::LoadParam { ty, count, wide, d, offset }),
        Place::At(space) => space,
    };
    Ok(Op::Load { space, order, ty, count, wide, d, address: body.address(at, space)? })
}

/// The place of a parameter.
enum Place {
    /// An offset from the beginning of the kernel's parameters.
    Kernel(u32),
    /// An address in a space: of the kernel's parameters if it is in a register, or of a function's
    /// parameters in local memory.
    At(Space),
}

/// Returns the place of `[name+8]`.
fn param_place<'s>(body: &mut Body<'_, 's>, address: &Operand<'s>, bytes: u32) -> Parsed<Place> {
    let Operand::Address(Atom::Name(name), offset) = *address else {
        return Err("a parameter in brackets was expected".to_string());
    };
    let index = match body.find(name)? {
        Named::Param(index) => index,
        Named::Variable(index) if body.context.variables[index].space == VariableSpace::Param => {
            return Ok(Place::At(Space::Local));
        }
        Named::Register(_) if body.frame.is_some() => return Ok(Place::At(Space::Local)),
        Named::Register(_) => return Ok(Place::At(Space::Parameter)),
        _ => return Err(format!("`{}` is no parameter", show(name))),
    };
    let param = &body.unit.kernel.params[index];
    let start = u32::try_from(offset)
        .ok()
        .filter(|&start| start.checked_add(bytes).is_some_and(|end| end <= param.bytes));
    match start.map(|start| param.offset + start) {
        None => Err(format!("parameter `{}` has {} bytes", show(name), param.bytes)),
        Some(start) if start % bytes != 0 => {
            Err(format!("{bytes} bytes of parameters are read at byte {start}"))
        }
        Some(start) => Ok(Place::Kernel(start)),
    }
}

fn store<'s>(
    body: &mut Body<'_, 's>,
    access: Access,
    at: &Operand<'s>,
    a: &Operand<'s>,
) -> Decoded {
    let Access { space, order, typed, count } = access;
    let space = match space {
        Some(space) => space,
        None => match param_place(body, at, typed.bytes() * u32::from(count))? {
            Place::At(Space::Local) => Space::Local,
            _ => return Err("a kernel only reads its parameters".into()),
        },
    };
    let address = body.address(at, space)?;
    let atoms = elements(a, count)?;
    let atoms = &atoms[..usize::from(count)];
    let mut a = [0; 4];
    let mut is_wide = None;
    for (slot, &atom) in a.iter_mut().zip(atoms) {
        if !is_register(atom) {
            continue;
        }
        let bytes;
        (*slot, bytes) = body.source_or_wider(&Operand::Atom(atom), typed)?;
        if is_wide.is_some_and(|wide| wide != (bytes == 8)) {
            return Err("the registers of a vector differ in size".into());
        }
        is_wide = Some(bytes == 8);
    }
    // Literals take slots of the same size as the registers of the vector.
    let wide = is_wide.unwrap_or(typed.ty.is_wide());
    let literal = match (wide, typed.ty.is_wide()) {
        (true, false) => B64,
        _ => typed,
    };
    for (slot, &atom) in a.iter_mut().zip(atoms) {
        if !is_register(atom) {
            *slot = body.atom(atom, literal)?;
        }
    }
    Ok(Op::Store { space, order, ty: typed.bits(), count, wide, a, address })
}

/// Returns true if the operand is not a literal.
fn is_register(atom: Atom) -> bool {
    matches!(atom, Atom::Name(_))
}

/// Returns the `count` elements of an operand. Later entries are undefined.
fn elements<'s>(operand: &Operand<'s>, count: u8) -> Parsed<[Atom<'s>; 4]> {
    match (*operand, count) {
        (Operand::Atom(atom), 1) => Ok([atom; 4]),
        (Operand::Vector(elements), _) if elements.as_slice().len() == usize::from(count) => {
            let slice = elements.as_slice();
            Ok(std::array::from_fn(|i| slice[i.min(slice.len() - 1)]))
        }
        _ => Err(format!("the access has {count} values, and so must the operand")),
    }
}

fn prefetch(body: &mut Coder, space: Space) -> Decoded {
    let [address] = body.exactly()?;
    body.address(address, space)?;
    Ok(Op::Nothing {})
}

/// The modifiers of an access.
#[derive(Debug, Clone, Copy)]
pub(super) struct Access {
    /// `None` for `.param`.
    pub(super) space: Option<Space>,
    pub(super) order: Order,
    pub(super) typed: Typed,
    pub(super) count: u8,
}

impl Access {
    pub(super) fn read(parts: &[&str], is_load: bool) -> Option<Access> {
        let mut rest = Rest(&parts[1..]);
        let is_volatile = rest.accept(&["volatile"]);
        let mut order = if is_volatile { Order::Relaxed } else { ordering(&mut rest, is_load)? };
        let is_param =
            is_load && rest.accept(&["param::entry"]) || rest.accept(&["param", "param::func"]);
        let is_const = is_load && order == Order::Weak && rest.accept(&["const"]);
        let space = if is_const { Some(Space::Constant) } else { rest.take(space) };
        let space = space.unwrap_or(Space::Generic);
        if is_param && (space != Space::Generic || order != Order::Weak) {
            return None;
        }
        if !is_param {
            order = cache_hints(&mut rest, is_load, space, order, is_volatile);
        }
        let count = rest.take(|name| match name {
            "v2" => Some(2),
            "v4" => Some(4),
            _ => None,
        });
        let &[ty] = rest.0 else { return None };
        let (typed, count) = (memory(ty)?, count.unwrap_or(1));
        let is_allowed = u32::from(count) * typed.bytes() <= 16
            && (order == Order::Weak || space != Space::Local);
        let space = (!is_param).then_some(space);
        is_allowed.then_some(Access { space, order, typed, count })
    }
}

/// Reads `.weak`, `.relaxed.gpu`, `.acquire.gpu` of loads, `.release.gpu` of stores, or nothing.
fn ordering(rest: &mut Rest, is_load: bool) -> Option<Order> {
    if rest.accept(&["weak"]) {
        return Some(Order::Weak);
    }
    let one_sided = if is_load { Order::Acquire } else { Order::Release };
    match rest.take(order) {
        None => Some(Order::Weak),
        Some(order) if order == Order::Relaxed || order == one_sided => {
            rest.take(|name| is_scope(name).then_some(order))
        }
        Some(_) => None,
    }
}

/// Reads cache hints, which change only the time of the access. Exceptions are `ld.cv` (fetches
/// again) and `st.wt` (writes through): they communicate with other blocks and count as relaxed.
fn cache_hints(rest: &mut Rest, loads: bool, space: Space, order: Order, volatile: bool) -> Order {
    let in_device_memory = matches!(space, Space::Global | Space::Generic);
    let (hints, through): (&[&str], &[&str]) =
        if loads { (&["ca", "cg", "cs", "lu"], &["cv"]) } else { (&["wb", "cg", "cs"], &["wt"]) };
    let hinted = order == Order::Weak && rest.accept(hints);
    let anew = order == Order::Weak && !hinted && in_device_memory && rest.accept(through);
    if loads && order == Order::Weak && space == Space::Global && !anew {
        rest.accept(&["nc"]);
    }
    if in_device_memory && !volatile && !hinted && !anew {
        rest.accept(&[
            "L1::evict_normal",
            "L1::evict_unchanged",
            "L1::evict_first",
            "L1::evict_last",
            "L1::no_allocate",
        ]);
    }
    if in_device_memory && loads {
        rest.accept(&["L2::64B", "L2::128B", "L2::256B"]);
    }
    if anew { Order::Relaxed } else { order }
}
