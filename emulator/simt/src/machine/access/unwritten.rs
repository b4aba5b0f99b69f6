//! Values that come from shared memory that nothing has written, followed until they have an
//! effect.
//!
//! CUDA allows a thread to read shared memory that nothing has written, and the value is arbitrary.
//! Such a read alone is no mistake: a kernel may load more than it needs, and select the part that
//! is valid afterwards. It becomes a mistake when the value has an effect: when it decides what is
//! executed, when it is an address, or when it is stored where the launch's result is.
//!
//! So these values are followed, lane by lane, through registers, shuffles, local and shared
//! memory. `Unwritten` maps each register and each word of local memory to the read that its value
//! comes from, and a read holds the report that its use causes. Before an instruction executes,
//! `flow` computes the sources of its results from the sources of its operands. If the instruction
//! uses such a value, `flow` returns the read instead. After the instruction, `follow` records the
//! sources of the results.
//!
//! A result has a source if one of its operands has, unless a known predicate selects another
//! operand. A shuffle takes the source of the lane that it reads. Votes, reductions and matrix
//! products give the same source to all lanes. A store to shared memory marks the place with the
//! read, so that a thread that loads it continues from there.
//!
//! Only a warp that has read an unwritten place follows values, until it holds none. All other
//! warps pay no more than a test for each instruction. Tested by `reports.ptx` in `tests/cases`.

use std::sync::Arc;

use super::moved::addresses;
use crate::isa::{
    Address, Bank, Base, Instruction, LOCAL_WINDOW, Logic, Op, PARAMETER_WINDOW, SHARED_WINDOW,
    Slot, Space, Vector,
};
use crate::machine::lanes::source;
use crate::machine::state::{
    ALL, Lanes, NONE, Place, Registers, Run, Scratch, Sources, Unwritten, actor,
};
use crate::memory::shared::FirstRead;
use crate::report::{Fault, ReportKind, lanes as each};

/// The effect of an instruction on values that nothing has written.
pub(crate) struct Flow {
    /// The sources of each register that the instruction writes.
    results: Vec<((Bank, Slot), Sources)>,
    /// The lanes that execute the instruction.
    lanes: u32,
    /// The lanes that store such a value to shared memory, each with the read that gave it.
    shared: Vec<(usize, Arc<FirstRead>)>,
}

impl Unwritten {
    /// Records that a lane reads into a register what nothing has written.
    fn note(&mut self, register: (Bank, Slot), lane: usize, pc: u32, read: Arc<FirstRead>) {
        let next = self.reads.len() as u32;
        let number = *self.numbers.entry((pc, lane)).or_insert(next);
        match self.reads.get_mut(number as usize) {
            Some(before) => *before = read,
            None => self.reads.push(read),
        }
        self.fresh.push((register, lane, number + 1));
    }

