//! A kernel or a function in the making: its code so far, and the slots that are its own.

use std::collections::HashMap;
use std::sync::Arc;

use super::context::Context;
use super::names::{Pending, Register};
use super::slots::Slots;
use super::unit::{MOST_LOCAL, Unit};
use crate::isa::{Address, Bank, Base, Guard, Instruction, Kernel, Op, Place, Slot};
use crate::parse::source::types::Class;

const MOST_INSTRUCTIONS: usize = 1 << 20;
/// What dynamic shared memory is aligned to at least: the widest access.
const DYNAMIC_ALIGN: u32 = 16;

/// A kernel or a function in the making.
#[derive(Debug)]
pub(crate) struct Body<'c, 's> {
    pub(crate) context: &'c mut Context<'s>,
    pub(crate) slots: Slots,
    /// What has been read of it.
    pub(crate) unit: Unit,
    /// Of a function, where its frame begins: local memory is reached through it.
    pub(crate) frame: Option<Slot>,
    /// Of a function, the registers that are its results, and where they go in the frame.
    pub(crate) results: Vec<(Register, u32)>,
    /// What an instruction needs before it, where its operands are no registers.
    pub(crate) preceded_by: Vec<Op>,
    /// What an instruction needs to be followed by, where one operation does not express it.
    pub(crate) followed_by: Vec<Op>,
    pub(crate) sinks: [Option<Slot>; 2],
    pub(crate) carry: Option<Slot>,
    pub(crate) scratch_predicates: Option<[Slot; 2]>,
    pub(crate) source: Option<(u16, u32)>,
    pub(crate) labelled_end: bool,
    /// The label that has been read last, if no instruction stands behind it.
    pub(crate) last_label: Option<&'s str>,
    /// Lists of labels, by the label before each, that no branch has used.
    pub(crate) lists: HashMap<&'s str, Vec<&'s str>>,
}

impl<'c, 's> Body<'c, 's> {
    pub(crate) fn new(kernel: Kernel, context: &'c mut Context<'s>) -> Self {
        let named = context.named;
        let unit = Unit { kernel, dynamic_align: DYNAMIC_ALIGN, ..Unit::default() };
        Body {
            context,
            slots: Slots::new(named),
            unit,
            frame: None,
            results: Vec::new(),
            preceded_by: Vec::new(),
            followed_by: Vec::new(),
            sinks: [None; 2],
            carry: None,
            scratch_predicates: None,
            source: None,
            labelled_end: false,
            last_label: None,
            lists: HashMap::new(),
        }
    }

    pub(crate) fn push(
        &mut self,
        guard: Option<Guard>,
        op: Op,
        line: u32,
        opcode: &Arc<str>,
    ) -> Result<(), String> {
        if self.unit.kernel.code.len() == MOST_INSTRUCTIONS {
            return Err(format!("more than {MOST_INSTRUCTIONS} instructions in a kernel"));
        }
        self.labelled_end = false;
        self.unit.kernel.code.push(Instruction { guard, op });
        self.unit.kernel.places.push(Place { line, source: self.source });
        self.unit.kernel.opcodes.push(opcode.clone());
        Ok(())
    }

    /// A slot for a value between two operations of one instruction.
    pub(crate) fn scratch(&mut self) -> Result<Slot, String> {
        self.sink(false)
    }

    /// A slot for values that nobody reads: `_` in a vector.
    pub(crate) fn sink(&mut self, wide: bool) -> Result<Slot, String> {
        if let Some(slot) = self.sinks[usize::from(wide)] {
            return Ok(slot);
        }
        let slot = self.slots.allocate(if wide { Bank::Long } else { Bank::Word })?;
        self.sinks[usize::from(wide)] = Some(slot);
        Ok(slot)
    }

    /// Predicates between the operations of one instruction.
    pub(crate) fn scratch_predicates(&mut self) -> Result<[Slot; 2], String> {
        if let Some(slots) = self.scratch_predicates {
            return Ok(slots);
        }
        let mut allocate = || self.slots.allocate(Bank::Predicate);
        let slots = [allocate()?, allocate()?];
        Ok(*self.scratch_predicates.insert(slots))
    }

    /// The predicate that is the carry flag.
    pub(crate) fn carry(&mut self) -> Result<Slot, String> {
        match self.carry {
            Some(slot) => Ok(slot),
            None => Ok(*self.carry.insert(self.slots.allocate(Bank::Predicate)?)),
        }
    }

    /// `ret`: out of the kernel, or back to where the function was called.
    pub(crate) fn leave(&mut self) -> Op {
        if self.frame.is_none() {
            return Op::Exit {};
        }
        for (register, offset) in std::mem::take(&mut self.results) {
            if let Class::Data(typed) = register.class {
                self.preceded_by.push(self.store_to_frame(typed, register.slot, offset));
            }
            self.results.push((register, offset));
        }
        // Which one it is is known when the kernel is linked.
        Op::Return { function: 0 }
    }

    /// So many bytes of local memory: of the kernel's, or in the function's frame.
    pub(crate) fn room(&mut self, bytes: u32, align: u32) -> Result<u32, String> {
        // Whole words, so that calls can copy them.
        let offset = self.unit.kernel.local_bytes.next_multiple_of(align.max(4));
        let end = offset.checked_add(bytes).filter(|&end| end <= MOST_LOCAL);
        let end = end.and_then(|end| end.checked_next_multiple_of(4));
        self.unit.kernel.local_bytes = end.ok_or_else(|| {
            format!("the variables of local memory take more than {MOST_LOCAL} bytes")
        })?;
        Ok(offset)
    }

    /// An address in the frame.
    pub(crate) fn in_frame(&self, offset: i64) -> Address {
        Address { base: self.frame.map_or(Base::Zero, Base::Long), offset }
    }

    /// A branch to a label: its target is filled in when the block ends.
    pub(crate) fn branch(&mut self, label: &'s str, uniform: bool) -> Op {
        self.context.names.branch(Pending { label, instruction: self.unit.kernel.code.len() });
        Op::Branch { target: 0, uniform }
    }

    /// An addition or the like that does not say how it rounds.
    pub(crate) fn note_unrounded(&mut self, opcode: &str) {
        let line = self.context.cursor.line();
        self.context.unrounded.push((line, Arc::from(opcode)));
    }
}
