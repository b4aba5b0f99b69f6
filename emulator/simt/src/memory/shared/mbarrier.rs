//! Mbarriers: barriers that are objects in shared memory, and what they hand from thread to thread.
//!
//! An mbarrier counts the arrivals of its phase. With the last one the phase is over and the next
//! begins. Whoever finds that a phase is over has seen all that those who arrived had done, or seen
//! themselves.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Actor, Cell, Fault, Kind, Known, Mark, Shared};
use crate::report::{bytes_of, fault, lanes as each, refill};

/// The most arrivals that a phase may take.
pub(crate) const MOST: u32 = (1 << 20) - 1;

/// What has been seen of each thread: of a lane of a warp, all before the warp's barrier of that
/// number. As many elements as the block has warps.
pub(super) type Clock = Vec<[u32; 32]>;

/// An mbarrier.
#[derive(Debug, Clone)]
pub(crate) struct Mbarrier {
    pub(crate) expected: u32,
    /// Arrivals that the phase still takes.
    pub(crate) pending: u32,
    /// The phase's number, from 0.
    pub(crate) phase: u64,
    /// Bytes of bulk copies that are expected and have not come; below 0, they have come before
    /// they were expected.
    pub(crate) bytes: i64,
    /// The copies that have come in this phase: where, how much, and by whom.
    copies: Vec<(u32, u32, Actor)>,
    /// Those of the phase before, for as long as nobody has found that it is over.
    came: Vec<(u32, u32, Actor)>,
    /// Room for copies whose bytes have been asked for.
    asked: usize,
    /// What those have seen who have arrived in the phase, and in the one before.
    arrived: Clock,
    before: Arc<Clock>,
}

impl Mbarrier {
    /// What an arrival gives: the phase, and how many arrivals it takes.
    fn state(&self) -> u64 {
        self.phase << 20 | u64::from(self.pending)
    }

    /// The phase learns all that a thread has done and seen.
    fn learn(&mut self, actor: Actor, known: &Known) {
        known.tell(actor, &mut self.arrived);
    }

    /// The phase is over, if it is. Whether it is.
    fn turn(&mut self) -> bool {
        if self.pending > 0 || self.bytes != 0 {
            return false;
        }
        let next = vec![[0; 32]; self.arrived.len()];
        self.before = Arc::new(std::mem::replace(&mut self.arrived, next));
        self.pending = self.expected;
        self.phase += 1;
        self.came.append(&mut self.copies);
        true
    }
}

/// What a test is for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Phase {
    Parity(u32),
    State(u64),
}

/// What is wrong with an operation.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wrong {
    Access(Fault),
    /// None, or more than these, which the phase still takes.
    Arrivals {
        count: u32,
        pending: u32,
    },
    /// The parity is neither 0 nor 1, or the state is of a phase long ago, or of none.
    Phase,
}

impl From<Fault> for Wrong {
    fn from(fault: Fault) -> Wrong {
        Wrong::Access(fault)
    }
}

/// What a block's mbarriers are and have handed over. Of a kernel that has none, nothing.
#[derive(Debug, Clone, Default)]
pub(super) struct Mbarriers {
    /// Of the block; 0 if nothing hands anything from thread to thread but barriers of all of it.
    pub(super) warps: usize,
    barriers: BTreeMap<u32, Mbarrier>,
    /// Of each cell that several warps have read: by warp, the last read that nothing orders before
    /// the others.
    reads: Vec<Mark>,
}

/// Bytes of the host that an mbarrier takes.
pub(crate) fn host_bytes(warps: u32) -> u64 {
    // Beside what it is, its place in the tree, at worst half full.
    2 * bytes_of::<(u32, Mbarrier)>(1) + 2 * clock_bytes(warps)
}

pub(super) fn clock_bytes(warps: u32) -> u64 {
    bytes_of::<[u32; 32]>(warps.into()) + bytes_of::<Clock>(1) + 16
}

impl Mbarriers {
    /// Returns their bytes of the host in a block with `cells` cells, without the mbarriers.
    pub(super) fn host_bytes(cells: u64, warps: u32) -> u64 {
        let threads = u64::from(warps) * 32;
        let reads = bytes_of::<Mark>(cells.saturating_mul(warps.into()));
        reads.saturating_add(threads * (clock_bytes(warps) + bytes_of::<Arc<Clock>>(1)))
    }

