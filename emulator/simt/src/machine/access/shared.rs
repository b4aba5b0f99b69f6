//! Shared memory as a warp sees it: loads, stores and fences, and the reports of their mistakes.
//!
//! An access is first checked against the size of the block's shared memory. It is then made
//! through `memory::shared`, whose shadow finds races and reads of unwritten bytes. Accesses that
//! synchronise (releases, acquires, atomic operations) also create happens-before edges between
//! threads. `hand` records these in the shadow and, where blocks run together, in the order of
//! global memory, since a release in shared memory orders both. Tested by `races.ptx`,
//! `reports.ptx` and `memory.ptx` in `tests/cases`, and by `transfer.rs` in `tests/suite`.

use super::moved::{Moved, gathered, spread};
use crate::isa::{Order, Scope, Vector};
use crate::machine::state::{ALL, Lanes, Next, Place, Registers, Run, Scratch, actor};
use crate::memory::order::{self, Access, Refused};
use crate::memory::shared::{Actor, Culprit, Fault, Shared};
use crate::report::{Count, ReportKind, Result, fault, lanes as each, uncounted};

/// The purpose of the host memory for synchronising accesses.
const HANDED: &str = "what threads hand to each other in shared memory";

impl Run<'_> {
    pub(crate) fn load_shared(
        &mut self,
        r: &mut Registers,
        scratch: &mut Scratch<'_>,
        place: &Place,
        shape: Vector,
        asked @ (_, lanes): (&[u64; 32], u32),
    ) -> Result<()> {
        match shape.bytes() {
            16 => spread(r, &shape, lanes, &self.read_shared::<4>(scratch, place, shape, asked)?),
            8 => spread(r, &shape, lanes, &self.read_shared::<2>(scratch, place, shape, asked)?),
            _ => spread(r, &shape, lanes, &self.read_shared::<1>(scratch, place, shape, asked)?),
        }
        if shape.order != Order::Weak {
            self.hand_all(scratch, place, shape, [true, false], asked)?;
        }
        Ok(())
    }

    pub(crate) fn store_shared(
        &mut self,
        r: &Registers,
        scratch: &mut Scratch<'_>,
        place: &Place,
        shape: Vector,
        asked: (&[u64; 32], u32),
    ) -> Result<()> {
        match shape.bytes() {
            16 => self.write_shared::<4>(scratch, place, shape, asked, &gathered(r, &shape))?,
            8 => self.write_shared::<2>(scratch, place, shape, asked, &gathered(r, &shape))?,
            _ => self.write_shared::<1>(scratch, place, shape, asked, &gathered(r, &shape))?,
        }
        if shape.order != Order::Weak {
            self.hand_all(scratch, place, shape, [false, true], asked)?;
        }
        Ok(())
    }

    /// Records what the synchronising accesses of several lanes order.
    fn hand_all(
        &mut self,
        scratch: &mut Scratch<'_>,
        place: &Place,
        shape: Vector,
        does: [bool; 2],
        (addresses, lanes): (&[u64; 32], u32),
    ) -> Result<()> {
        let access = Access::of(place.pc, shape.order, does);
        for lane in each(lanes) {
            self.hand(scratch, place, access, (addresses[lane] as u32, shape.bytes()), lane)?;
        }
        Ok(())
    }

    /// Records what a synchronising access of a lane orders. The access has `bytes` bytes at
    /// `offset`.
    pub(crate) fn hand(
        &mut self,
        scratch: &mut Scratch<'_>,
        place: &Place,
        access: Access,
        (offset, bytes): (u32, u32),
        lane: usize,
    ) -> Result<()> {
        if !scratch.shared.follows() {
            return Ok(());
        }
        let actor = actor(place, lane, Order::Relaxed);
        let more = scratch.shared.synchronise(offset, bytes, actor, access.hands());
        self.account.take(more, HANDED)?;
        let Some(order) = &mut self.order else { return Ok(()) };
        let address = order::shared_place(place.unit - place.warp as usize, offset);
        match order.access(&mut self.account, place.unit, address, bytes, access) {
            Err(Refused::Fault(fault)) => Err(fault),
            // This place has only synchronising accesses, which do not race with each other.
            Ok(()) | Err(Refused::Race(_)) => Ok(()),
        }
    }

    /// Executes `membar` and `fence`.
    pub(crate) fn fence(
        &mut self,
        _: &mut Registers,
        scratch: &mut Scratch<'_>,
        place: &Place,
        at: Lanes,
        scope: Scope,
    ) -> Result<Next> {
        if scope == Scope::Device
            && let Some(order) = &mut self.order
        {
            order.fence(&mut self.account, place.unit)?;
        }
        if !scratch.shared.follows() {
            return Ok(Next::Step);
        }
        // Later relaxed accesses may release what the lanes have done and seen.
        let more = scratch.shared.fence(at.active, actor(place, 0, Order::Relaxed));
        self.account.take(more, HANDED)?;
        self.behind(scratch, place, at.active)
    }

    /// Orders the later accesses of the lanes behind what they have released.
    pub(crate) fn behind(
        &mut self,
        scratch: &mut Scratch<'_>,
        place: &Place,
        lanes: u32,
    ) -> Result<Next> {
        if place.warp_epoch == u32::MAX {
            return uncounted("barriers of a warp", lanes);
        }
        scratch.shared.part(place.warp, place.warp_epoch);
        Ok(Next::WarpBarrier)
    }

    #[inline(always)]
    fn read_shared<const W: usize>(
        &self,
        scratch: &mut Scratch<'_>,
        place: &Place,
        shape: Vector,
        (addresses, lanes): (&[u64; 32], u32),
    ) -> Result<Moved<W>> {
        let (bytes, mut moved) = (bytes_in::<W>(shape), [[0; W]; 32]);
        let same = addresses[0] == addresses[31]
            && addresses.iter().all(|address| *address == addresses[0]);
        let end = addresses[0].saturating_add(u64::from(bytes));
        if same && lanes == ALL && bytes >= 4 && end <= u64::from(scratch.shared_bytes) {
            let first = actor(place, 0, shape.order);
            if let Some(value) = scratch.shared.read_together(addresses[0] as u32, first) {
                return Ok([value; 32]);
            }
        }
        let asked = (addresses, lanes, bytes, "reads");
        self.each_in_shared(scratch, place, shape, asked, |shared, lane, offset, actor| {
            moved[lane] = shared.read(offset, bytes, actor)?;
            Ok(())
        })?;
        Ok(moved)
    }

    #[inline(always)]
    fn write_shared<const W: usize>(
        &self,
        scratch: &mut Scratch<'_>,
        place: &Place,
        shape: Vector,
        (addresses, lanes): (&[u64; 32], u32),
        moved: &Moved<W>,
    ) -> Result<()> {
        let bytes = bytes_in::<W>(shape);
        let asked = (addresses, lanes, bytes, "writes");
        self.each_in_shared(scratch, place, shape, asked, |shared, lane, offset, actor| {
            shared.write(offset, bytes, &moved[lane], actor)
        })
    }

    /// Calls `one` for every lane, with the lane's offset, which is in bounds, and its actor.
    #[inline(always)]
    fn each_in_shared(
        &self,
        scratch: &mut Scratch<'_>,
        place: &Place,
        shape: Vector,
        (addresses, lanes, bytes, verb): (&[u64; 32], u32, u32, &str),
        mut one: impl FnMut(&mut Shared, usize, u32, Actor) -> std::result::Result<(), Fault>,
    ) -> Result<()> {
        // Behind the kernel's shared memory is the part that CUDA reserves.
        let in_step =
            addresses[lanes.trailing_zeros() as usize % 32] >= scratch.shared_bytes.into();
        let first = Actor { in_step, ..actor(place, 0, shape.order) };
        for lane in each(lanes) {
            let offset = self.in_shared(scratch, addresses, lane, lanes, bytes, verb)?;
            let actor = Actor { thread: first.thread + lane as u16, ..first };
            if let Err(found) = one(scratch.shared, lane, offset, actor) {
                return self.shared_fault(found, verb, bytes, offset, lane);
            }
        }
        Ok(())
    }

    /// Returns the offset of a lane's access, or reports an access that is out of bounds.
    #[inline(always)]
    pub(crate) fn in_shared(
        &self,
        scratch: &Scratch<'_>,
        addresses: &[u64; 32],
        lane: usize,
        lanes: u32,
        bytes: u32,
        verb: &str,
    ) -> Result<u32> {
        let end = addresses[lane].saturating_add(u64::from(bytes));
        if end <= u64::from(scratch.shared_bytes) {
            return Ok(addresses[lane] as u32);
        }
        self.outside_shared(scratch.shared_bytes, addresses, lane, lanes, bytes, verb)
    }

    #[cold]
    fn outside_shared(
        &self,
        size: u32,
        addresses: &[u64; 32],
        lane: usize,
        lanes: u32,
        bytes: u32,
        verb: &str,
    ) -> Result<u32> {
        let (reserved, last) = (self.launch.reserved_shared(), u64::from(bytes) - 1);
        if reserved.contains(&addresses[lane]) && reserved.contains(&(addresses[lane] | last)) {
            return Ok(addresses[lane] as u32);
        }
        let inside = |lane: usize| {
            addresses[lane].checked_add(u64::from(bytes)).is_some_and(|end| end <= size.into())
        };
        let outside = each(lanes).filter(|&lane| !inside(lane)).fold(0, |mask, i| mask | 1 << i);
        let message = format!(
            "{verb} {} at offset {} of shared memory, of which the block has {}",
            Count(bytes, "byte"),
            addresses[lane] as i64,
            Count(size, "byte"),
        );
        fault(ReportKind::OutOfBounds, outside, message)
    }

    #[cold]
    pub(crate) fn shared_fault<T>(
        &self,
        found: Fault,
        verb: &str,
        bytes: u32,
        offset: u32,
        lane: usize,
    ) -> Result<T> {
        let what = format!("{verb} {} at offset {offset} of shared memory", Count(bytes, "byte"));
        self.shared_found(found, &what, lane)
    }

    /// Reports a fault. `what` describes the lane's access.
    #[cold]
    pub(crate) fn shared_found<T>(&self, found: Fault, what: &str, lane: usize) -> Result<T> {
        let at = |pc: u32| self.launch.kernel.place_of(pc as usize);
        let did = |verb: &str, Culprit { warp, lane, pc }: Culprit| {
            format!("lane {lane} of warp {warp} {verb} at {}", at(pc))
        };
        let (kind, why) = match found {
            Fault::Uninitialized => {
                (ReportKind::Uninitialized, "which nothing has written".to_string())
            }
            Fault::Unfounded { other } => {
                let wrote = did("wrote", other);
                let why = format!("where {wrote} what it had read where nothing has written");
                (ReportKind::Uninitialized, why)
            }
            Fault::Race { other, pc, wrote } => {
                let does = if wrote { "writes" } else { "reads" };
                let who = match other {
                    Some(other) => did(does, other),
                    None => format!("other threads read, too, at {}", at(pc)),
                };
                (ReportKind::Race, format!("which {who}: no barrier lies between the two"))
            }
            Fault::Pending { other } => {
                let why = did("started", other);
                (ReportKind::Race, format!("where the cp.async that {why} has not been waited for"))
            }
            Fault::Mbarrier { other } => {
                let why = did("initialised", other);
                (ReportKind::Barrier, format!("where the mbarrier is that {why}"))
            }
            Fault::NoMbarrier => (ReportKind::Uninitialized, "where no mbarrier is".to_string()),
        };
        fault(kind, 1 << lane, format!("{what}, {why}"))
    }
}

/// Returns the size of an access of `W` words, as a constant if there are several words.
#[inline(always)]
fn bytes_in<const W: usize>(shape: Vector) -> u32 {
    if W == 1 { shape.bytes() } else { 4 * W as u32 }
}
