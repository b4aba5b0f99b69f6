//! The registers of a warp: arrays of 32 lanes in three banks, for words, longs and predicates.
//!
//! An instruction computes all lanes and writes the active ones, because a loop over 32 lanes
//! without a branch becomes vector instructions of the host's processor. For the same reason a mask
//! is compared with the bits of the lanes instead of being shifted. The slots of constants and
//! special registers are filled when a warp starts, so that an instruction reads every operand in
//! the same way. Every test of an instruction in `tests/suite` goes through these registers.

use crate::isa::{Guard, Kernel, Preset, Slot, Special};
use crate::report::{Result, bytes_of, refill};

/// A 32-bit register, with a value for every lane.
pub(crate) type Words = [u32; 32];
/// A 64-bit register, with a value for every lane.
pub(crate) type Longs = [u64; 32];

/// The mask of a full warp.
pub(crate) const ALL: u32 = u32::MAX;

/// The bit of each lane. A mask is compared with these bits instead of being shifted by the lane,
/// because the vectors of every processor can compare several lanes at once.
pub(crate) const BITS: Words = {
    let (mut bits, mut lane) = ([0; 32], 0);
    while lane < 32 {
        bits[lane] = 1 << lane;
        lane += 1;
    }
    bits
};

#[derive(Debug, Clone, Default)]
pub(crate) struct Registers {
    words: Vec<Words>,
    longs: Vec<Longs>,
    predicates: Vec<u32>,
}

/// The values of a warp's special registers.
pub(crate) struct Identity<'a> {
    pub(crate) block: [u32; 3],
    pub(crate) grid: [u32; 3],
    pub(crate) threads: [u32; 3],
    pub(crate) warp: u32,
    pub(crate) warps: u32,
    pub(crate) dynamic_shared: u32,
    pub(crate) total_shared: u32,
    /// The addresses of the module's variables, if the kernel uses any.
    pub(crate) globals: &'a [u64],
    /// The address of the workspace of a cooperative launch, or 0.
    pub(crate) workspace: u64,
}

impl Registers {
    /// Returns the bytes of host memory that the registers of a kernel take.
    pub(crate) fn bytes(kernel: &Kernel) -> u64 {
        let [words, longs, predicates] = kernel.slots.map(u64::from);
        bytes_of::<Words>(words) + bytes_of::<Longs>(longs) + bytes_of::<u32>(predicates)
    }

    /// Returns the bytes of host memory that the registers hold.
    pub(crate) fn held(&self) -> u64 {
        bytes_of::<Words>(self.words.capacity() as u64)
            + bytes_of::<Longs>(self.longs.capacity() as u64)
            + bytes_of::<u32>(self.predicates.capacity() as u64)
    }