    pub(super) fn held(&self) -> u64 {
        bytes_of::<Mark>(self.reads.capacity() as u64)
    }

    pub(super) fn reset(
        &mut self,
        cells: usize,
        warps: u32,
        known: &mut Known,
    ) -> fault::Result<()> {
        const WHAT: &str = "the order of accesses by mbarriers";
        self.warps = warps as usize;
        self.barriers.clear();
        known.clocks.clear();
        if warps == 0 {
            return Ok(());
        }
        refill(&mut known.clocks, 32 * self.warps, Arc::new(vec![[0; 32]; self.warps]), WHAT)?;
        if self.reads.len() < cells * self.warps {
            refill(&mut self.reads, cells * self.warps, Mark::default(), WHAT)?;
        }
        Ok(())
    }

    /// Those of a block that has run are of no use to the next one.
    pub(super) fn retire(&mut self) {
        self.barriers.clear();
    }

    /// A cell, read before as `before` says, has been read by several warps, and now by this
    /// thread.
    fn note(&mut self, cell: usize, before: Mark, now: Actor, known: &Known) {
        let row = &mut self.reads[cell * self.warps..][..self.warps];
        if before.kind != Kind::Warps {
            row.fill(Mark::default());
            row[usize::from(before.thread / 32)] = before;
        }
        let mine = &mut row[usize::from(now.thread / 32)];
        let alone = mine.ordered_before(now, known);
        let sync = now.sync && (alone || mine.sync);
        let kind = if alone { Kind::Once } else { Kind::Lanes };
        *mine = Mark::of(Actor { sync, ..now }, kind);
    }

    /// The first of the reads of a cell by several warps that conflicts with a write.
    fn conflict(&self, cell: usize, now: Actor, known: &Known) -> Option<Mark> {
        let row = &self.reads[cell * self.warps..][..self.warps];
        row.iter().find(|read| read.conflicts(now, known)).copied()
    }
}

impl Known {
    /// Returns whether mbarriers have handed an access of one thread to the other.
    #[inline(always)]
    pub(super) fn handed(&self, mark: &Mark, now: Actor) -> bool {
        !self.clocks.is_empty() && self.handed_over(mark, now)
    }

    fn handed_over(&self, mark: &Mark, now: Actor) -> bool {
        let seen = &self.clocks[usize::from(now.thread)][usize::from(mark.thread / 32)];
        if mark.kind == Kind::Lanes {
            return seen.iter().all(|&seen| mark.warp_epoch < seen);
        }
        mark.warp_epoch < seen[usize::from(mark.thread % 32)]
    }

    /// Lanes of a warp have met: each knows what any of them knew.
    pub(super) fn meet(&mut self, warp: usize, lanes: u32) {
        if self.clocks.is_empty() {
            return;
        }
        let clocks = &mut self.clocks[32 * warp..][..32];
        let mut all = clocks[lanes.trailing_zeros() as usize % 32].clone();
        each(lanes).for_each(|lane| all = joined(&all, &clocks[lane]));
        each(lanes).for_each(|lane| clocks[lane] = all.clone());
    }
}

/// What either of two clocks says.
pub(super) fn joined(first: &Arc<Clock>, second: &Arc<Clock>) -> Arc<Clock> {
    if Arc::ptr_eq(first, second) {
        return first.clone();
    }
    let holds =
        |a: &Clock, b: &Clock| a.iter().flatten().zip(b.iter().flatten()).all(|(a, b)| a >= b);
    if holds(first, second) {
        return first.clone();
    }
    if holds(second, first) {
        return second.clone();
    }
    let mut all = first.to_vec();
    raise(&mut all, second);
    Arc::new(all)
}

pub(super) fn raise(clock: &mut Clock, other: &Clock) {
    for (mine, theirs) in clock.iter_mut().flatten().zip(other.iter().flatten()) {
        *mine = (*mine).max(*theirs);
    }
}

/// Accesses in kernels with mbarriers. They keep more of what was read: a write after reads by
/// several warps may be in order.
impl Shared {
    #[inline(never)]
    pub(super) fn read_cells(
        &mut self,
        offset: u32,
        bytes: u32,
        actor: Actor,
    ) -> Result<(), Fault> {
        for index in self.range(offset, bytes) {
            self.cells[index].of(self.generation).may_be_read(actor, &self.known)?;
            self.note_read(index, actor);
        }
        Ok(())
    }

