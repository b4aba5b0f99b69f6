//! The state of a kernel or a function while it is read: its code so far, and its slots.

use std::collections::HashMap;
use std::sync::Arc;

use super::context::Context;
use super::names::{Pending, Register};
use super::slots::Slots;
use super::unit::{MOST_LOCAL, Unit};
use crate::isa::{Address, Bank, Base, Guard, Instruction, Kernel, Op, Place, Slot};
use crate::parse::source::types::Class;

const MOST_INSTRUCTIONS: usize = 1 << 20;
/// The least alignment of dynamic shared memory: the widest access.
const DYNAMIC_ALIGN: u32 = 16;

/// A kernel or a function while it is read.
#[derive(Debug)]
pub(crate) struct Body<'c, 's> {
    pub(crate) context: &'c mut Context<'s>,
    pub(crate) slots: Slots,
    /// The parts that have been read.
    pub(crate) unit: Unit,
    /// The slot with the beginning of a function's frame, through which it accesses local memory.
    pub(crate) frame: Option<Slot>,
    /// The registers with a function's results, and their places in the frame.
    pub(crate) results: Vec<(Register, u32)>,
    /// Instructions to emit before the next one, for operands that are not registers.
    pub(crate) preceded_by: Vec<Op>,
    /// Instructions to emit after the next one, where one operation does not express it.
    pub(crate) followed_by: Vec<Op>,
    pub(crate) sinks: [Option<Slot>; 2],
    pub(crate) carry: Option<Slot>,
    pub(crate) scratch_predicates: Option<[Slot; 2]>,
    pub(crate) source: Option<(u16, u32)>,
    pub(crate) labelled_end: bool,
    /// The last label, if no instruction follows it yet.
    pub(crate) last_label: Option<&'s str>,
    /// Lists of labels that no branch has used, by the label before each list.
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

    /// Returns a slot for a value between two operations of one instruction.
    pub(crate) fn scratch(&mut self) -> Result<Slot, String> {
        self.sink(false)
    }

    /// Returns a slot for values that nothing reads: `_` in a vector.
    pub(crate) fn sink(&mut self, wide: bool) -> Result<Slot, String> {
        if let Some(slot) = self.sinks[usize::from(wide)] {
            return Ok(slot);
        }
        let slot = self.slots.allocate(if wide { Bank::Long } else { Bank::Word })?;
        self.sinks[usize::from(wide)] = Some(slot);
        Ok(slot)
    }

    /// Returns predicates for values between the operations of one instruction.
    pub(crate) fn scratch_predicates(&mut self) -> Result<[Slot; 2], String> {
        if let Some(slots) = self.scratch_predicates {
            return Ok(slots);
        }
        let mut allocate = || self.slots.allocate(Bank::Predicate);
        let slots = [allocate()?, allocate()?];
        Ok(*self.scratch_predicates.insert(slots))
    }

    /// Returns the predicate of the carry flag.
    pub(crate) fn carry(&mut self) -> Result<Slot, String> {
        match self.carry {
            Some(slot) => Ok(slot),
            None => Ok(*self.carry.insert(self.slots.allocate(Bank::Predicate)?)),
        }
    }

    /// Returns the operation of `ret`: the exit of a kernel, or the return of a function.
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
        // The number of the function is set when the kernel is linked.
        Op::Return { function: 0 }
    }

    /// Allocates local memory, of the kernel or in the function's frame; returns the offset.
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

    /// Returns an address in the frame.
    pub(crate) fn in_frame(&self, offset: i64) -> Address {
        Address { base: self.frame.map_or(Base::Zero, Base::Long), offset }
    }

    /// Returns a branch to a label, whose target is set when the block ends.
    pub(crate) fn branch(&mut self, label: &'s str, uniform: bool) -> Op {
        self.context.names.branch(Pending { label, instruction: self.unit.kernel.code.len() });
        Op::Branch { target: 0, uniform }
    }

    /// Records an arithmetic instruction of floats without a rounding modifier.
    pub(crate) fn note_unrounded(&mut self, opcode: &str) {
        let line = self.context.cursor.line();
        self.context.unrounded.push((line, Arc::from(opcode)));
    }
}
