//! Asynchronous copies: `cp.async` to shared memory, and `cp.async.bulk`, which also copies from
//! shared to global memory.
//!
//! `cp.async` reads the data when the copy begins, and writes it when its group has been waited
//! for. In between, the place in shared memory is pending, and a thread that reads it is reported.
//!
//! A bulk copy into shared memory reads and writes the data when it begins, and notifies its
//! mbarrier of the bytes at once. The place is pending until the mbarrier's phase is over. A bulk
//! copy out of shared memory is complete when it begins. That its source must stay unchanged for a
//! while is not checked, and neither is `fence.proxy.async`. Tested by `copies.rs` in
//! `tests/suite`, and by `copies.ptx` in `tests/cases`.

use super::mbarrier::Operation;
use super::moved::addresses;
use crate::isa::{Address, Instruction, Op, Order, Slot, Space};
use crate::machine::state::{Copies, Lanes, Next, Pending, Place, Registers, Run, Scratch, actor};
use crate::report::{Copied, Count, ReportKind, Result, What, fault, lanes as each, uncounted};

/// The operands of a `cp.async`.
#[derive(Clone, Copy)]
pub(crate) struct Copy {
    pub(crate) to: Address,
    pub(crate) from: Address,
    pub(crate) bytes: u32,
    /// The number of bytes that are read; the rest becomes zero.
    pub(crate) source_bytes: Option<Slot>,
}

const COPIES: &str = "copies";

