//! Shared memory of a block, with a shadow that records who accessed each place last.
//!
//! Two accesses to one place race if at least one of them writes, not both are synchronising, and
//! nothing orders the first before the second. Four things create such an order: a barrier of the
//! block, a barrier of the warp whose mask names both lanes, an mbarrier or a named barrier at
//! which one thread arrived and for which the other waited, and a release that the other acquired.
//!
//! The shadow has one [`Cell`] for each unit of memory that the kernel accesses. A cell holds the
//! last write and the last read as a [`Mark`]: thread, instruction, and the number of barriers that
//! the block (`epoch`) and the warp (`warp_epoch`) had passed. An access checks the marks of its
//! cells before it replaces them. Two integer comparisons decide most cases: a mark with a smaller
//! `epoch` is ordered, and within a warp a mark with a smaller `warp_epoch` is. Only where part of
//! a warp passed a barrier alone, a matrix records what each lane has seen of each other lane
//! ([`Seen`]). Only in kernels with mbarriers, named barriers or synchronising accesses, each
//! thread has a vector clock ([`Known`]).
//!
//! One mark cannot name several readers. A cell that several lanes or several warps have read
//! records only this fact; a write after such reads must come after all of them. Kernels with
//! vector clocks keep one read for each warp beside the cell (`mbarrier`).
//!
//! Blocks reuse the memory of earlier blocks without clearing it: each cell has a generation, and a
//! cell of another generation counts as never accessed. Tested by `cases/races.ptx`,
//! `cases/barriers.ptx`, `cases/divergence.ptx` and `suite/reused.rs`.

mod handed;
pub(crate) mod mbarrier;
pub(crate) mod named;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::report::{bytes_of, fault, lanes as each, refill};

/// An accessing thread and its time, counted in barriers of the block and of the warp.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Actor {
    /// Barriers that the block has passed.
    pub(crate) epoch: u32,
    /// Barriers that the warp has passed alone.
    pub(crate) warp_epoch: u32,
    /// The instruction's number.
    pub(crate) pc: u32,
    /// The thread's number in the block: 32 times the warp's number, plus the lane's.
    pub(crate) thread: u16,
    /// True for volatile, relaxed and atomic accesses, which do not race with each other.
    pub(crate) sync: bool,
    /// True if the access is in CUDA's part of shared memory. CUDA's code orders the lanes of a
    /// warp there by shuffles alone, so they count as ordered.
    pub(crate) in_step: bool,
}

/// The shared memory of one block, and later of the next. The contents that earlier blocks left are
/// not cleared, which would take longer than many kernels run. They belong to another generation.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shared {
    words: Vec<u32>,
    /// One cell of the shadow covers `1 << grain` bytes, the smallest access of the kernel.
    grain: u32,
    cells: Vec<Cell>,
    /// The generation of the present block; the first is 1. A cell of any other generation counts
    /// as never accessed.
    generation: u64,
    known: Known,
    mbarriers: Mbarriers,
    named: Barriers,
    handed: Handed,
    /// For each cell with a value from unwritten memory: the read that the value comes from.
    origins: BTreeMap<usize, Arc<FirstRead>>,
}

/// The knowledge of threads about each other, beyond the barriers of the whole block.
#[derive(Debug, Clone, Default)]
struct Known {
    /// For each warp; see [`Seen`].
    seen: Vec<Option<Box<Seen>>>,
    /// The vector clock of each thread. Empty in a kernel without mbarriers, named barriers and
    /// synchronising accesses.
    clocks: Vec<Arc<Clock>>,
}

/// For each lane of each warp, the number of the warp's steps that have been seen. The vector has
/// one element for each warp of the block.
type Clock = Vec<[u32; 32]>;

