//! The parts that several families share: an instruction during decoding, and modifiers.

use std::ops::{Deref, DerefMut};

use super::refusal::Refusal;
use crate::isa::{Binary, Compare, Op, Order, Round, Slot, Space, Ternary, Type, Unary};
use crate::parse::body::state::Body;
use crate::parse::source::cursor::Parsed;
use crate::parse::source::statement::{Atom, Operand};
use crate::parse::source::types::Typed;

/// The result of decoding an instruction.
pub(super) type Decoded = Result<Op, Refusal>;

/// The operands of an instruction, and the kernel or function that contains it.
pub(super) struct Coder<'d, 'c, 's> {
    pub(super) body: &'d mut Body<'c, 's>,
    pub(super) operands: &'d [Operand<'s>],
}

impl<'c, 's> Deref for Coder<'_, 'c, 's> {
    type Target = Body<'c, 's>;

    fn deref(&self) -> &Body<'c, 's> {
        self.body
    }
}

impl DerefMut for Coder<'_, '_, '_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.body
    }
}

impl<'d, 's> Coder<'d, '_, 's> {
    /// Returns the operands if there are exactly `N`.
    pub(super) fn exactly<const N: usize>(&self) -> Parsed<&'d [Operand<'s>; N]> {
        self.operands.try_into().map_err(|_| self.not(N))
    }

    /// Returns the slots of all operands: a destination and `N` sources of these types.
    pub(super) fn slots<const N: usize>(
        &mut self,
        d: Typed,
        sources: [Typed; N],
    ) -> Parsed<(Slot, [Slot; N])> {
        let [first, operands @ ..] = self.operands else { return Err(self.not(N + 1)) };
        if operands.len() != N {
            return Err(self.not(N + 1));
        }
        let (d, mut slots) = (self.destination(first, d)?, [0; N]);
        for (slot, (operand, typed)) in slots.iter_mut().zip(operands.iter().zip(sources)) {
            *slot = self.source(operand, typed)?;
        }
        Ok((d, slots))
    }

    /// Returns an instruction without operands.
    pub(super) fn plain(&self, op: Op) -> Decoded {
        let [] = self.exactly()?;
        Ok(op)
    }

    /// Returns the instruction of an operation on one operand of the type, with its result.
    pub(super) fn unary(&mut self, op: Unary, ty: Type, typed: Typed, result: Typed) -> Decoded {
        let (d, [a]) = self.slots(result, [typed])?;
        Ok(Op::Unary { op, ty, d, a })
    }

    /// Returns the instruction of an operation whose first operand has the type of the result.
    pub(super) fn binary(&mut self, op: Binary, ty: Type, typed: Typed, second: Typed) -> Decoded {
        let (d, [a, b]) = self.slots(typed, [typed, second])?;
        Ok(Op::Binary { op, ty, d, a, b })
    }

    /// Returns the instruction of an operation on three operands of the result's type.
    pub(super) fn ternary(&mut self, op: Ternary, typed: Typed) -> Decoded {
        let (d, [a, b, c]) = self.slots(typed, [typed; 3])?;
        Ok(Op::Ternary { op, ty: typed.ty, d, a, b, c })
    }

    /// Returns the register for a result, or `None` for `_`.
    pub(super) fn optional(&mut self, operand: &Operand<'s>, typed: Typed) -> Parsed<Option<Slot>> {
        match operand {
            Operand::Atom(Atom::Name("_")) => Ok(None),
            _ => self.destination(operand, typed).map(Some),
        }
    }

    fn not(&self, count: usize) -> String {
        format!("it takes {count} operands, not {}", self.operands.len())
    }
}

/// Reads `.rn`, `.rz`, `.rm` or `.rp`: the rounding of a float result.
pub(super) fn round(name: &str) -> Option<Round> {
    named!(name, Round { "rn" => Nearest, "rz" => Zero, "rm" => Down, "rp" => Up })
}

/// Reads `.rni`, `.rzi`, `.rmi` or `.rpi`: the rounding of a float to an integer.
pub(super) fn round_to_integer(name: &str) -> Option<Round> {
    name.strip_suffix('i').and_then(round)
}

/// Reads a comparison that all types have.
pub(super) fn compare(name: &str) -> Option<Compare> {
    named!(name, Compare { "eq" => Eq, "ne" => Ne, "lt" => Lt, "le" => Le, "gt" => Gt, "ge" => Ge })
}

/// Reads a state space of loads and stores.
pub(super) fn space(name: &str) -> Option<Space> {
    named!(name, Space { "global" => Global, "shared" | "shared::cta" => Shared, "local" => Local })
}

pub(super) fn is_scope(name: &str) -> bool {
    matches!(name, "cta" | "gpu" | "sys")
}

/// Reads the sign of an integer of 32 bits.
pub(super) fn is_signed(name: &str) -> Option<bool> {
    match name {
        "u32" => Some(false),
        "s32" => Some(true),
        _ => None,
    }
}

/// Reads `.relaxed`, `.acquire` and so on.
pub(super) fn order(name: &str) -> Option<Order> {
    named!(name, Order {
        "relaxed" => Relaxed, "acquire" => Acquire, "release" => Release,
        "acq_rel" => AcquireRelease,
    })
}

/// The modifiers of an opcode that are not consumed yet, in the order of PTX.
#[derive(Debug)]
pub(super) struct Rest<'p>(pub(super) &'p [&'p str]);

impl<'p> Rest<'p> {
    /// Consumes the next modifier if it has a meaning here.
    pub(super) fn take<T>(&mut self, meaning: impl Fn(&str) -> Option<T>) -> Option<T> {
        let (first, rest) = self.0.split_first()?;
        let found = meaning(first)?;
        self.0 = rest;
        Some(found)
    }

    /// Consumes the next modifier if it is one of these names. Returns true if it was.
    pub(super) fn accept(&mut self, names: &[&str]) -> bool {
        self.take(|name| names.contains(&name).then_some(())).is_some()
    }

    /// Consumes `.ftz` if it is next and the type has it. Returns the type of the operation.
    pub(super) fn flushed(&mut self, ty: Type) -> Type {
        match ty {
            Type::F32 if self.accept(&["ftz"]) => Type::F32Ftz,
            Type::F16 if self.accept(&["ftz"]) => Type::F16Ftz,
            Type::F16x2 if self.accept(&["ftz"]) => Type::F16x2Ftz,
            _ => ty,
        }
    }
}
