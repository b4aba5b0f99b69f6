//! Calls of functions, and returns.
//!
//! Every lane has its own stack, because lanes may call and return at different times. A call
//! copies its arguments from the caller's frame to the callee's frame, which begins where the
//! caller's frame ends. A return copies the results back.

use super::state::{Lanes, Next, Place, Registers, Run, Scratch};
use crate::isa::{Call, Callee, Function, Passed, Saved, Slot};
use crate::report::{ReportKind, Result, bytes_of, fault, lanes as each};

/// The most bytes of local memory that the frames of a thread take, and the most bytes of registers
/// that its calls save. The driver limits local memory in the same way.
const MOST_BYTES: u64 = 512 << 10;

impl Run<'_> {
    /// Sends the lanes to the called function, or each lane to the function of its pointer.
    pub(crate) fn call(
        &mut self,
        r: &mut Registers,
        scratch: &mut Scratch<'_>,
        place: &Place,
        at: Lanes,
        site: u32,
        target: Option<Slot>,
    ) -> Result<Next> {
        let kernel = self.launch.kernel;
        let call = &kernel.calls[site as usize];
        let pointers = match (call.callee, target) {
            (Callee::Function(number), _) => {
                let function = &kernel.functions[number as usize];
                self.enter(r, scratch, site, function, at.active)?;
                return Ok(Next::Branch(function.entry));
            }
            (Callee::System(system), _) => {
                let frames = call.frame.map_or([0; 32], |slot| *r.longs(slot));
                self.call_system(scratch, place, at, call, frames, system)?;
                return Ok(Next::Step);
            }
            (Callee::Pointer, target) => target.map_or([0; 32], |slot| *r.longs(slot)),
        };
        let (mut targets, mut rest) = (Box::new([0; 32]), at.active);
        while rest != 0 {
            let first = rest.trailing_zeros() as usize;
            let lanes = each(rest).filter(|&lane| pointers[lane] == pointers[first]);
            let lanes = lanes.fold(0, |lanes, lane| lanes | 1 << lane);
            let function = pointed_to(&kernel.functions, call, pointers[first], lanes)?;
            self.enter(r, scratch, site, function, lanes)?;
            each(lanes).for_each(|lane| targets[lane] = function.entry);
            rest &= !lanes;
        }
        Ok(Next::Scatter(targets))
    }

    /// Makes a frame for a function in the given lanes, and copies the arguments into it.
    fn enter(
        &mut self,
        r: &mut Registers,
        scratch: &mut Scratch<'_>,
        site: u32,
        function: &Function,
        lanes: u32,
    ) -> Result<()> {
        let call = &self.launch.kernel.calls[site as usize];
        let callers = call.frame.map_or([0; 32], |slot| *r.longs(slot));
        let frames = callers.map(|caller| caller.wrapping_add(call.frame_bytes.into()));
        let deepest = each(lanes).map(|lane| frames[lane]).max().unwrap_or_default();
        let end = deepest.saturating_add(function.frame_bytes.into());
        if end > MOST_BYTES {
            return too_deep(function, lanes);
        }
        let words = end.div_ceil(4) as usize * 32;
        if scratch.local.len() < words {
            if scratch.local.capacity() < words {
                let count = words.max(scratch.local.capacity().saturating_mul(2));
                self.account.room_for(scratch.local, count, "the local memory of functions")?;
            }
            scratch.local.resize(words, 0);
        }
        if scratch.stack.lanes.is_empty() {
            self.account.room_for(&mut scratch.stack.lanes, 32, "calls")?;
            scratch.stack.lanes.resize_with(32, Vec::new);
        }
        for lane in each(lanes) {
            for (from, to) in call.arguments.iter().zip(&function.params) {
                copy(scratch.local, lane, (callers[lane], *from), (frames[lane], *to));
            }
            let stack = &mut scratch.stack.lanes[lane];
            let words = call.saved.map_or(0, Saved::words);
            if bytes_of::<u32>((stack.len() + words + 1) as u64) > MOST_BYTES {
                return too_deep(function, lanes);
            }
            if stack.len() + words + 1 > stack.capacity() {
                let count = (stack.len() + words + 1).max(stack.capacity().saturating_mul(2));
                self.account.room_for(stack, count, "calls")?;
            }
            if let Some(saved) = call.saved {
                saved.save(r, lane, stack);
            }
            stack.push(site);
        }
        r.set_longs(function.frame, lanes, |lane| frames[lane]);
        Ok(())
    }

    /// Returns from a function: each lane goes back to where it was called from.
    pub(crate) fn come_back(
        &mut self,
        r: &mut Registers,
        scratch: &mut Scratch<'_>,
        _: &Place,
        at: Lanes,
        function: u32,
    ) -> Result<Next> {
        let active = at.active;
        let kernel = self.launch.kernel;
        let function = &kernel.functions[function as usize];
        let frames = *r.longs(function.frame);
        let mut targets = [0; 32];
        for lane in each(active) {
            let stack = scratch.stack.lanes.get_mut(lane);
            let Some((stack, site)) = stack.and_then(|stack| stack.pop().map(|site| (stack, site)))
            else {
                debug_assert!(false, "a function is entered by calls only");
                continue;
            };
            let call = &kernel.calls[site as usize];
            let caller = frames[lane].wrapping_sub(call.frame_bytes.into());
            if let Some(saved) = call.saved {
                saved.restore(r, lane, stack);
            }
            for (from, to) in function.returns.iter().zip(&call.returns) {
                if let Some(to) = to {
                    copy(scratch.local, lane, (frames[lane], *from), (caller, *to));
                }
            }
            targets[lane] = call.back;
        }
        let first = targets[active.trailing_zeros() as usize % 32];
        if each(active).all(|lane| targets[lane] == first) {
            return Ok(Next::Branch(first));
        }
        Ok(Next::Scatter(Box::new(targets)))
    }
}