#[derive(Debug, Clone, Default)]
pub(crate) struct Mbarrier {
    pub(crate) expected: u32,
    /// Arrivals that are still missing in this phase.
    pub(crate) pending: u32,
    /// The phase's number, from 0.
    pub(crate) phase: u64,
    /// Bytes of bulk copies that are expected and have not arrived. Negative if copies have arrived
    /// before they were expected.
    pub(crate) bytes: i64,
    /// The copies that have arrived in this phase: offset, bytes and thread of each.
    copies: Vec<(u32, u32, Actor)>,
    /// The copies of the phase before, until a thread finds that phase over.
    came: Vec<(u32, u32, Actor)>,
    /// The number of copies whose memory on the host is paid for.
    paid: usize,
    /// The clock of the threads that arrived in this phase, and of the phase before.
    arrived: Clock,
    before: Arc<Clock>,
}

/// The mbarriers of a block and the reads that they may order. Empty in a kernel without mbarriers.
#[derive(Debug, Clone, Default)]
struct Mbarriers {
    /// The number of warps of the block; 0 if only barriers of the whole block order accesses.
    warps: usize,
    barriers: BTreeMap<u32, Mbarrier>,
    /// For each cell that several warps have read: by warp, the last read that is not ordered
    /// before the others.
    reads: Vec<Mark>,
}

/// The named barriers of a block; see `named`.
#[derive(Debug, Clone, Default)]
struct Barriers {
    /// Empty until the first barrier is used; then all barriers.
    all: Vec<Barrier>,
    /// True if a barrier has opened and the lanes that wait at it have not been notified.
    opened: bool,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Barrier {
    /// The number of threads expected, and of the threads that arrived in whole warps.
    pub(crate) expected: u32,
    pub(crate) come: u32,
    /// True if no number of threads is named. Then exited threads count as arrived.
    every: bool,
    /// The number of times that it has opened.
    pub(crate) phase: u32,
    /// The thread that arrived first.
    first: Option<Culprit>,
    /// For each warp, the lanes that have arrived and do not count yet, and the lanes that wait.
    partial: Vec<u32>,
    waiting: Vec<u32>,
    arrived: Clock,
}

/// The synchronising accesses of a block; see `handed`.
#[derive(Debug, Clone, Default)]
struct Handed {
    /// The clock published at each word, by the word's number.
    left: BTreeMap<u32, Arc<Clock>>,
    /// For each thread, its knowledge at its last fence. Empty in a block that has passed no fence.
    fenced: Vec<Option<Knowledge>>,
    /// For each warp, the clocks that its relaxed accesses have read, for its next fence.
    seen: Vec<Option<Arc<Clock>>>,
    /// The number of words whose clocks are paid for, and true if the fences' copies are paid for.
    paid: (usize, bool),
}

/// The knowledge of a thread: about its own warp by lane, and a clock for all other threads.
#[derive(Debug, Clone)]
struct Knowledge {
    own: [u32; 32],
    others: Arc<Clock>,
}

/// The knowledge of the lanes of a warp about each other. Entry `[a][b]` is the number of barriers
/// that the warp had passed when lane `a` last knew all that lane `b` had done before. A warp has a
/// matrix only if a part of it has passed a barrier alone since the last barrier of the whole warp.
type Seen = [[u32; 32]; 32];

/// The shadow of one place: its last write and its last read.
#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    generation: u64,
    writer: Mark,
    reader: Mark,
}