    fn note_read(&mut self, index: usize, actor: Actor) {
        let cell = self.cells[index].of(self.generation);
        let before = cell.reader;
        cell.note_read(actor, &self.known);
        if cell.reader.kind == Kind::Warps {
            self.mbarriers.note(index, before, actor, &self.known);
        }
    }

    #[inline(never)]
    pub(super) fn write_cells(
        &mut self,
        offset: u32,
        bytes: u32,
        actor: Actor,
        same: bool,
    ) -> Result<(), Fault> {
        for index in self.range(offset, bytes) {
            self.after_reads(index, actor)?;
            self.cells[index].of(self.generation).write(actor, &self.known, || same)?;
        }
        Ok(())
    }

    /// Looks at all reads of a cell that is going to be written, if they are by several warps.
    fn after_reads(&mut self, index: usize, actor: Actor) -> Result<(), Fault> {
        let cell = self.cells[index].of(self.generation);
        if cell.reader.kind == Kind::Warps && cell.reader.conflicts(actor, &self.known) {
            if let Some(read) = self.mbarriers.conflict(index, actor, &self.known) {
                return Err(read.race(actor, false));
            }
            cell.reader = Mark::default();
        }
        Ok(())
    }

    /// The mbarrier at an aligned offset inside, for which this thread does something: its
    /// operations do not race with each other, but with what makes and ends it.
    fn mbarrier(&mut self, offset: u32, actor: Actor) -> Result<(), Fault> {
        let actor = Actor { sync: true, ..actor };
        for index in self.range(offset, 8) {
            let cell: &Cell = self.cells[index].of(self.generation);
            if cell.writer.kind != Kind::Mbarrier {
                return Err(Fault::NoMbarrier);
            }
            if cell.writer.conflicts(actor, &self.known) {
                return Err(cell.writer.race(actor, true));
            }
            self.note_read(index, actor);
        }
        Ok(())
    }

    /// `mbarrier.init`. Returns whether there never was one in this place.
    pub(crate) fn initialize(
        &mut self,
        offset: u32,
        count: u32,
        actor: Actor,
    ) -> Result<bool, Fault> {
        self.write_cells(offset, 8, actor, false)?;
        for index in self.range(offset, 8) {
            self.cells[index].writer.kind = Kind::Mbarrier;
        }
        let clock = vec![[0; 32]; self.mbarriers.warps];
        let before = Arc::new(clock.clone());
        let barrier = Mbarrier {
            expected: count,
            pending: count,
            phase: 0,
            bytes: 0,
            copies: Vec::new(),
            came: Vec::new(),
            asked: 0,
            arrived: clock,
            before,
        };
        Ok(self.mbarriers.barriers.insert(offset, barrier).is_none())
    }

    /// `mbarrier.inval`: its place is ordinary memory again.
    pub(crate) fn invalidate(&mut self, offset: u32, actor: Actor) -> Result<(), Fault> {
        self.mbarrier(offset, actor)?;
        for index in self.range(offset, 8) {
            self.after_reads(index, actor)?;
            let cell = &mut self.cells[index];
            if cell.reader.conflicts(actor, &self.known) {
                return Err(cell.reader.race(actor, false));
            }
            (cell.writer, cell.reader) = (Mark::of(actor, Kind::Once), Mark::default());
        }
        Ok(())
    }

    /// `mbarrier.arrive`, `count` times. Returns the state before, and whether the phase is over.
    pub(crate) fn arrive_at(
        &mut self,
        offset: u32,
        count: u32,
        actor: Actor,
    ) -> Result<(u64, bool), Wrong> {
        self.mbarrier(offset, actor)?;
        let Some(barrier) = self.mbarriers.barriers.get_mut(&offset) else {
            return Err(Fault::NoMbarrier.into());
        };
        if count == 0 || count > barrier.pending {
            return Err(Wrong::Arrivals { count, pending: barrier.pending });
        }
        let state = barrier.state();
        barrier.learn(actor, &self.known);
        barrier.pending -= count;
        Ok((state, barrier.turn()))
    }

    /// Somebody has found that the phase of an mbarrier is over: what its copies have brought is
    /// there.
    #[cold]
    fn receive(&mut self, copies: Vec<(u32, u32, Actor)>) {
        for (offset, bytes, actor) in copies {
            for cell in self.cells(offset, bytes).0 {
                (cell.writer, cell.reader) = (Mark::of(actor, Kind::Once), Mark::default());
            }
        }
    }