    /// Computes the effect of an instruction that has not been executed yet.
    ///
    /// # Errors
    ///
    /// Returns the read if the instruction uses the value that it gave.
    pub(crate) fn flow(
        &mut self,
        r: &Registers,
        at: Lanes,
        instruction: &Instruction,
    ) -> Result<Flow, Arc<FirstRead>> {
        let [reads, writes] = instruction.slots();
        if let Some(guard) = instruction.guard {
            self.unused(at.path, &self.of(Bank::Predicate, guard.predicate))?;
        }
        let active = at.active;
        let mut flow = Flow { results: Vec::new(), lanes: active, shared: Vec::new() };
        let all = |sources: Sources| writes.iter().map(|&write| (write, sources)).collect();
        match instruction.op {
            Op::Select { ty, d, a, b, predicate } => {
                let bank = if ty.is_wide() { Bank::Long } else { Bank::Word };
                let chosen = self.of(Bank::Predicate, predicate);
                let (a, b) = (self.of(bank, a), self.of(bank, b));
                let holds = r.predicate(predicate);
                let sources = by_lane(|i| match chosen[i] {
                    0 if holds >> i & 1 == 1 => a[i],
                    0 => b[i],
                    source => source,
                });
                flow.results.push(((bank, d), sources));
            }
            Op::Predicate { op, d, a, b } => {
                let of = |slot| (self.of(Bank::Predicate, slot), r.predicate(slot));
                flow.results.push(((Bank::Predicate, d), combined(op, of(a), of(b))));
            }
            Op::SetPredicate { ty, d, complement, combine, a, b, .. } => {
                let bank = if ty.is_wide() { Bank::Long } else { Bank::Word };
                let mut sources = either(&self.of(bank, a), &self.of(bank, b));
                if let Some((op, guard)) = combine {
                    let other = (self.of(Bank::Predicate, guard.predicate), r.guard(guard));
                    // Where it has a source, the comparison is unknown and must not decide.
                    sources = combined(op, (sources, if op == Logic::Or { 0 } else { ALL }), other);
                }
                flow.results.push(((Bank::Predicate, d), sources));
                flow.results.extend(complement.map(|d| ((Bank::Predicate, d), sources)));
            }
            Op::Shuffle { op, d, valid, a, b, c, mask } => {
                for slot in [b, c, mask] {
                    self.unused(active, &self.of(Bank::Word, slot))?;
                }
                let (a, from, clamp) = (self.of(Bank::Word, a), r.words(b), r.words(c));
                let from = |i: usize| source(op, i as u32, from[i], clamp[i]);
                let sources = by_lane(|i| a[from(i).map_or(i, |from| from as usize & 31)]);
                flow.results.push(((Bank::Word, d), sources));
                flow.results.extend(valid.map(|d| ((Bank::Predicate, d), NONE)));
            }
            // The factors belong to the product behind this instruction.
            Op::Factors { .. } => self.factors = self.of_all(&reads),
            Op::Vote { .. }
            | Op::Ballot { .. }
            | Op::Elect { .. }
            | Op::Reduce { .. }
            | Op::Match { .. }
            | Op::Multiply { .. }
            | Op::RowsTranspose { .. } => {
                let factors = match instruction.op {
                    Op::Multiply { .. } => std::mem::replace(&mut self.factors, NONE),
                    _ => NONE,
                };
                let sources = either(&self.of_all(&reads), &factors);
                let any = each(active).map(|lane| sources[lane]).find(|&source| source != 0);
                flow.results = all([any.unwrap_or(0); 32]);
            }
            Op::Load { space, address, ty, count, .. } => {
                self.unused(active, &self.of_address(address))?;
                let mut sources = NONE;
                if !self.local.is_empty() {
                    let places = addresses(r, address);
                    let words = u64::from(ty.bytes() * u32::from(count)).div_ceil(4);
                    for lane in each(active) {
                        let Some(word) = local(space, places[lane]) else { continue };
                        let mut found =
                            (word..word + words).map(|word| self.local.get(&(word, lane)));
                        sources[lane] = found.find_map(|found| found.copied()).unwrap_or(0);
                    }
                }
                flow.results = all(sources);
            }
            Op::Store { space, address, ty, count, wide, a, .. } => {
                self.unused(active, &self.of_address(address))?;
                let bank = if wide { Bank::Long } else { Bank::Word };
                let values: Vec<(Bank, Slot)> =
                    a[..usize::from(count)].iter().map(|&slot| (bank, slot)).collect();
                let sources = self.of_all(&values);
                let places = addresses(r, address);
                let words = u64::from(ty.bytes() * u32::from(count)).div_ceil(4);
                for lane in each(active) {
                    if let Some(word) = local(space, places[lane]) {
                        for word in word..word + words {
                            match sources[lane] {
                                0 if ty.bytes() < 4 => None,
                                0 => self.local.remove(&(word, lane)),
                                source => self.local.insert((word, lane), source),
                            };
                        }
                    } else if is_shared(space, places[lane]) {
                        let read = self.read(sources[lane]);
                        flow.shared.extend(read.map(|read| (lane, read.clone())));
                    } else {
                        self.unused(1 << lane, &sources)?;
                    }
                }
            }
            // These instructions do more than write registers.
            op if !op.is_computing() || matches!(op, Op::BulkTarget { .. }) => {
                self.unused(active, &self.of_all(&reads))?;
                flow.results = all(NONE);
            }
            _ => flow.results = all(self.of_all(&reads)),
        }
        Ok(flow)
    }

    /// Records the effect of an executed instruction. Returns whether values are still followed.
    pub(crate) fn follow(&mut self, flow: Option<Box<Flow>>) -> bool {
        if let Some(flow) = flow {
            for (register, sources) in flow.results {
                self.set(register, flow.lanes, |lane| sources[lane]);
            }
        }
        for (register, lane, source) in std::mem::take(&mut self.fresh) {
            self.set(register, 1 << lane, |_| source);
        }
        !self.registers.is_empty() || !self.local.is_empty()
    }

    fn set(&mut self, register: (Bank, Slot), lanes: u32, source: impl Fn(usize) -> u32) {
        let mut all = self.of(register.0, register.1);
        each(lanes).for_each(|lane| all[lane] = source(lane));
        if all == NONE {
            self.registers.remove(&register);
        } else {
            self.registers.insert(register, Box::new(all));
        }
    }

    fn of(&self, bank: Bank, slot: Slot) -> Sources {
        self.registers.get(&(bank, slot)).map_or(NONE, |sources| **sources)
    }

    fn of_all(&self, registers: &[(Bank, Slot)]) -> Sources {
        registers.iter().fold(NONE, |all, &(bank, slot)| either(&all, &self.of(bank, slot)))
    }

    fn of_address(&self, address: Address) -> Sources {
        match address.base {
            Base::Zero => NONE,
            Base::Word(slot) => self.of(Bank::Word, slot),
            Base::Long(slot) => self.of(Bank::Long, slot),
        }
    }

