//! `atom`, `red` and fences.

use super::modifiers::{Coder, Decoded, Rest, is_scope, order, space};
use super::refusal::Refusal;
use crate::isa::{Atomic, Op, Order, Scope, Space};
use crate::parse::source::types::{Typed, any, half};

pub(super) fn decode(body: &mut Coder, parts: &[&str]) -> Decoded {
    match *parts {
        ["atom", ..] => atom(body, parts),
        ["red", ..] => red(body, parts),
        ["membar", name @ ("gl" | "cta" | "sys")] => body.plain(Op::Fence { scope: scope(name) }),
        ["fence", name] | ["fence", "sc" | "acq_rel", name] if is_scope(name) => {
            body.plain(Op::Fence { scope: scope(name) })
        }
        // Accesses by bulk copies are treated like other accesses.
        ["fence", "proxy", "async"]
        | ["fence", "proxy", "async", "global" | "shared::cta" | "shared::cluster"]
        | ["fence", "mbarrier_init", "release", "cluster"] => {
            body.plain(Op::Fence { scope: Scope::Block })
        }
        _ => Err(Refusal::Unknown),
    }
}

/// Returns the scope of a name. With one device, the system's scope is the device.
fn scope(name: &str) -> Scope {
    if name == "cta" { Scope::Block } else { Scope::Device }
}

/// Reads the modifiers of `atom` and `red`: `.order.scope.space.operation.type`. NVRTC writes the
/// scope after the space.
fn modifiers(parts: &[&str]) -> Option<(Order, Space, Atomic, Typed)> {
    // The grid barrier in `cooperative_groups` writes the operation first, which ptxas accepts.
    if let [base, name, sem, scope, ty] = *parts
        && order(sem).is_some()
        && is_scope(scope)
    {
        return modifiers(&[base, sem, scope, name, ty]);
    }
    let mut rest = Rest(&parts[1..]);
    let order = rest.take(order).unwrap_or(Order::Relaxed);
    let scope = |name: &str| is_scope(name).then_some(());
    let scoped = rest.take(scope).is_some();
    let space = match rest.take(space) {
        Some(Space::Local) => return None,
        space => space.unwrap_or(Space::Generic),
    };
    if !scoped {
        rest.take(scope);
    }
    let (name, ty) = match *rest.0 {
        // `.noftz` preserves subnormal numbers, as the emulator always does.
        ["add", "noftz", ty @ ("f16" | "bf16" | "f16x2" | "bf16x2")] => {
            return Some((order, space, Atomic::Add, half(ty)?));
        }
        [name, ty] => (name, ty),
        _ => return None,
    };
    let typed = any(ty)?;
    Some((order, space, operation(name, ty)?, typed))
}

fn operation(name: &str, ty: &str) -> Option<Atomic> {
    named!((name, ty), Atomic {
        ("add", "u32" | "s32" | "u64" | "f32" | "f64") => Add,
        ("min", "u32" | "s32" | "u64" | "s64") => Min,
        ("max", "u32" | "s32" | "u64" | "s64") => Max, ("and", "b32" | "b64") => And,
        ("or", "b32" | "b64") => Or, ("xor", "b32" | "b64") => Xor,
        ("exch", "b32" | "b64") => Exchange, ("cas", "b32" | "b64") => CompareAndSwap,
        ("inc", "u32") => Increment, ("dec", "u32") => Decrement,
    })
}

fn atom(body: &mut Coder, parts: &[&str]) -> Decoded {
    let (order, space, op, typed) = modifiers(parts).ok_or(Refusal::Unknown)?;
    let (d, address, b, c) = if op == Atomic::CompareAndSwap {
        let [d, address, b, c] = body.exactly()?;
        (d, address, b, c)
    } else {
        let [d, address, b] = body.exactly()?;
        (d, address, b, b)
    };
    let d = body.optional(d, typed)?;
    let address = body.address(address, space)?;
    let (b, c) = (body.source(b, typed)?, body.source(c, typed)?);
    Ok(Op::Atomic { op, space, order, ty: typed.ty, d, address, b, c })
}

fn red(body: &mut Coder, parts: &[&str]) -> Decoded {
    let (order, space, op, typed) = modifiers(parts).ok_or(Refusal::Unknown)?;
    if matches!(op, Atomic::Exchange | Atomic::CompareAndSwap)
        || !matches!(order, Order::Relaxed | Order::Release)
    {
        return Err(Refusal::Unknown);
    }
    let [address, b] = body.exactly()?;
    let address = body.address(address, space)?;
    let b = body.source(b, typed)?;
    Ok(Op::Atomic { op, space, order, ty: typed.ty, d: None, address, b, c: b })
}