    /// `mbarrier.expect_tx`, and an arrival (`arrives`). Without bytes: the phase learns what the
    /// thread has done. Returns the state before, and whether the phase is over.
    pub(crate) fn expect_at(
        &mut self,
        offset: u32,
        bytes: Option<u32>,
        arrives: bool,
        actor: Actor,
    ) -> Result<(u64, bool), Wrong> {
        self.mbarrier(offset, actor)?;
        let Some(barrier) = self.mbarriers.barriers.get_mut(&offset) else {
            return Err(Fault::NoMbarrier.into());
        };
        if bytes.is_none() {
            barrier.learn(actor, &self.known);
        }
        barrier.bytes += i64::from(bytes.unwrap_or(0));
        if arrives {
            return self.arrive_at(offset, 1, actor);
        }
        Ok((barrier.state(), barrier.turn()))
    }

    /// A bulk copy to that place has come. Whether the phase is over with it.
    pub(crate) fn told(
        &mut self,
        offset: u32,
        place: u32,
        bytes: u32,
        actor: Actor,
    ) -> Result<bool, Wrong> {
        self.mbarrier(offset, actor)?;
        let Some(barrier) = self.mbarriers.barriers.get_mut(&offset) else {
            return Err(Fault::NoMbarrier.into());
        };
        barrier.learn(actor, &self.known);
        barrier.bytes -= i64::from(bytes);
        barrier.copies.push((place, bytes, actor));
        Ok(barrier.turn())
    }

    /// Bytes of the host that the copies of an mbarrier have come to take and nobody has been asked
    /// for.
    pub(crate) fn room_of(&mut self, offset: u32) -> u64 {
        let Some(barrier) = self.mbarriers.barriers.get_mut(&offset) else { return 0 };
        let more = (barrier.copies.len() + barrier.came.len()).saturating_sub(barrier.asked);
        barrier.asked += more;
        bytes_of::<(u32, u32, Actor)>(2 * more as u64)
    }

    /// Puts down what a copy brings, where it is expected.
    pub(crate) fn put_down(&mut self, offset: u32, value: [u32; 4]) {
        let first = (offset / 4) as usize;
        self.words[first..first + 4].copy_from_slice(&value);
    }

    /// What lanes of a warp do from here on is behind what they have handed over.
    pub(crate) fn part(&mut self, warp: u32, passed: u32) {
        self.seen_by(warp as usize, passed);
    }

    /// `mbarrier.test_wait`: whether the phase is over.
    pub(crate) fn is_over(
        &mut self,
        offset: u32,
        phase: Phase,
        actor: Actor,
    ) -> Result<bool, Wrong> {
        self.mbarrier(offset, actor)?;
        let Some(barrier) = self.mbarriers.barriers.get_mut(&offset) else {
            return Err(Fault::NoMbarrier.into());
        };
        let over = match phase {
            Phase::Parity(parity @ 0..2) => barrier.phase % 2 != u64::from(parity),
            Phase::State(state) if state >> 20 == barrier.phase => false,
            Phase::State(state) if (state >> 20) + 1 == barrier.phase => true,
            _ => return Err(Wrong::Phase),
        };
        let came = if over { std::mem::take(&mut barrier.came) } else { Vec::new() };
        if over {
            let (thread, clocks) = (usize::from(actor.thread), &mut self.known.clocks);
            // Lanes of a warp mostly know the same, and share it.
            let neighbour = thread.checked_sub(1).filter(|_| !thread.is_multiple_of(32));
            let shared = neighbour.filter(|&other| {
                let [all, mine, before] = [&clocks[other], &clocks[thread], &barrier.before]
                    .map(|clock| clock.iter().flatten());
                all.zip(mine.zip(before)).all(|(all, (mine, before))| all == mine.max(before))
            });
            clocks[thread] = match shared {
                Some(neighbour) => clocks[neighbour].clone(),
                None => joined(&clocks[thread], &barrier.before),
            };
        }
        if !came.is_empty() {
            self.receive(came);
        }
        Ok(over)
    }

    /// The mbarrier there.
    pub(crate) fn mbarrier_at(&self, offset: u32) -> Option<&Mbarrier> {
        self.mbarriers.barriers.get(&offset)
    }
}
