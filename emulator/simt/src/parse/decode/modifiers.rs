//! Modifiers that several families have in common.

use crate::isa::{Compare, Order, Round, Space, Type};

/// `.rn`, `.rz`, `.rm`, `.rp`: how a float result is rounded.
pub(super) fn round(name: &str) -> Option<Round> {
    Some(match name {
        "rn" => Round::Nearest,
        "rz" => Round::Zero,
        "rm" => Round::Down,
        "rp" => Round::Up,
        _ => return None,
    })
}

/// `.rni`, `.rzi`, `.rmi`, `.rpi`: how a float becomes an integer.
pub(super) fn round_to_integer(name: &str) -> Option<Round> {
    name.strip_suffix('i').and_then(round)
}

/// Comparisons that all types have.
pub(super) fn compare(name: &str) -> Option<Compare> {
    Some(match name {
        "eq" => Compare::Eq,
        "ne" => Compare::Ne,
        "lt" => Compare::Lt,
        "le" => Compare::Le,
        "gt" => Compare::Gt,
        "ge" => Compare::Ge,
        _ => return None,
    })
}

/// A state space that is loaded from and stored to.
pub(super) fn space(name: &str) -> Option<Space> {
    Some(match name {
        "global" => Space::Global,
        "shared" | "shared::cta" => Space::Shared,
        "local" => Space::Local,
        _ => return None,
    })
}

pub(super) fn is_scope(name: &str) -> bool {
    matches!(name, "cta" | "gpu" | "sys")
}

/// `.relaxed`, `.acquire` and so on.
pub(super) fn order(name: &str) -> Option<Order> {
    Some(match name {
        "relaxed" => Order::Relaxed,
        "acquire" => Order::Acquire,
        "release" => Order::Release,
        "acq_rel" => Order::AcquireRelease,
        _ => return None,
    })
}

/// The modifiers of an opcode, taken one after the other in the order that PTX has them.
#[derive(Debug)]
pub(super) struct Rest<'p>(pub(super) &'p [&'p str]);

impl<'p> Rest<'p> {
    /// Takes the next modifier if it means something here.
    pub(super) fn take<T>(&mut self, meaning: impl Fn(&str) -> Option<T>) -> Option<T> {
        let (first, rest) = self.0.split_first()?;
        let found = meaning(first)?;
        self.0 = rest;
        Some(found)
    }

    /// Takes the next modifier if it is one of these.
    pub(super) fn accept(&mut self, names: &[&str]) -> bool {
        self.take(|name| names.contains(&name).then_some(())).is_some()
    }

    /// Takes `.ftz`, if it is next and the type has it, and gives the type of the operation.
    pub(super) fn flushed(&mut self, ty: Type) -> Type {
        match ty {
            Type::F32 if self.accept(&["ftz"]) => Type::F32Ftz,
            Type::F16 if self.accept(&["ftz"]) => Type::F16Ftz,
            Type::F16x2 if self.accept(&["ftz"]) => Type::F16x2Ftz,
            _ => ty,
        }
    }
}
