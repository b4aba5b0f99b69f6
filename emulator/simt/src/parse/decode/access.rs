//! The modifiers of `ld` and `st`, in PTX's order:
//! `.order.scope .space .cache .nc .L1::… .L2::… .vector .type`.

use super::modifiers::{Rest, is_scope, order, space};
use crate::isa::{Order, Space};
use crate::parse::source::types::{Typed, memory};

/// What an access says beside its address and registers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Access {
    /// `None`: `.param`.
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

/// `.weak`, `.relaxed.gpu`, `.acquire.gpu` of loads, `.release.gpu` of stores, or nothing.
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

/// Hints change nothing but the time that the access takes. Only `ld.cv`, which fetches anew, and
/// `st.wt`, which writes through, are used to talk to other blocks: they count as relaxed.
fn cache_hints(
    rest: &mut Rest,
    is_load: bool,
    space: Space,
    order: Order,
    volatile: bool,
) -> Order {
    let in_device_memory = matches!(space, Space::Global | Space::Generic);
    let (hints, through): (&[&str], &[&str]) =
        if is_load { (&["ca", "cg", "cs", "lu"], &["cv"]) } else { (&["wb", "cg", "cs"], &["wt"]) };
    let hinted = order == Order::Weak && rest.accept(hints);
    let anew = order == Order::Weak && !hinted && in_device_memory && rest.accept(through);
    if is_load && order == Order::Weak && space == Space::Global && !anew {
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
    if in_device_memory && is_load {
        rest.accept(&["L2::64B", "L2::128B", "L2::256B"]);
    }
    if anew { Order::Relaxed } else { order }
}