/// The last access of a kind. It repeats the fields of an [`Actor`] to hold the kind in the same 16
/// bytes, because there are many marks.
#[derive(Debug, Clone, Copy, Default)]
struct Mark {
    epoch: u32,
    warp_epoch: u32,
    pc: u32,
    thread: u16,
    sync: bool,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Never,
    /// One thread accessed the place.
    Once,
    /// A `cp.async` of that thread to the place is in flight.
    Pending,
    /// The thread made the place a part of an mbarrier.
    Mbarrier,
    /// The thread wrote a value that it had read from unwritten memory.
    Unfounded,
    /// Several lanes of that warp (`Lanes`) or several warps (`Warps`) accessed the place.
    Lanes,
    Warps,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Culprit {
    pub(crate) warp: u32,
    pub(crate) lane: u32,
    pub(crate) pc: u32,
}

/// A read of unwritten memory. It is reported if its value has an effect.
#[derive(Debug)]
pub(crate) struct FirstRead {
    pub(crate) warp: u32,
    pub(crate) lanes: u32,
    pub(crate) pc: u32,
    pub(crate) message: String,
}

/// An error of an access.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    Uninitialized,
    /// The other thread wrote a value that it had read from unwritten memory.
    Unfounded {
        other: Culprit,
    },
    /// The other thread wrote (`wrote`) or read the place. `other` is `None` if several threads
    /// read it and this one did last.
    Race {
        other: Option<Culprit>,
        pc: u32,
        wrote: bool,
    },
    /// Nothing has waited for a `cp.async` to the place.
    Pending {
        other: Culprit,
    },
    /// The place is a part of an mbarrier, which the other thread initialised.
    Mbarrier {
        other: Culprit,
    },
    /// No mbarrier is at this place.
    NoMbarrier,
}

impl Mark {
    #[inline(always)]
    fn of(actor: Actor, kind: Kind) -> Mark {
        let Actor { epoch, warp_epoch, pc, thread, sync, in_step: _ } = actor;
        Mark { epoch, warp_epoch, pc, thread, sync, kind }
    }

    /// Returns true if something orders all accesses that this mark covers before one of `now`.
    #[inline(always)]
    fn ordered_before(&self, now: Actor, known: &Known) -> bool {
        if self.kind == Kind::Never || self.epoch < now.epoch {
            return true;
        }
        if self.kind == Kind::Warps {
            return false;
        }
        if self.thread / 32 != now.thread / 32 {
            return known.handed(self, now);
        }
        let seen = match known.seen.get(usize::from(now.thread / 32)) {
            Some(Some(seen)) => seen[usize::from(now.thread % 32)][usize::from(self.thread % 32)],
            _ => now.warp_epoch,
        };
        self.warp_epoch < seen
            || self.kind != Kind::Lanes && self.thread == now.thread
            || known.handed(self, now)
            || now.in_step
    }

    #[inline(always)]
    fn conflicts(&self, now: Actor, known: &Known) -> bool {
        !(self.sync && now.sync || self.ordered_before(now, known))
    }

    #[cold]
    fn race(&self, now: Actor, wrote: bool) -> Fault {
        let other = (self.thread != now.thread).then(|| self.place());
        Fault::Race { other, pc: self.pc, wrote }
    }

    /// Returns an error if a copy is in flight to the place or an mbarrier is there.
    #[inline(always)]
    fn is_free(&self) -> Result<(), Fault> {
        match self.kind {
            Kind::Pending => Err(Fault::Pending { other: self.place() }),
            Kind::Mbarrier => Err(Fault::Mbarrier { other: self.place() }),
            _ => Ok(()),
        }
    }

    fn place(&self) -> Culprit {
        let thread = u32::from(self.thread);
        Culprit { warp: thread / 32, lane: thread % 32, pc: self.pc }
    }
}

impl Shared {
    /// Returns the bytes of the host that the shared memory of a block and its shadow take. `warps`
    /// is the number of warps that may pass barriers alone.
    pub(crate) fn host_bytes(bytes: u32, grain: u32, warps: u32, mbarriers: bool) -> u64 {
        let words = u64::from(bytes.div_ceil(4));
        let handed = if mbarriers { Mbarriers::host_bytes(words << (2 - grain), warps) } else { 0 };
        handed
            + bytes_of::<u32>(words)
            + bytes_of::<Cell>(words << (2 - grain))
            + bytes_of::<Option<Box<Seen>>>(u64::from(warps).next_power_of_two())
            + bytes_of::<Seen>(warps.into())
    }

