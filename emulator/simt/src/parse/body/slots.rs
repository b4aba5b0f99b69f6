//! Slots for the registers of a kernel: one for each register that is used, and one for each value
//! of a constant or special register.

use std::collections::HashMap;
use std::sync::Arc;

use crate::isa::{Bank, Preset, Register, Slot, Special};
use crate::parse::source::types::Class;

/// A value that a slot holds from the start of a warp to its end.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Constant {
    Word(u32),
    Long(u64),
    Predicate(bool),
    Special(Special),
    /// The address of a variable in device memory, plus `offset` bytes.
    Global {
        variable: u32,
        offset: i64,
    },
    /// An offset from the beginning of dynamic shared memory, which is known when all static
    /// variables have been placed.
    Dynamic {
        offset: i64,
        wide: bool,
    },
    /// An offset from a shared variable that is placed when the kernel is linked; 64 bits.
    Shared {
        offset: i64,
        variable: Shared,
    },
    /// The beginning of a function's frame.
    Frame,
}

#[derive(Debug, Default)]
pub(crate) struct Slots {
    counts: [u32; 3],
    constants: HashMap<Constant, Slot>,
    presets: Vec<Preset>,
    /// The registers, if their names are saved.
    pub(crate) registers: Option<Vec<Register>>,
    /// Presets with a value that is added when the kernel is linked.
    late: Vec<(usize, Late)>,
}

impl Slots {
    pub(crate) fn new(named: bool) -> Slots {
        Slots { registers: named.then(Vec::new), ..Slots::default() }
    }

    pub(crate) fn allocate(&mut self, bank: Bank) -> Result<Slot, String> {
        let count = &mut self.counts[bank as usize];
        let slot = Slot::try_from(*count).ok().filter(|&slot| slot < Slot::MAX);
        *count += 1;
        slot.ok_or_else(|| format!("more than {} registers of one size", Slot::MAX))
    }

    /// Returns a new slot for a register.
    pub(crate) fn register(&mut self, class: Class, name: &str) -> Result<Slot, String> {
        let slot = self.allocate(class.bank())?;
        if let Some(registers) = &mut self.registers {
            let (name, ty, bank) = (name.into(), class.name(), class.bank());
            registers.push(Register { name, ty, bank, slot, live: 0..0 });
        }
        Ok(slot)
    }

    /// Returns the slot of a constant, the same for equal values.
    pub(crate) fn constant(&mut self, constant: Constant) -> Result<Slot, String> {
        if let Some(&slot) = self.constants.get(&constant) {
            return Ok(slot);
        }
        let bank = match constant {
            Constant::Word(_) | Constant::Special(_) | Constant::Dynamic { wide: false, .. } => {
                Bank::Word
            }
            Constant::Long(_)
            | Constant::Global { .. }
            | Constant::Dynamic { wide: true, .. }
            | Constant::Shared { .. }
            | Constant::Frame => Bank::Long,
            Constant::Predicate(_) => Bank::Predicate,
        };
        let slot = self.allocate(bank)?;
        self.constants.insert(constant.clone(), slot);
        self.presets.push(match constant {
            Constant::Word(value) => Preset::Word { slot, value },
            Constant::Long(value) => Preset::Long { slot, value },
            Constant::Predicate(value) => Preset::Predicate { slot, value },
            Constant::Special(which) => Preset::Special { slot, which },
            Constant::Global { variable, offset } => Preset::Global { slot, variable, offset },
            Constant::Dynamic { offset, wide: false } => {
                Preset::Word { slot, value: offset as u32 }
            }
            Constant::Dynamic { offset, wide: true } | Constant::Shared { offset, .. } => {
                Preset::Long { slot, value: offset as u64 }
            }
            Constant::Frame => Preset::Frame { slot },
        });
        let late = match constant {
            Constant::Dynamic { .. } => Late::Dynamic,
            Constant::Shared { variable, .. } => Late::Shared(variable),
            _ => return Ok(slot),
        };
        self.late.push((self.presets.len() - 1, late));
        Ok(slot)
    }

    /// Returns the number of slots of a bank in use.
    pub(crate) fn count(&self, bank: Bank) -> u32 {
        self.counts[bank as usize]
    }

    /// Returns the initial values of slots, and the values that are added to them at linking.
    pub(crate) fn presets(self) -> (Vec<Preset>, Vec<(usize, Late)>) {
        (self.presets, self.late)
    }
}

/// A value that is known when a kernel has been linked.
#[derive(Debug, Clone)]
pub(crate) enum Late {
    /// The beginning of dynamic shared memory.
    Dynamic,
    /// The place of a shared variable that a function uses.
    Shared(Shared),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Shared {
    pub(crate) id: usize,
    pub(crate) align: u32,
    pub(crate) bytes: u32,
    pub(crate) name: Arc<str>,
}
