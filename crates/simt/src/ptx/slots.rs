//! The registers of a kernel, dealt out: one slot for each register that is used, one for each
//! constant and special register, however often it occurs.

use std::collections::HashMap;

use super::names::Class;
use super::program::{Preset, Register, Slot, Special};

/// The three kinds of slots, by what fits in one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bank {
    Word,
    Long,
    Predicate,
}

/// What a slot holds from the start of a warp to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Constant {
    Word(u32),
    Long(u64),
    Predicate(bool),
    Special(Special),
    /// The address of a variable in device memory, and so many bytes more.
    Global {
        variable: u32,
        offset: i64,
    },
    /// So far behind the beginning of dynamic shared memory, which is known when all static
    /// variables have been placed.
    Dynamic {
        offset: i64,
        wide: bool,
    },
}

#[derive(Debug, Default)]
pub(super) struct Slots {
    counts: [u32; 3],
    constants: HashMap<Constant, Slot>,
    presets: Vec<Preset>,
    /// The registers, if their names are asked for.
    pub(super) registers: Option<Vec<Register>>,
    /// Presets that the place of dynamic shared memory is to be added to.
    dynamic: Vec<usize>,
}

impl Slots {
    pub(super) fn new(named: bool) -> Slots {
        Slots { registers: named.then(Vec::new), ..Slots::default() }
    }

    pub(super) fn allocate(&mut self, bank: Bank) -> Result<Slot, String> {
        let count = &mut self.counts[bank as usize];
        let slot = Slot::try_from(*count).ok().filter(|&slot| slot < Slot::MAX);
        *count += 1;
        slot.ok_or_else(|| format!("more than {} registers of one size", Slot::MAX))
    }

    /// A slot for a register.
    pub(super) fn register(&mut self, class: Class, name: &str) -> Result<Slot, String> {
        let slot = self.allocate(class.bank())?;
        if let Some(registers) = &mut self.registers {
            let (name, ty, bank) = (name.into(), class.name(), class.bank());
            registers.push(Register { name, ty, bank, slot, live: 0..0 });
        }
        Ok(slot)
    }

    /// The slot that holds the constant.
    pub(super) fn constant(&mut self, constant: Constant) -> Result<Slot, String> {
        if let Some(&slot) = self.constants.get(&constant) {
            return Ok(slot);
        }
        let bank = match constant {
            Constant::Word(_) | Constant::Special(_) | Constant::Dynamic { wide: false, .. } => {
                Bank::Word
            }
            Constant::Long(_) | Constant::Global { .. } | Constant::Dynamic { wide: true, .. } => {
                Bank::Long
            }
            Constant::Predicate(_) => Bank::Predicate,
        };
        let slot = self.allocate(bank)?;
        self.constants.insert(constant, slot);
        self.presets.push(match constant {
            Constant::Word(value) => Preset::Word { slot, value },
            Constant::Long(value) => Preset::Long { slot, value },
            Constant::Predicate(value) => Preset::Predicate { slot, value },
            Constant::Special(which) => Preset::Special { slot, which },
            Constant::Global { variable, offset } => Preset::Global { slot, variable, offset },
            Constant::Dynamic { offset, wide: false } => {
                Preset::Word { slot, value: offset as u32 }
            }
            Constant::Dynamic { offset, wide: true } => Preset::Long { slot, value: offset as u64 },
        });
        if matches!(constant, Constant::Dynamic { .. }) {
            self.dynamic.push(self.presets.len() - 1);
        }
        Ok(slot)
    }

    /// Slots of the bank that have been dealt out.
    pub(super) fn count(&self, bank: Bank) -> u32 {
        self.counts[bank as usize]
    }

    /// What the slots hold at first, now that it is known where dynamic shared memory begins.
    pub(super) fn presets(self, dynamic_shared: u32) -> Vec<Preset> {
        let Slots { mut presets, dynamic, .. } = self;
        for index in dynamic {
            match &mut presets[index] {
                Preset::Word { value, .. } => *value = value.wrapping_add(dynamic_shared),
                Preset::Long { value, .. } => *value = value.wrapping_add(dynamic_shared.into()),
                Preset::Predicate { .. } | Preset::Special { .. } | Preset::Global { .. } => {}
            }
        }
        presets
    }
}
