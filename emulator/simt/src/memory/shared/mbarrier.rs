//! Mbarriers: barriers that are objects in shared memory, and the happens-before that they create.
//!
//! An mbarrier counts the arrivals of its phase, and the bytes of bulk copies that the phase
//! expects. When no arrival is pending and no byte is missing, the phase is over and the next one
//! begins. A thread that finds a phase over has seen all that the arriving threads had done or
//! seen.
//!
//! To decide this, each thread has a [`Clock`] and each mbarrier has two: `arrived` collects the
//! clocks of the threads that arrive in the present phase, and `before` is the collected clock of
//! the phase before. A successful test joins `before` into the clock of the thread. The bytes of
//! copies are in the words at once, but their cells stay pending until a thread finds the phase
//! over.
//!
//! Kernels with mbarriers also need more of the shadow. A write after reads by several warps may be
//! in order here, so each cell keeps the last unordered read of each warp. Tested by
//! `cases/mbarriers.ptx` and `cases/copies.ptx`.

use std::sync::Arc;

use super::{Actor, Cell, Clock, Fault, Kind, Known, Mark, Mbarrier, Mbarriers, Shared};
use crate::report::{bytes_of, fault, lanes as each, refill};

/// The most arrivals that a phase may take.
pub(crate) const MOST_ARRIVALS: u32 = (1 << 20) - 1;

impl Mbarrier {
    /// Returns the state that an arrival returns: the phase and the arrivals that it still takes.
    fn state(&self) -> u64 {
        self.phase << 20 | u64::from(self.pending)
    }

    /// Begins the next phase if this one is complete. Returns true if it was.
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

/// The phase that a test names.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Phase {
    Parity(u32),
    State(u64),
}

/// An error of an mbarrier operation.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wrong {
    Access(Fault),
    /// No arrivals at all, or more than the `pending` ones that the phase still takes.
    Arrivals {
        count: u32,
        pending: u32,
    },
    /// The parity is neither 0 nor 1, or the state is of neither the present nor the last phase.
    Phase,
}

impl From<Fault> for Wrong {
    fn from(fault: Fault) -> Wrong {
        Wrong::Access(fault)
    }
}

/// Returns the bytes of the host that an mbarrier takes.
pub(crate) fn mbarrier_bytes(warps: u32) -> u64 {
    // The mbarrier and its entry in the tree, whose nodes are at worst half full.
    2 * bytes_of::<(u32, Mbarrier)>(1) + 2 * clock_bytes(warps)
}

pub(super) fn clock_bytes(warps: u32) -> u64 {
    bytes_of::<[u32; 32]>(warps.into()) + bytes_of::<Clock>(1) + 16
}

impl Mbarriers {
    /// Returns the bytes of the host for a block of `cells` cells, without its mbarriers.
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

    /// Drops the mbarriers of a block that has run.
    pub(super) fn retire(&mut self) {
        self.barriers.clear();
    }

    /// Records that this thread reads a cell which several warps have read. `before` is the cell's
    /// reader before this read.
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

    /// Returns the first read of a cell by several warps that conflicts with a write.
    fn conflict(&self, cell: usize, now: Actor, known: &Known) -> Option<Mark> {
        let row = &self.reads[cell * self.warps..][..self.warps];
        row.iter().find(|read| read.conflicts(now, known)).copied()
    }
}

impl Known {
    /// Returns true if vector clocks order an access before one of `now`.
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