    /// Returns the bytes of the host that are allocated now.
    pub(crate) fn held(&self) -> u64 {
        bytes_of::<u32>(self.words.capacity() as u64)
            + bytes_of::<Cell>(self.cells.capacity() as u64)
            + bytes_of::<Option<Box<Seen>>>(self.known.seen.capacity() as u64)
            + bytes_of::<Seen>(self.known.seen.len() as u64)
            + bytes_of::<Arc<Clock>>(self.known.clocks.capacity() as u64)
            + self.mbarriers.held()
            + self.named.held()
            + self.handed.held()
    }

    /// Drops what only the block that has run needs, before the memory is saved for later blocks.
    pub(crate) fn retire(&mut self) {
        self.known.clocks.clear();
        self.mbarriers.retire();
        self.named = Barriers::default();
        self.handed = Handed::default();
    }

    /// Prepares the memory for a block of `bytes` bytes, with cells of `1 << grain` bytes.
    /// `mbarriers` is the block's number of warps if threads need vector clocks, else 0.
    pub(crate) fn reset(&mut self, bytes: u32, grain: u32, mbarriers: u32) -> fault::Result<()> {
        self.grain = grain;
        let (words, what) = (bytes.div_ceil(4) as usize, "shared memory");
        let cells = words << (2 - grain);
        if self.words.len() < words {
            refill(&mut self.words, words, 0, what)?;
        }
        if self.cells.len() < cells {
            refill(&mut self.cells, cells, Cell::default(), what)?;
        }
        self.generation += 1;
        self.origins.clear();
        self.known.seen.clear();
        self.named.reset(mbarriers as usize);
        self.handed.reset();
        self.mbarriers.reset(cells, mbarriers, &mut self.known)
    }

    /// Fills a range with zeros that count as written before the first barrier.
    pub(crate) fn give(&mut self, bytes: std::ops::Range<u32>) {
        let writer = Mark { kind: Kind::Once, ..Mark::default() };
        let given = Cell { generation: self.generation, writer, reader: Mark::default() };
        let cells = (bytes.start >> self.grain) as usize..(bytes.end >> self.grain) as usize;
        self.cells[cells].fill(given);
        self.words[(bytes.start / 4) as usize..(bytes.end / 4) as usize].fill(0);
    }

    /// Executes a barrier of the warp for these lanes, each with the lanes that its mask names.
    /// `passed` such barriers came before, and `alive` are the lanes that have not exited.
    pub(crate) fn warp_barrier(
        &mut self,
        warp: u32,
        passed: u32,
        (lanes, alive): (u32, u32),
        masks: &[u32; 32],
    ) {
        let warp = warp as usize;
        if each(lanes).any(|lane| masks[lane] == alive) {
            if let Some(seen) = self.known.seen.get_mut(warp) {
                *seen = None;
            }
            self.known.meet(warp, lanes);
            return;
        }
        for lane in each(lanes).filter(|&lane| masks[lane].trailing_zeros() as usize == lane) {
            self.known.meet(warp, masks[lane]);
        }
        let seen = self.seen_by(warp, passed);
        for lane in each(lanes).filter(|&lane| masks[lane].trailing_zeros() as usize == lane) {
            let together = masks[lane];
            let mut all = [0; 32];
            for member in each(together) {
                all = std::array::from_fn(|other| all[other].max(seen[member][other]));
            }
            each(together).for_each(|member| all[member] = passed + 1);
            each(together).for_each(|member| seen[member] = all);
        }
    }

    /// Returns what the lanes of a warp know of each other, from now on recorded lane by lane.
    fn seen_by(&mut self, warp: usize, passed: u32) -> &mut Seen {
        let seen = &mut self.known.seen;
        if seen.len() <= warp {
            seen.resize_with(warp + 1, || None);
        }
        seen[warp].get_or_insert_with(|| Box::new([[passed; 32]; 32]))
    }