impl Run<'_> {
    pub(crate) fn copy_async(
        &mut self,
        r: &Registers,
        scratch: &mut Scratch<'_>,
        place: &Place,
        copy: Copy,
        lanes: u32,
    ) -> Result<()> {
        let bytes = copy.bytes;
        let (to, from) = (addresses(r, copy.to), addresses(r, copy.from));
        self.aligned_in(Space::Global, &from, lanes, bytes, COPIES)?;
        self.aligned_in(Space::Shared, &to, lanes, bytes, COPIES)?;
        let read: [u32; 32] = std::array::from_fn(|lane| {
            copy.source_bytes.map_or(bytes, |slot| r.words(slot)[lane].min(bytes))
        });
        // A lane that only writes zeros makes no request to global memory.
        let asking = each(lanes).filter(|&lane| read[lane] > 0).map(|lane| 1 << lane).sum();
        if asking != 0 {
            self.count(place, Space::Global, &from, asking, bytes);
            let zeros: u32 = each(asking).map(|lane| bytes - read[lane]).sum();
            self.tally.traffic[place.pc as usize].bytes -= u64::from(zeros);
        }
        for lane in each(lanes) {
            let offset = self.in_shared(scratch, &to, lane, lanes, bytes, COPIES)?;
            let value = self.part(place, from[lane], read[lane], lane)?;
            let expected = scratch.shared.expect(offset, bytes, actor(place, lane, Order::Weak));
            if let Err(found) = expected {
                return self.shared_fault(found, COPIES, bytes, offset, lane);
            }
            self.account.room(&mut scratch.copies.pending, "copies in flight")?;
            scratch.copies.pending.push(Pending { lane, group: None, offset, bytes, value });
        }
        // The event is boxed, and allocates as much as three values of all lanes.
        let what = || What::Copy(Box::new(Copied { bytes, read, from, to }));
        self.trace_lanes(place, lanes, 3, what)
    }

    /// Reads the first `bytes` of 16 bytes; the others are zeros.
    fn part(&mut self, place: &Place, address: u64, bytes: u32, lane: usize) -> Result<[u32; 4]> {
        let mut value = [0; 4];
        for i in 0..bytes {
            // The bytes behind the last whole word are read one by one.
            if i % 4 == 0 && i + 4 <= bytes {
                let word = self.read(place, Order::Weak, address + u64::from(i), 4, lane)?;
                value[(i / 4) as usize] = word[0];
            } else if i / 4 == bytes / 4 {
                let byte = self.read(place, Order::Weak, address + u64::from(i), 1, lane)?;
                value[(i / 4) as usize] |= (byte[0] & 0xff) << (8 * (i % 4));
            }
        }
        Ok(value)
    }

    /// Executes `cp.async.commit_group`.
    pub(crate) fn commit_group(
        &mut self,
        _: &mut Registers,
        scratch: &mut Scratch<'_>,
        _: &Place,
        lanes: u32,
    ) -> Result<()> {
        let Copies { pending, committed } = &mut *scratch.copies;
        for copy in pending.iter_mut().filter(|copy| lanes >> copy.lane & 1 == 1) {
            copy.group.get_or_insert(committed[copy.lane]);
        }
        each(lanes).for_each(|lane| committed[lane] += 1);
        Ok(())
    }

    /// Executes `cp.async.wait_group` for all groups but the last `newest`, or for all copies.
    pub(crate) fn wait_group(
        &mut self,
        _: &mut Registers,
        scratch: &mut Scratch<'_>,
        place: &Place,
        newest: Option<u32>,
        lanes: u32,
    ) -> Result<()> {
        let (Copies { pending, committed }, shared) = (&mut *scratch.copies, &mut *scratch.shared);
        pending.retain(|copy| {
            let due = match (newest, copy.group) {
                (None, _) => true,
                (Some(newest), Some(group)) => group + u64::from(newest) < committed[copy.lane],
                (Some(_), None) => false,
            };
            if due && lanes >> copy.lane & 1 == 1 {
                let actor = actor(place, copy.lane, Order::Weak);
                shared.arrive(copy.offset, copy.bytes, copy.value, actor);
                return false;
            }
            true
        });
        Ok(())
    }

    /// Copies from global memory to the place and mbarrier of the instruction before this one.
    pub(crate) fn copy_in(
        &mut self,
        r: &mut Registers,
        scratch: &mut Scratch<'_>,
        place: &Place,
        at: Lanes,
        from: Address,
        bytes: Slot,
    ) -> Result<Next> {
        let lanes = at.active;
        let before = (place.pc as usize).checked_sub(1);
        let before = before.and_then(|pc| self.launch.kernel.code.get(pc));
        let Some(&Instruction { op: Op::BulkTarget { to, mbarrier }, .. }) = before else {
            return Ok(Next::Step);
        };
        let (to, from, mbarriers) = (addresses(r, to), addresses(r, from), addresses(r, mbarrier));
        self.aligned_in(Space::Global, &from, lanes, 16, COPIES)?;
        self.aligned_in(Space::Shared, &to, lanes, 16, COPIES)?;
        let verb = Operation::BULK;
        self.aligned_in(Space::Shared, &mbarriers, lanes, 8, verb)?;
        if place.warp_epoch == u32::MAX {
            return uncounted("barriers of a warp", lanes);
        }
        for lane in each(lanes) {
            let bytes = self.whole(r.words(bytes)[lane], lane)?;
            let offset = self.in_shared(scratch, &to, lane, 1 << lane, bytes, COPIES)?;
            let mbarrier = self.in_shared(scratch, &mbarriers, lane, 1 << lane, 8, verb)?;
            let actor = actor(place, lane, Order::Weak);
            for i in (0..bytes).step_by(16) {
                let address = from[lane].wrapping_add(i.into());
                let value = self.read(place, Order::Weak, address, 16, lane)?;
                if let Err(found) = scratch.shared.expect(offset + i, 16, actor) {
                    return self.shared_fault(found, COPIES, 16, offset + i, lane);
                }
                scratch.shared.put_down(offset + i, value);
            }
            self.count_bulk(place, from[lane], bytes);
            let notified = scratch.shared.notify(mbarrier, offset, bytes, actor);
            self.notified(scratch, place, notified, mbarrier, lane)?;
        }
        scratch.shared.part(place.warp, place.warp_epoch);
        self.progress = true;
        Ok(Next::WarpBarrier)
    }

    /// Copies from shared to global memory.
    pub(crate) fn copy_out(
        &mut self,
        r: &Registers,
        scratch: &mut Scratch<'_>,
        place: &Place,
        (to, from, bytes): (Address, Address, Slot),
        lanes: u32,
    ) -> Result<()> {
        let (to, from) = (addresses(r, to), addresses(r, from));
        self.aligned_in(Space::Global, &to, lanes, 16, COPIES)?;
        self.aligned_in(Space::Shared, &from, lanes, 16, COPIES)?;
        for lane in each(lanes) {
            let bytes = self.whole(r.words(bytes)[lane], lane)?;
            let offset = self.in_shared(scratch, &from, lane, 1 << lane, bytes, COPIES)?;
            let actor = actor(place, lane, Order::Weak);
            for i in (0..bytes).step_by(16) {
                let read = scratch.shared.read::<4>(offset + i, 16, actor);
                let value = match read {
                    Ok(value) => value,
                    Err(found) => return self.shared_fault(found, COPIES, 16, offset + i, lane),
                };
                let address = to[lane].wrapping_add(i.into());
                self.write(place, Order::Weak, address, 16, value, lane)?;
            }
            self.count_bulk(place, to[lane], bytes);
        }
        self.progress = true;
        Ok(())
    }

    fn whole(&self, bytes: u32, lane: usize) -> Result<u32> {
        if bytes.is_multiple_of(16) {
            return Ok(bytes);
        }
        let message = format!("copies {} in bulk: it takes a multiple of 16", Count(bytes, "byte"));
        fault(ReportKind::Misaligned, 1 << lane, message)
    }

    /// Counts one request, with the sectors of its range.
    fn count_bulk(&mut self, place: &Place, address: u64, bytes: u32) {
        let traffic = &mut self.tally.traffic[place.pc as usize];
        let end = address.wrapping_add(bytes.into());
        traffic.requests += 1;
        traffic.bytes += u64::from(bytes);
        traffic.sectors += end.div_ceil(32).saturating_sub(address / 32);
    }
}