/// Returns the function that a pointer points to, if its parameters and results fit the call.
fn pointed_to<'f>(
    functions: &'f [Function],
    call: &Call,
    pointer: u64,
    lanes: u32,
) -> Result<&'f Function> {
    let number = Function::at(pointer);
    let found =
        number.and_then(|number| functions.binary_search_by_key(&number, |f| f.number).ok());
    let Some(index) = found else {
        let message = match number {
            Some(_) => "calls a function through a pointer that the emulator does not execute",
            None => "calls what is no function",
        };
        return fault(ReportKind::Call, lanes, format!("{message}, at address {pointer:#x}"));
    };
    let function = &functions[index];
    match call.mismatch(&function.params, &function.returns) {
        None => Ok(function),
        Some(what) => {
            let message = format!("calls `{}` through a pointer, and {what}", function.name);
            fault(ReportKind::Call, lanes, message)
        }
    }
}

#[cold]
fn too_deep(function: &Function, lanes: u32) -> Result<()> {
    let message = format!(
        "calls `{}` with more than {MOST_BYTES} bytes of the thread's local memory: calls are nested too deep",
        function.name
    );
    fault(ReportKind::Call, lanes, message)
}

/// Copies a value of a lane between frames. Both values begin at a word and fill whole words.
fn copy(local: &mut [u32], lane: usize, from: (u64, Passed), to: (u64, Passed)) {
    let place = |(frame, passed): (u64, Passed)| {
        (frame.wrapping_add(passed.offset.into()) / 4) as usize * 32 + lane
    };
    let words = from.1.bytes.min(to.1.bytes).div_ceil(4) as usize;
    let (from, to) = (place(from), place(to));
    for i in (0..words).map(|word| 32 * word) {
        let value = local.get(from + i).copied().unwrap_or_default();
        if let Some(word) = local.get_mut(to + i) {
            *word = value;
        }
    }
}

impl Saved {
    fn counts(self) -> [usize; 3] {
        std::array::from_fn(|i| usize::from(self.ends[i] - self.begins[i]))
    }

    /// Returns the number of words that a lane's saved registers take. A predicate takes one word.
    fn words(self) -> usize {
        let [words, longs, predicates] = self.counts();
        words + 2 * longs + predicates
    }

    fn save(self, r: &Registers, lane: usize, stack: &mut Vec<u32>) {
        let slots = |bank: usize| self.begins[bank]..self.ends[bank];
        stack.extend(slots(0).map(|slot| r.words(slot)[lane]));
        for slot in slots(1) {
            let value = r.longs(slot)[lane];
            stack.extend([value as u32, (value >> 32) as u32]);
        }
        stack.extend(slots(2).map(|slot| r.predicate(slot) >> lane & 1));
    }

    fn restore(self, r: &mut Registers, lane: usize, stack: &mut Vec<u32>) {
        let slots = |bank: usize| (self.begins[bank]..self.ends[bank]).rev();
        let mut pop = || stack.pop().unwrap_or_default();
        for slot in slots(2) {
            r.set_predicate(slot, 1 << lane, pop() << lane);
        }
        for slot in slots(1) {
            let (high, low) = (pop(), pop());
            r.set_lane(slot, true, lane, u64::from(high) << 32 | u64::from(low));
        }
        for slot in slots(0) {
            r.set_lane(slot, false, lane, pop().into());
        }
    }
}