    /// Returns the read if one of these lanes holds an unwritten value.
    fn unused(&self, lanes: u32, sources: &Sources) -> Result<(), Arc<FirstRead>> {
        match each(lanes).find_map(|lane| self.read(sources[lane])) {
            Some(read) => Err(read.clone()),
            None => Ok(()),
        }
    }

    fn read(&self, source: u32) -> Option<&Arc<FirstRead>> {
        self.reads.get((source as usize).checked_sub(1)?)
    }
}

fn by_lane(source: impl Fn(usize) -> u32) -> Sources {
    std::array::from_fn(source)
}

fn either(a: &Sources, b: &Sources) -> Sources {
    by_lane(|i| if a[i] == 0 { b[i] } else { a[i] })
}

/// Combines the sources of two predicates, each with its values. Where one predicate is known and
/// decides the result, the other does not matter.
fn combined(op: Logic, (a, x): (Sources, u32), (b, y): (Sources, u32)) -> Sources {
    let decides = |value: u32, i: usize| match op {
        Logic::And => value >> i & 1 == 0,
        Logic::Or => value >> i & 1 == 1,
        Logic::Xor => false,
    };
    by_lane(|i| match (a[i], b[i]) {
        (0, _) if decides(x, i) => 0,
        (_, 0) if decides(y, i) => 0,
        (0, source) | (source, _) => source,
    })
}

/// Returns the word of local memory that an access begins at, or `None` in another space.
fn local(space: Space, address: u64) -> Option<u64> {
    match space {
        Space::Local => Some(address / 4),
        Space::Generic if (LOCAL_WINDOW..PARAMETER_WINDOW).contains(&address) => {
            Some((address - LOCAL_WINDOW) / 4)
        }
        _ => None,
    }
}

fn is_shared(space: Space, address: u64) -> bool {
    let is_window = (SHARED_WINDOW..LOCAL_WINDOW).contains(&address);
    space == Space::Shared || space == Space::Generic && is_window
}

impl Run<'_> {
    /// Loads shared memory of which a part has not been written. The unwritten values become zeros,
    /// and are followed.
    #[cold]
    pub(crate) fn load_unwritten(
        &mut self,
        r: &mut Registers,
        scratch: &mut Scratch<'_>,
        place: &Place,
        shape: Vector,
        (addresses, lanes): (&[u64; 32], u32),
        fault: Box<Fault>,
    ) -> Result<(), Box<Fault>> {
        if fault.kind != ReportKind::Uninitialized {
            return Err(fault);
        }
        let bank = if shape.wide { Bank::Long } else { Bank::Word };
        for lane in each(lanes) {
            let whole = self.load_shared(r, scratch, place, shape, (addresses, 1 << lane));
            let Err(fault) = whole else { continue };
            if fault.kind != ReportKind::Uninitialized {
                return Err(fault);
            }
            let Fault { lanes, message, .. } = *fault;
            let (warp, pc) = (place.warp, place.pc);
            let read = Arc::new(FirstRead { warp, lanes, pc, message });
            // Some values of a vector may have been written.
            for number in 0..usize::from(shape.count) {
                let slot = shape.slots[number];
                let one = Vector { count: 1, slots: [slot; 4], ..shape };
                let at = addresses[lane] + u64::from(shape.ty.bytes()) * number as u64;
                let found = self.load_shared(r, scratch, place, one, (&[at; 32], 1 << lane));
                match found {
                    Ok(()) => {}
                    Err(fault) if fault.kind == ReportKind::Uninitialized => {
                        let (offset, bytes) = (at as u32, shape.ty.bytes());
                        let actor = actor(place, lane, shape.order);
                        if let Err(found) = scratch.shared.note_unwritten(offset, bytes, actor) {
                            return self.shared_fault(found, "reads", bytes, offset, lane);
                        }
                        r.set_lane(slot, shape.wide, lane, 0);
                        let handed_on = scratch.shared.origin(offset, bytes);
                        let unwritten = scratch.unwritten.get_or_insert_default();
                        unwritten.note((bank, slot), lane, pc, handed_on.unwrap_or(read.clone()));
                    }
                    Err(fault) => return Err(fault),
                }
            }
        }
        Ok(())
    }

    /// Follows the values of a warp that holds unwritten ones, after an instruction has executed.
    #[cold]
    pub(crate) fn follow(
        &self,
        r: &Registers,
        scratch: &mut Scratch<'_>,
        flow: Option<Box<Flow>>,
        instruction: &Instruction,
    ) {
        if let (Some(flow), Op::Store { address, ty, count, .. }) = (&flow, instruction.op)
            && !flow.shared.is_empty()
        {
            let places = addresses(r, address);
            for (lane, read) in &flow.shared {
                let (offset, bytes) = (places[*lane] as u32, ty.bytes() * u32::from(count));
                scratch.shared.leave_unwritten(offset, bytes, read);
            }
        }
        let Some(unwritten) = scratch.unwritten else { return };
        if !unwritten.follow(flow) {
            *scratch.unwritten = None;
        }
    }
}