    /// Returns the words of the first `bytes` bytes; `None` for words not written.
    pub(crate) fn cells_of_words(&self, bytes: u32) -> Vec<Option<u32>> {
        let cells = 1 << (2 - self.grain);
        let written = |cell: &Cell| {
            cell.generation == self.generation
                && matches!(cell.writer.kind, Kind::Once | Kind::Lanes | Kind::Warps)
        };
        let words =
            self.words.iter().zip(self.cells.chunks(cells)).take(bytes.div_ceil(4) as usize);
        words.map(|(&word, cells)| cells.iter().any(written).then_some(word)).collect()
    }

    /// Reads `W` words at an aligned offset in bounds, or `bytes` bytes of one word.
    #[inline(always)]
    pub(crate) fn read<const W: usize>(
        &mut self,
        offset: u32,
        bytes: u32,
        actor: Actor,
    ) -> Result<[u32; W], Fault> {
        if self.mbarriers.warps > 0 {
            self.read_cells(offset, bytes, actor)?;
            return Ok(self.peek(offset, bytes));
        }
        if self.grain == 2 {
            // One cell for each word, as in kernels that access nothing smaller.
            let first = (offset / 4) as usize;
            for cell in &mut self.cells[first..first + W] {
                cell.of(self.generation).read(actor, &self.known)?;
            }
            let mut value = [0; W];
            value.copy_from_slice(&self.words[first..first + W]);
            return Ok(value);
        }
        let (cells, known) = self.cells(offset, bytes);
        for cell in cells {
            cell.read(actor, known)?;
        }
        Ok(self.peek(offset, bytes))
    }

    /// Reads one place for all lanes of a warp at once; `first` is the first lane. Returns `None`
    /// unless the last write comes before all of them. Leaves the cells as they would be if the
    /// lanes had read one after the other.
    pub(crate) fn read_together<const W: usize>(
        &mut self,
        offset: u32,
        first: Actor,
    ) -> Option<[u32; W]> {
        let warp = usize::from(first.thread / 32);
        let known = &self.known;
        if self.grain != 2
            || self.mbarriers.warps > 0
            || matches!(known.seen.get(warp), Some(Some(_)))
        {
            return None;
        }
        let place = (offset / 4) as usize;
        let cells = self.cells.get_mut(place..place + W)?;
        let is_before = |cell: &Cell| {
            let Mark { epoch, kind, .. } = cell.writer;
            let plain = matches!(kind, Kind::Once | Kind::Lanes | Kind::Warps);
            cell.generation == self.generation && plain && epoch < first.epoch
        };
        if !cells.iter().all(is_before) {
            return None;
        }
        // The second lane turns the mark from one reader into several. The other lanes change only
        // which reader was last.
        let second = Actor { thread: first.thread + 1, ..first };
        for cell in cells {
            cell.note_read(first, known);
            cell.note_read(second, known);
            cell.reader.thread = first.thread + 31;
        }
        let mut value = [0; W];
        value.copy_from_slice(self.words.get(place..place + W)?);
        Some(value)
    }

    /// Writes `W` words, or the low `bytes` bytes of `value` if they are less than a word.
    #[inline(always)]
    pub(crate) fn write<const W: usize>(
        &mut self,
        offset: u32,
        bytes: u32,
        value: &[u32; W],
        actor: Actor,
    ) -> Result<(), Fault> {
        if self.mbarriers.warps > 0 {
            let same = self.peek::<W>(offset, bytes) == *value;
            self.write_cells(offset, bytes, actor, same)?;
            self.poke(offset, bytes, value);
            return Ok(());
        }
        if self.grain == 2 {
            let first = (offset / 4) as usize;
            let words = &mut self.words[first..first + W];
            for (cell, (word, value)) in self.cells[first..].iter_mut().zip(words.iter().zip(value))
            {
                cell.of(self.generation).write(actor, &self.known, || word == value)?;
            }
            words.copy_from_slice(value);
            return Ok(());
        }
        let same = self.peek::<W>(offset, bytes) == *value;
        let (cells, known) = self.cells(offset, bytes);
        for cell in cells {
            cell.write(actor, known, || same)?;
        }
        self.poke(offset, bytes, value);
        Ok(())
    }

