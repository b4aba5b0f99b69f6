//! Atomic operations and fences.

use std::cell::Cell;

use super::global::writable;
use super::local::no_parameter;
use super::moved::{addresses, in_spaces};
use crate::isa::{Address, Atomic, Order, Slot, Space, Type};
use crate::machine::arithmetic::{float, half};
use crate::machine::state::{Lanes, Next, Place, Registers, Run, Scratch, actor};
use crate::memory::global::{self, Named, Word};
use crate::memory::order::Access;
use crate::report::{ReportKind, Result, fault, lanes as each};

/// An `atom` or `red` instruction. The old value goes to `d`.
#[derive(Clone, Copy)]
pub(crate) struct Operation {
    pub(crate) op: Atomic,
    pub(crate) space: Space,
    pub(crate) order: Order,
    pub(crate) ty: Type,
    pub(crate) d: Option<Slot>,
    pub(crate) b: Slot,
    pub(crate) c: Slot,
}

impl Run<'_> {
    /// Executes the operation lane by lane, the lowest first; on a GPU the order is open.
    pub(crate) fn atomic(
        &mut self,
        r: &mut Registers,
        scratch: &mut Scratch<'_>,
        place: &Place,
        at: Lanes,
        operation: Operation,
        address: Address,
    ) -> Result<Next> {
        let (Operation { ty, d, b, c, .. }, lanes) = (operation, at.active);
        let (bytes, wide) = (ty.bytes(), ty.is_wide());
        let all = addresses(r, address);
        // An operation that leaves everything as it was is no progress: a loop may try a lock that
        // is taken.
        let changed = Cell::new(false);
        in_spaces(operation.space, &all, lanes, |space, addresses, lanes| {
            self.aligned_in(space, addresses, lanes, bytes, "updates")?;
            self.count(place, space, addresses, lanes, bytes);
            for lane in each(lanes) {
                let (b, c) = (r.lane(b, wide, lane), r.lane(c, wide, lane));
                let new = |old| {
                    let value = combine(operation.op, ty, space, old, b, c);
                    changed
                        .set(changed.get() | (value as u32 != old as u32 || wide && value != old));
                    value
                };
                let old = match space {
                    Space::Global | Space::Generic | Space::Constant => {
                        self.atomic_global(place, operation, addresses[lane], lane, new)?
                    }
                    Space::Shared => {
                        let offset =
                            self.in_shared(scratch, addresses, lane, lanes, bytes, "updates")?;
                        let actor = actor(place, lane, Order::Relaxed);
                        let update = |[low, high]: [u32; 2]| {
                            let old = u64::from(low) | u64::from(high) << 32;
                            (old, [new(old) as u32, (new(old) >> 32) as u32])
                        };
                        let narrow = |[old]: [u32; 1]| (old.into(), [new(old.into()) as u32]);
                        let done = match wide {
                            true => scratch.shared.update(offset, bytes, actor, update),
                            false => scratch.shared.update(offset, bytes, actor, narrow),
                        };
                        let old = match done {
                            Ok(old) => old,
                            Err(found) => {
                                return self.shared_fault(found, "updates", bytes, offset, lane);
                            }
                        };
                        let access = Access::of(place.pc, operation.order, [true, true]);
                        self.hand(scratch, place, access, (offset, bytes), lane)?;
                        old
                    }
                    Space::Parameter => return no_parameter("updates", addresses, lanes),
                    Space::Local => {
                        let message = "updates local memory atomically".to_string();
                        return fault(ReportKind::OutOfBounds, 1 << lane, message);
                    }
                };
                if let Some(d) = d {
                    r.set_lane(d, wide, lane, old);
                }
            }
            Ok(())
        })?;
        self.progress |= changed.get();
        let releases = matches!(operation.order, Order::Release | Order::AcquireRelease);
        match releases && scratch.shared.follows() {
            true => self.behind(scratch, place, lanes),
            false => Ok(Next::Step),
        }
    }

    fn atomic_global(
        &mut self,
        place: &Place,
        operation: Operation,
        address: u64,
        lane: usize,
        new: impl Fn(u64) -> u64,
    ) -> Result<u64> {
        let bytes = operation.ty.bytes();
        let (buffer, offset) = self.locate(address, bytes, lane, "updates")?;
        writable((buffer, offset), bytes, lane, "updates")?;
        let words = &self.page(buffer, offset, lane)?[global::word_in_page(offset)..];
        let words = &words[..bytes.div_ceil(4) as usize];
        let first = (offset % 4) as usize;
        let written = global::mask(first, bytes.min(4) as usize);
        if words.iter().any(|word| word.get(written).is_err()) {
            let message = format!(
                "updates {bytes} bytes at offset {offset} of {}, which nothing has written",
                Named(buffer)
            );
            return fault(ReportKind::Uninitialized, 1 << lane, message);
        }
        let does = ([true, true], "updates");
        self.ordered(place, operation.order, does, (address, bytes), buffer, lane)?;
        let [low, rest @ ..] = words else { return Ok(0) };
        let Some(high) = rest.first() else {
            // The other bytes of the word stay.
            let (shift, part) = (8 * first, global::byte_mask(written));
            let replaced = |old: u32| {
                let new = new(u64::from(old & part) >> shift) as u32;
                old & !part | new << shift & part
            };
            return Ok(u64::from(low.update(replaced) & part) >> shift);
        };
        let _alone = self.wide.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let word = |word: &Word| u64::from(word.get(0xf).unwrap_or(0));
        let old = word(low) | word(high) << 32;
        let new = new(old);
        low.put(new as u32, 0xf);
        high.put((new >> 32) as u32, 0xf);
        Ok(old)
    }
}

/// Returns the new value.
fn combine(op: Atomic, ty: Type, space: Space, old: u64, b: u64, c: u64) -> u64 {
    match (op, ty) {
        (Atomic::Add, Type::F32) => {
            // Adders of global memory flush subnormal numbers, adders of shared memory do not.
            let flush = |x: f32| match space {
                Space::Global if x.is_subnormal() => 0.0_f32.copysign(x),
                _ => x,
            };
            let [old, b] = [old, b].map(|bits| flush(f32::from_bits(bits as u32)));
            float::bits32(flush(old + b)).into()
        }
        (Atomic::Add, Type::F64) => float::bits64(f64::from_bits(old) + f64::from_bits(b)),
        (Atomic::Add, _) if ty.is_float() => half::sum(ty, old as u32, b as u32).into(),
        (Atomic::Add, _) => old.wrapping_add(b),
        (Atomic::Min, Type::S32) => (old as i32).min(b as i32) as u32 as u64,
        (Atomic::Max, Type::S32) => (old as i32).max(b as i32) as u32 as u64,
        (Atomic::Min, Type::S64) => (old as i64).min(b as i64) as u64,
        (Atomic::Max, Type::S64) => (old as i64).max(b as i64) as u64,
        (Atomic::Min, _) => old.min(b),
        (Atomic::Max, _) => old.max(b),
        (Atomic::And, _) => old & b,
        (Atomic::Or, _) => old | b,
        (Atomic::Xor, _) => old ^ b,
        (Atomic::Exchange, _) => b,
        (Atomic::CompareAndSwap, _) if old == b => c,
        (Atomic::CompareAndSwap, _) => old,
        (Atomic::Increment, _) if old >= b => 0,
        (Atomic::Increment, _) => old + 1,
        (Atomic::Decrement, _) if old == 0 || old > b => b,
        (Atomic::Decrement, _) => old - 1,
    }
}