    /// Sets all registers to zero, then fills the slots of constants and special registers.
    pub(crate) fn reset(&mut self, kernel: &Kernel, identity: &Identity<'_>) -> Result<()> {
        let [words, longs, predicates] = kernel.slots.map(|count| count as usize);
        refill(&mut self.words, words, [0; 32], "registers")?;
        refill(&mut self.longs, longs, [0; 32], "registers")?;
        refill(&mut self.predicates, predicates, 0, "registers")?;
        for preset in &kernel.presets {
            match *preset {
                Preset::Word { slot, value } => self.words[slot as usize] = [value; 32],
                Preset::Long { slot, value } => self.longs[slot as usize] = [value; 32],
                Preset::Predicate { slot, value } => {
                    self.predicates[slot as usize] = if value { ALL } else { 0 };
                }
                Preset::Frame { .. } => {}
                Preset::Global { slot, variable, offset } => {
                    let start = identity.globals.get(variable as usize).copied();
                    let address = start.unwrap_or_default().wrapping_add_signed(offset);
                    self.longs[slot as usize] = [address; 32];
                }
                Preset::Special { slot, which } => {
                    self.words[slot as usize] =
                        std::array::from_fn(|lane| identity.special(which, lane as u32));
                }
            }
        }
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn words(&self, slot: Slot) -> &Words {
        &self.words[slot as usize]
    }

    #[inline(always)]
    pub(crate) fn longs(&self, slot: Slot) -> &Longs {
        &self.longs[slot as usize]
    }

    #[inline(always)]
    pub(crate) fn predicate(&self, slot: Slot) -> u32 {
        self.predicates[slot as usize]
    }

    /// Returns the lanes in which a guard holds.
    #[inline(always)]
    pub(crate) fn guard(&self, guard: Guard) -> u32 {
        let mask = self.predicate(guard.predicate);
        if guard.negated { !mask } else { mask }
    }

    /// Sets a 32-bit register in the given lanes. `value` is called for all lanes, so that the
    /// compiler can use vector instructions; it must not panic for any of them.
    #[inline(always)]
    pub(crate) fn set_words(&mut self, slot: Slot, lanes: u32, value: impl Fn(usize) -> u32) {
        set(&mut self.words[slot as usize], lanes, value);
    }

    /// Sets a 64-bit register in the given lanes. `value` is called for all lanes, so that the
    /// compiler can use vector instructions; it must not panic for any of them.
    #[inline(always)]
    pub(crate) fn set_longs(&mut self, slot: Slot, lanes: u32, value: impl Fn(usize) -> u64) {
        set(&mut self.longs[slot as usize], lanes, value);
    }

    /// Sets a 32-bit register in the given lanes. `value` gets the lane and the operands' values
    /// there. It is called for all lanes, and must not panic for any of them.
    #[inline(always)]
    pub(crate) fn words_of<const N: usize>(
        &mut self,
        d: Slot,
        lanes: u32,
        operands: [Slot; N],
        value: impl Fn(usize, [u32; N]) -> u32,
    ) {
        set_of(&mut self.words, d, lanes, operands, value);
    }

    /// Sets a 64-bit register in the given lanes. `value` gets the lane and the operands' values
    /// there. It is called for all lanes, and must not panic for any of them.
    #[inline(always)]
    pub(crate) fn longs_of<const N: usize>(
        &mut self,
        d: Slot,
        lanes: u32,
        operands: [Slot; N],
        value: impl Fn(usize, [u64; N]) -> u64,
    ) {
        set_of(&mut self.longs, d, lanes, operands, value);
    }

    /// Sets a predicate in the given lanes, from a mask of all lanes.
    #[inline(always)]
    pub(crate) fn set_predicate(&mut self, slot: Slot, lanes: u32, mask: u32) {
        let predicate = &mut self.predicates[slot as usize];
        *predicate = *predicate & !lanes | mask & lanes;
    }

    /// Returns one lane of a register, as 64 bits.
    #[inline(always)]
    pub(crate) fn lane(&self, slot: Slot, wide: bool, lane: usize) -> u64 {
        if wide { self.longs(slot)[lane] } else { self.words(slot)[lane].into() }
    }

    /// Returns all lanes of a register, as 64 bits each.
    #[inline(always)]
    pub(crate) fn lanes(&self, slot: Slot, wide: bool) -> Longs {
        std::array::from_fn(|lane| self.lane(slot, wide, lane))
    }

    #[inline(always)]
    pub(crate) fn set_lane(&mut self, slot: Slot, wide: bool, lane: usize, value: u64) {
        if wide {
            self.longs[slot as usize][lane] = value;
        } else {
            self.words[slot as usize][lane] = value as u32;
        }
    }
}

#[inline(always)]
fn set<T: Lane>(register: &mut [T; 32], lanes: u32, value: impl Fn(usize) -> T) {
    if lanes == ALL {
        for (lane, register) in register.iter_mut().enumerate() {
            *register = value(lane);
        }
    } else {
        let mut values = [T::default(); 32];
        for (lane, result) in values.iter_mut().enumerate() {
            *result = value(lane);
        }
        put(register, lanes, &values);
    }
}

/// Sets a register from others of its bank. All operands are read before the register is written,
/// so the register may be one of them without a copy. The loop takes four lanes at a time, because
/// the compiler then uses vector instructions even for the shortest operations.
#[inline(always)]
fn set_of<T: Lane, const N: usize>(
    bank: &mut [[T; 32]],
    d: Slot,
    lanes: u32,
    operands: [Slot; N],
    value: impl Fn(usize, [T; N]) -> T,
) {
    const AT_ONCE: usize = 4;
    let mut values = [T::default(); 32];
    for first in (0..32).step_by(AT_ONCE) {
        let mut parts = [[T::default(); AT_ONCE]; N];
        for (part, slot) in parts.iter_mut().zip(operands) {
            part.copy_from_slice(&bank[slot as usize][first..first + AT_ONCE]);
        }
        for i in 0..AT_ONCE {
            values[first + i] = value(first + i, std::array::from_fn(|k| parts[k][i]));
        }
    }
    let register = &mut bank[d as usize];
    if lanes == ALL {
        *register = values;
    } else {
        put(register, lanes, &values);
    }
}

/// The value of a lane.
pub(crate) trait Lane: Copy + Default {
    /// Returns `new` where the mask is all ones, and `self` where it is 0.
    fn or(self, new: Self, mask: u32) -> Self;
}

impl Lane for u32 {
    #[inline(always)]
    fn or(self, new: u32, mask: u32) -> u32 {
        self & !mask | new & mask
    }
}

impl Lane for u64 {
    #[inline(always)]
    fn or(self, new: u64, mask: u32) -> u64 {
        let mask = u64::from(mask) << 32 | u64::from(mask);
        self & !mask | new & mask
    }
}

/// The masks of four lanes, for each pattern of their bits. Vector instructions select by them.
static MASKS: [[u32; 4]; 16] = {
    let (mut masks, mut bits) = ([[0; 4]; 16], 0);
    while bits < 64 {
        if (bits / 4) >> (bits % 4) & 1 == 1 {
            masks[bits / 4][bits % 4] = u32::MAX;
        }
        bits += 1;
    }
    masks
};

/// Sets a register in some lanes. It is not inlined, so that it is compiled once.
#[inline(never)]
pub(crate) fn put<T: Lane>(register: &mut [T; 32], lanes: u32, values: &[T; 32]) {
    for (k, (register, values)) in
        register.chunks_exact_mut(4).zip(values.chunks_exact(4)).enumerate()
    {
        let masks = &MASKS[(lanes >> (4 * k)) as usize % 16];
        for i in 0..4 {
            register[i] = register[i].or(values[i], masks[i]);
        }
    }
}

impl Identity<'_> {
    fn special(&self, which: Special, lane: u32) -> u32 {
        let [x, y, _] = self.threads;
        let thread = self.warp * 32 + lane;
        match which {
            Special::Tid(0) => thread % x,
            Special::Tid(1) => thread / x % y,
            Special::Tid(_) => thread / x / y,
            Special::Ntid(axis) => self.threads[usize::from(axis.min(2))],
            Special::Ctaid(axis) => self.block[usize::from(axis.min(2))],
            Special::Nctaid(axis) => self.grid[usize::from(axis.min(2))],
            Special::LaneId => lane,
            Special::WarpId => self.warp,
            Special::WarpCount => self.warps,
            Special::WarpSize => 32,
            Special::LaneMask(compare) => {
                use crate::isa::Compare::*;
                let (own, below) = (1 << lane, (1 << lane) - 1);
                match compare {
                    Eq => own,
                    Ne => !own,
                    Lt => below,
                    Le => below | own,
                    Gt => !(below | own),
                    Ge => !below,
                    Always => ALL,
                    Never => 0,
                }
            }
            Special::DynamicShared => self.dynamic_shared,
            Special::TotalShared => self.total_shared,
            Special::Reserved(which) => which.value(self.total_shared),
            Special::MultiprocessorCount => 1,
            Special::Environment(1) => (self.workspace >> 32) as u32,
            Special::Environment(2) => self.workspace as u32,
            Special::Multiprocessor | Special::Environment(_) => 0,
        }
    }
}
