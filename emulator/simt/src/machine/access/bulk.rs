//! Bulk copies: `cp.async.bulk` between global and shared memory, of one thread and any number of
//! bytes.
//!
//! Into shared memory, the data is read and put down when the copy begins, and an mbarrier is told
//! of its bytes at once; the place counts as pending until the mbarrier's phase is over, and
//! whoever accesses it before is told so. Out of shared memory, all is done when the copy begins:
//! that its source must stay as it is for a while, and `fence.proxy.async`, are not looked at.

use super::mbarrier::Operation;
use super::moved::{addresses, aligned};
use crate::isa::{Address, Instruction, Op, Order, Slot, Space};
use crate::machine::state::{Lanes, Next, Place, Registers, Run, Scratch, actor};
use crate::report::{Count, ReportKind, Result, fault, lanes as each, uncounted};

const COPIES: &str = "copies";

impl Run<'_> {
    /// From global memory to the place, and for the mbarrier, that the instruction before says.
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
        aligned(&from, lanes, 16, COPIES, || self.what(Space::Global, &from, lanes, 16))?;
        aligned(&to, lanes, 16, COPIES, || self.what(Space::Shared, &to, lanes, 16))?;
        let verb = Operation::BULK;
        aligned(&mbarriers, lanes, 8, verb, || self.what(Space::Shared, &mbarriers, lanes, 8))?;
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
            let told = scratch.shared.told(mbarrier, offset, bytes, actor);
            self.told(scratch, place, told, mbarrier, lane)?;
        }
        scratch.shared.part(place.warp, place.warp_epoch);
        self.progress = true;
        Ok(Next::WarpBarrier)
    }

    /// From shared to global memory.
    pub(crate) fn copy_out(
        &mut self,
        r: &Registers,
        scratch: &mut Scratch<'_>,
        place: &Place,
        (to, from, bytes): (Address, Address, Slot),
        lanes: u32,
    ) -> Result<()> {
        let (to, from) = (addresses(r, to), addresses(r, from));
        aligned(&to, lanes, 16, COPIES, || self.what(Space::Global, &to, lanes, 16))?;
        aligned(&from, lanes, 16, COPIES, || self.what(Space::Shared, &from, lanes, 16))?;
        for lane in each(lanes) {
            let bytes = self.whole(r.words(bytes)[lane], lane)?;
            let offset = self.in_shared(scratch, &from, lane, 1 << lane, bytes, COPIES)?;
            let actor = actor(place, lane, Order::Weak);
            for i in (0..bytes).step_by(16) {
                let value = match scratch.shared.read::<4>(offset + i, 16, actor) {
                    Ok(value) => value,
                    Err(found) => {
                        return self.shared_fault(found, COPIES, 16, offset + i, lane);
                    }
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

    /// One request, of the sectors that lie there.
    fn count_bulk(&mut self, place: &Place, address: u64, bytes: u32) {
        let traffic = &mut self.tally.traffic[place.pc as usize];
        let end = address.wrapping_add(bytes.into());
        traffic.requests += 1;
        traffic.bytes += u64::from(bytes);
        traffic.sectors += end.div_ceil(32).saturating_sub(address / 32);
    }
}