    /// Replaces a value by the second result of `new` in one step. Returns the first result.
    pub(crate) fn update<const W: usize>(
        &mut self,
        offset: u32,
        bytes: u32,
        actor: Actor,
        new: impl Fn([u32; W]) -> (u64, [u32; W]),
    ) -> Result<u64, Fault> {
        let (cells, known) = self.cells(offset, bytes);
        for cell in cells {
            cell.may_be_read(actor, known)?;
        }
        let (old, value) = new(self.peek(offset, bytes));
        self.write(offset, bytes, &value, actor)?;
        Ok(old)
    }

    /// Records a read of a place that is not fully written. A concurrent write is a race.
    #[cold]
    pub(crate) fn note_unwritten(
        &mut self,
        offset: u32,
        bytes: u32,
        actor: Actor,
    ) -> Result<(), Fault> {
        let (cells, known) = self.cells(offset, bytes);
        for cell in cells {
            match cell.may_be_read(actor, known) {
                Ok(()) | Err(Fault::Uninitialized | Fault::Unfounded { .. }) => {
                    cell.note_read(actor, known);
                }
                Err(fault) => return Err(fault),
            }
        }
        Ok(())
    }

    /// Marks a place as written with an unwritten value, which `read` had read elsewhere.
    #[cold]
    pub(crate) fn leave_unwritten(&mut self, offset: u32, bytes: u32, read: &Arc<FirstRead>) {
        self.cells(offset, bytes).0.for_each(|cell| cell.writer.kind = Kind::Unfounded);
        self.origins.extend(self.range(offset, bytes).map(|cell| (cell, read.clone())));
    }

    /// Returns the read that took the unwritten value which was then written here, if one did.
    #[cold]
    pub(crate) fn origin(&mut self, offset: u32, bytes: u32) -> Option<Arc<FirstRead>> {
        let kind = |cell: &mut Cell| cell.of(self.generation).writer.kind;
        let mut kinds = self.range(offset, bytes).map(|cell| (cell, kind(&mut self.cells[cell])));
        let (cell, _) = kinds.find(|(_, kind)| *kind == Kind::Unfounded)?;
        self.origins.get(&cell).cloned()
    }

    /// Begins a `cp.async` to a place.
    pub(crate) fn expect(&mut self, offset: u32, bytes: u32, actor: Actor) -> Result<(), Fault> {
        if self.mbarriers.warps > 0 {
            self.write_cells(offset, bytes, actor, false)?;
        } else {
            let (cells, known) = self.cells(offset, bytes);
            for cell in cells {
                cell.write(actor, known, || false)?;
            }
        }
        self.cells(offset, bytes).0.for_each(|cell| cell.writer.kind = Kind::Pending);
        Ok(())
    }

    /// Completes a `cp.async` after the thread that started it has waited for it.
    pub(crate) fn arrive(&mut self, offset: u32, bytes: u32, value: [u32; 4], actor: Actor) {
        for cell in self.cells(offset, bytes).0 {
            (cell.writer, cell.reader) = (Mark::of(actor, Kind::Once), Mark::default());
        }
        let (first, count) = ((offset / 4) as usize, (bytes / 4) as usize);
        self.words[first..first + count].copy_from_slice(&value[..count]);
    }

    #[inline(always)]
    fn cells(&mut self, offset: u32, bytes: u32) -> (impl Iterator<Item = &mut Cell>, &Known) {
        let range = self.range(offset, bytes);
        let cells = self.cells[range].iter_mut();
        (cells.map(|cell| cell.of(self.generation)), &self.known)
    }