    /// Lets each of these lanes of a warp know what any of them knew.
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

/// Returns the elementwise maximum of two clocks, and shares an allocation where it can.
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

/// Accesses in kernels with mbarriers. These record more of what was read, since a write after
/// reads by several warps may be in order.
impl Shared {
    #[inline(never)]
    pub(super) fn read_cells(&mut self, offset: u32, bytes: u32, now: Actor) -> Result<(), Fault> {
        for index in self.range(offset, bytes) {
            self.cells[index].of(self.generation).may_be_read(now, &self.known)?;
            self.note_read(index, now);
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

    /// Checks all reads of a cell by several warps before the cell is written.
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

    /// Checks an operation on the mbarrier at an aligned offset in bounds. Operations on an
    /// mbarrier do not race with each other, but with its initialisation and its end.
    fn mbarrier(&mut self, offset: u32, now: Actor) -> Result<(&mut Mbarrier, &mut Known), Fault> {
        let now = Actor { sync: true, ..now };
        for index in self.range(offset, 8) {
            let cell: &Cell = self.cells[index].of(self.generation);
            if cell.writer.kind != Kind::Mbarrier {
                return Err(Fault::NoMbarrier);
            }
            if cell.writer.conflicts(now, &self.known) {
                return Err(cell.writer.race(now, true));
            }
            self.note_read(index, now);
        }
        let barrier = self.mbarriers.barriers.get_mut(&offset).ok_or(Fault::NoMbarrier)?;
        Ok((barrier, &mut self.known))
    }

    /// Executes `mbarrier.init`. Returns true if no mbarrier was ever at this offset.
    pub(crate) fn initialize(&mut self, offset: u32, count: u32, by: Actor) -> Result<bool, Fault> {
        self.write_cells(offset, 8, by, false)?;
        for index in self.range(offset, 8) {
            self.cells[index].writer.kind = Kind::Mbarrier;
        }
        let arrived = vec![[0; 32]; self.mbarriers.warps];
        let before = Arc::new(arrived.clone());
        let barrier =
            Mbarrier { expected: count, pending: count, arrived, before, ..Mbarrier::default() };
        Ok(self.mbarriers.barriers.insert(offset, barrier).is_none())
    }

    /// Executes `mbarrier.inval`: its eight bytes are ordinary memory again.
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

    /// Executes `mbarrier.arrive`. Returns the state before, and true if the phase is over.
    pub(crate) fn arrive_at(
        &mut self,
        offset: u32,
        count: u32,
        actor: Actor,
    ) -> Result<(u64, bool), Wrong> {
        let (barrier, known) = self.mbarrier(offset, actor)?;
        if count == 0 || count > barrier.pending {
            return Err(Wrong::Arrivals { count, pending: barrier.pending });
        }
        let state = barrier.state();
        known.publish(actor, &mut barrier.arrived);
        barrier.pending -= count;
        Ok((state, barrier.turn()))
    }

    /// Makes the bytes of these copies readable, after a thread has found their phase over.
    #[cold]
    fn receive(&mut self, copies: Vec<(u32, u32, Actor)>) {
        for (offset, bytes, actor) in copies {
            for cell in self.cells(offset, bytes).0 {
                (cell.writer, cell.reader) = (Mark::of(actor, Kind::Once), Mark::default());
            }
        }
    }

    /// Executes `mbarrier.expect_tx`, and an arrival if `arrives`. Without bytes, the phase takes
    /// over what the thread has done. Returns the state before, and true if the phase is over.
    pub(crate) fn expect_at(
        &mut self,
        offset: u32,
        bytes: Option<u32>,
        arrives: bool,
        actor: Actor,
    ) -> Result<(u64, bool), Wrong> {
        let (barrier, known) = self.mbarrier(offset, actor)?;
        if bytes.is_none() {
            known.publish(actor, &mut barrier.arrived);
        }
        barrier.bytes += i64::from(bytes.unwrap_or(0));
        if arrives {
            return self.arrive_at(offset, 1, actor);
        }
        Ok((barrier.state(), barrier.turn()))
    }

    /// Completes a bulk copy to `place`. Returns true if this ends the phase.
    pub(crate) fn notify(
        &mut self,
        offset: u32,
        place: u32,
        bytes: u32,
        actor: Actor,
    ) -> Result<bool, Wrong> {
        let (barrier, known) = self.mbarrier(offset, actor)?;
        known.publish(actor, &mut barrier.arrived);
        barrier.bytes -= i64::from(bytes);
        barrier.copies.push((place, bytes, actor));
        Ok(barrier.turn())
    }

    /// Returns the bytes of the host for copies of an mbarrier that are not paid for.
    pub(crate) fn unpaid_bytes(&mut self, offset: u32) -> u64 {
        let Some(barrier) = self.mbarriers.barriers.get_mut(&offset) else { return 0 };
        let more = (barrier.copies.len() + barrier.came.len()).saturating_sub(barrier.paid);
        barrier.paid += more;
        bytes_of::<(u32, u32, Actor)>(2 * more as u64)
    }

    /// Writes what a copy brings into the words that expect it.
    pub(crate) fn put_down(&mut self, offset: u32, value: [u32; 4]) {
        let first = (offset / 4) as usize;
        self.words[first..first + 4].copy_from_slice(&value);
    }

    /// Ends a step of a warp: what its lanes do from now on comes after what they have published.
    pub(crate) fn part(&mut self, warp: u32, passed: u32) {
        self.seen_by(warp as usize, passed);
    }

    /// Executes `mbarrier.test_wait`. Returns true if the phase is over.
    pub(crate) fn is_over(&mut self, offset: u32, phase: Phase, now: Actor) -> Result<bool, Wrong> {
        let (barrier, known) = self.mbarrier(offset, now)?;
        let over = match phase {
            Phase::Parity(parity @ 0..2) => barrier.phase % 2 != u64::from(parity),
            Phase::State(state) if state >> 20 == barrier.phase => false,
            Phase::State(state) if (state >> 20) + 1 == barrier.phase => true,
            _ => return Err(Wrong::Phase),
        };
        let came = if over { std::mem::take(&mut barrier.came) } else { Vec::new() };
        if over {
            let (thread, clocks) = (usize::from(now.thread), &mut known.clocks);
            // Most lanes know the same and share one allocation.
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

    /// Returns the mbarrier at an offset.
    pub(crate) fn mbarrier_at(&self, offset: u32) -> Option<&Mbarrier> {
        self.mbarriers.barriers.get(&offset)
    }
}
