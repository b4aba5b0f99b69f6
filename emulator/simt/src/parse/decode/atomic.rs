//! `atom`, `red` and fences.

use super::modifiers::{Rest, is_scope, order, space};
use super::refusal::{Refusal, exactly};
use crate::isa::{Atomic, Op, Order, Scope, Space};
use crate::parse::body::state::Body;
use crate::parse::source::statement::{Atom, Operand};
use crate::parse::source::types::{Typed, any, half};

pub(super) fn decode<'s>(
    body: &mut Body<'_, 's>,
    parts: &[&str],
    operands: &[Operand<'s>],
) -> Result<Op, Refusal> {
    match *parts {
        ["atom", ..] => atom(body, parts, operands),
        ["red", ..] => red(body, parts, operands),
        ["membar", "gl"] | ["fence", "gpu"] => fence(Scope::Device, operands),
        ["membar", "cta" | "sys"] | ["fence", "cta" | "sys"] => fence(scope(parts[1]), operands),
        ["fence", "sc" | "acq_rel", name] if is_scope(name) => fence(scope(name), operands),
        // Accesses by bulk copies are not told from others.
        ["fence", "proxy", "async"]
        | ["fence", "proxy", "async", "global" | "shared::cta" | "shared::cluster"]
        | ["fence", "mbarrier_init", "release", "cluster"] => {
            let [] = exactly(operands)?;
            Ok(Op::Fence { scope: Scope::Block })
        }
        _ => Err(Refusal::Unknown),
    }
}

fn fence(scope: Scope, operands: &[Operand]) -> Result<Op, Refusal> {
    let [] = exactly(operands)?;
    Ok(Op::Fence { scope })
}

/// There is one device, so the system is no more than it.
fn scope(name: &str) -> Scope {
    if name == "cta" { Scope::Block } else { Scope::Device }
}

/// What the modifiers of `atom` and `red` say: `.order.scope.space.operation.type`. NVRTC writes
/// the scope behind the space.
fn modifiers(parts: &[&str]) -> Option<(Order, Space, Atomic, Typed)> {
    // The barrier of a grid in `cooperative_groups` writes the operation first, which ptxas takes.
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
        // It says that subnormal numbers stay, which they do.
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
    Some(match (name, ty) {
        ("add", "u32" | "s32" | "u64" | "f32" | "f64") => Atomic::Add,
        ("min", "u32" | "s32" | "u64" | "s64") => Atomic::Min,
        ("max", "u32" | "s32" | "u64" | "s64") => Atomic::Max,
        ("and", "b32" | "b64") => Atomic::And,
        ("or", "b32" | "b64") => Atomic::Or,
        ("xor", "b32" | "b64") => Atomic::Xor,
        ("exch", "b32" | "b64") => Atomic::Exchange,
        ("cas", "b32" | "b64") => Atomic::CompareAndSwap,
        ("inc", "u32") => Atomic::Increment,
        ("dec", "u32") => Atomic::Decrement,
        _ => return None,
    })
}

fn atom<'s>(
    body: &mut Body<'_, 's>,
    parts: &[&str],
    operands: &[Operand<'s>],
) -> Result<Op, Refusal> {
    let (order, space, op, typed) = modifiers(parts).ok_or(Refusal::Unknown)?;
    let (d, address, b, c) = if op == Atomic::CompareAndSwap {
        let [d, address, b, c] = exactly(operands)?;
        (d, address, b, c)
    } else {
        let [d, address, b] = exactly(operands)?;
        (d, address, b, b)
    };
    let d = match d {
        Operand::Atom(Atom::Name("_")) => None,
        _ => Some(body.destination(d, typed)?),
    };
    let address = body.address(address, space)?;
    let (b, c) = (body.source(b, typed)?, body.source(c, typed)?);
    Ok(Op::Atomic { op, space, order, ty: typed.ty, d, address, b, c })
}

fn red<'s>(
    body: &mut Body<'_, 's>,
    parts: &[&str],
    operands: &[Operand<'s>],
) -> Result<Op, Refusal> {
    let (order, space, op, typed) = modifiers(parts).ok_or(Refusal::Unknown)?;
    if matches!(op, Atomic::Exchange | Atomic::CompareAndSwap)
        || !matches!(order, Order::Relaxed | Order::Release)
    {
        return Err(Refusal::Unknown);
    }
    let [address, b] = exactly(operands)?;
    let address = body.address(address, space)?;
    let b = body.source(b, typed)?;
    Ok(Op::Atomic { op, space, order, ty: typed.ty, d: None, address, b, c: b })
}