    #[inline(always)]
    fn range(&self, offset: u32, bytes: u32) -> std::ops::Range<usize> {
        let first = (offset >> self.grain) as usize;
        first..first + (bytes >> self.grain).max(1) as usize
    }

    fn peek<const W: usize>(&self, offset: u32, bytes: u32) -> [u32; W] {
        let first = (offset / 4) as usize;
        let mut value = [0; W];
        value.copy_from_slice(&self.words[first..first + W]);
        if bytes < 4 {
            value[0] = value[0] >> (8 * (offset % 4)) & part(bytes);
        }
        value
    }

    fn poke<const W: usize>(&mut self, offset: u32, bytes: u32, value: &[u32; W]) {
        let first = (offset / 4) as usize;
        if bytes < 4 {
            let (shift, word) = (8 * (offset % 4), &mut self.words[first]);
            *word = *word & !(part(bytes) << shift) | (value[0] & part(bytes)) << shift;
        } else {
            self.words[first..first + W].copy_from_slice(value);
        }
    }
}

/// Returns the mask of the low bits of a word that an access of `bytes` bytes covers.
fn part(bytes: u32) -> u32 {
    if bytes == 1 { 0xff } else { 0xffff }
}

impl Cell {
    /// Returns the cell, which is reset if it is of another generation.
    #[inline(always)]
    fn of(&mut self, generation: u64) -> &mut Cell {
        if self.generation != generation {
            *self = Cell { generation, ..Cell::default() };
        }
        self
    }

    #[inline(always)]
    fn may_be_read(&self, now: Actor, known: &Known) -> Result<(), Fault> {
        self.writer.is_free()?;
        if self.writer.conflicts(now, known) {
            return Err(self.writer.race(now, true));
        }
        match self.writer.kind {
            Kind::Never => Err(Fault::Uninitialized),
            Kind::Unfounded => Err(Fault::Unfounded { other: self.writer.place() }),
            _ => Ok(()),
        }
    }

    #[inline(always)]
    fn read(&mut self, now: Actor, known: &Known) -> Result<(), Fault> {
        self.may_be_read(now, known)?;
        self.note_read(now, known);
        Ok(())
    }

    #[inline(always)]
    fn note_read(&mut self, now: Actor, known: &Known) {
        let before = self.reader;
        let kind = if before.ordered_before(now, known) {
            Kind::Once
        } else if before.kind == Kind::Warps || before.thread / 32 != now.thread / 32 {
            Kind::Warps
        } else {
            Kind::Lanes
        };
        let sync = now.sync && (kind == Kind::Once || before.sync);
        self.reader = Mark::of(Actor { sync, ..now }, kind);
    }

    #[inline(always)]
    fn write(
        &mut self,
        now: Actor,
        known: &Known,
        same_value: impl FnOnce() -> bool,
    ) -> Result<(), Fault> {
        let before = self.writer;
        before.is_free()?;
        if before.conflicts(now, known) {
            // If lanes of one instruction write the same value, the result is certain.
            let together = before.pc == now.pc && before.thread / 32 == now.thread / 32;
            if !(together && same_value()) {
                return Err(before.race(now, true));
            }
        }
        if self.reader.conflicts(now, known) {
            return Err(self.reader.race(now, false));
        }
        // A thread's atomic access does not hide its plain access: other threads are still not
        // ordered after the plain one.
        let remains = |mark: Mark| {
            let Mark { epoch, warp_epoch, thread, .. } = mark;
            now.sync
                && !mark.sync
                && mark.kind == Kind::Once
                && (epoch, warp_epoch, thread) == (now.epoch, now.warp_epoch, now.thread)
        };
        if !remains(self.writer) {
            self.writer = Mark::of(now, Kind::Once);
        }
        if !remains(self.reader) {
            self.reader = Mark::default();
        }
        Ok(())
    }
}
