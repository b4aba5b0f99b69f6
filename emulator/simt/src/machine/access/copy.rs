//! `cp.async`: copies from global to shared memory that arrive when they are waited for.
//!
//! The data is read when the copy begins and written when its group has been waited for; in between
//! the place in shared memory counts as pending, and whoever reads it is told so.

use super::moved::{addresses, aligned};
use crate::isa::{Address, Order, Slot, Space};
use crate::machine::state::{Copies, Pending, Place, Registers, Run, Scratch, actor};
use crate::report::{Copied, Result, What, lanes as each};

/// One `cp.async`.
#[derive(Clone, Copy)]
pub(crate) struct Copy {
    pub(crate) to: Address,
    pub(crate) from: Address,
    pub(crate) bytes: u32,
    /// Only so many bytes are read; the rest becomes zero.
    pub(crate) source_bytes: Option<Slot>,
}

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
        aligned(&from, lanes, bytes, "copies", || self.what(Space::Global, &from, lanes, bytes))?;
        aligned(&to, lanes, bytes, "copies", || self.what(Space::Shared, &to, lanes, bytes))?;
        let read: [u32; 32] = std::array::from_fn(|lane| {
            copy.source_bytes.map_or(bytes, |slot| r.words(slot)[lane].min(bytes))
        });
        // What only becomes zero is not asked of memory.
        let asking =
            each(lanes).filter(|&lane| read[lane] > 0).fold(0, |all, lane| all | 1 << lane);
        if asking != 0 {
            self.count(place, Space::Global, &from, asking, bytes);
            let zeros: u32 = each(asking).map(|lane| bytes - read[lane]).sum();
            self.tally.traffic[place.pc as usize].bytes -= u64::from(zeros);
        }
        for lane in each(lanes) {
            let offset = self.in_shared(scratch, &to, lane, lanes, bytes, "copies")?;
            let value = self.part(place, from[lane], read[lane], lane)?;
            let expected = scratch.shared.expect(offset, bytes, actor(place, lane, Order::Weak));
            if let Err(found) = expected {
                return self.shared_fault(found, "copies", bytes, offset, lane);
            }
            self.account.room(&mut scratch.copies.pending, "copies in flight")?;
            scratch.copies.pending.push(Pending { lane, group: None, offset, bytes, value });
        }
        // On the heap, in as much room as three values of all lanes.
        let what = || What::Copy(Box::new(Copied { bytes, read, from, to }));
        self.trace_lanes(place, lanes, 3, what)
    }

    /// Up to 16 bytes, of which only the first `bytes` are read.
    fn part(&mut self, place: &Place, address: u64, bytes: u32, lane: usize) -> Result<[u32; 4]> {
        let mut value = [0; 4];
        for i in 0..bytes {
            // Byte by byte where the rest is not a whole word.
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
}

impl Run<'_> {
    /// `cp.async.commit_group`.
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

    /// `cp.async.wait_group newest` (all groups but the last `newest`), or for all copies.
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
}
