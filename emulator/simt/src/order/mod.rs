//! What orders accesses to global memory between the warps of a launch whose blocks run together.
//!
//! Every warp has a vector clock: for each warp, up to which of its steps this one has seen. A
//! barrier joins the clocks of a block; a release (or a fence and then a relaxed store) leaves the
//! clock at the word, and an acquire (or a relaxed load and then a fence) takes it from there. Two
//! accesses of one word race if at least one writes, not both are synchronising, and the later warp
//! has not seen the earlier access. (Mattern, 1989; the form for race detection is that of
//! FastTrack, Flanagan and Freund, 2009, with warps for threads.)

mod clock;
mod history;
mod shadow;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use clock::{Clock, Clocks};
use history::{Cell, Histories, Part, Said, Step};
use shadow::Shadow;

use super::bounds::{Account, bytes_of, refill};
use super::machine::fault::{Fault, Result};
use super::machine::step::uncounted;
use super::program::Order as Semantics;

/// A warp's number in the launch.
pub(crate) type Unit = usize;

#[derive(Debug, Clone)]
pub(crate) struct Order {
    warps: Vec<Warp>,
    clocks: Clocks,
    shadow: Shadow,
    /// Of words that have more than a cell says.
    histories: Vec<Histories>,
    /// Accesses to such words.
    accesses: u64,
    /// Of each mbarrier, by its block and place: what those have seen who have arrived in its
    /// phase, and in the one before.
    mbarriers: HashMap<Mbarrier, [Clock; 2]>,
}

/// An mbarrier's block, and its place in shared memory.
pub(crate) type Mbarrier = (u64, u32);

/// What a warp has seen.
#[derive(Debug, Clone, Default)]
struct Warp {
    /// Its own step.
    time: u32,
    /// Of the others: up to which of their steps it has seen them.
    clock: Clock,
    /// Its clock at its last fence, its own step included: what a relaxed store publishes.
    fenced: Clock,
    /// What relaxed loads have seen: a fence takes it over.
    seen: Clock,
}

impl Warp {
    /// Its clock, its own step included.
    fn whole(&self, account: &mut Account<'_>, step: Step, clocks: &mut Clocks) -> Result<Clock> {
        let mut clock = self.clock.clone();
        clocks.set(account, &mut clock, step.unit as usize, step.time)?;
        Ok(clock)
    }

    /// Its next step.
    fn tick(&mut self) -> Result<()> {
        match self.time.checked_add(1) {
            Some(next) => self.time = next,
            None => return uncounted("steps of a warp that order it with others", 0),
        }
        Ok(())
    }
}

/// An access to a word.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Access {
    pub(crate) pc: u32,
    pub(crate) reads: bool,
    pub(crate) writes: bool,
    /// Relaxed, volatile, acquire, release or atomic.
    pub(crate) sync: bool,
    pub(crate) acquire: bool,
    pub(crate) release: bool,
}

/// What a synchronising access does with what is published at its place: one rule for global and
/// for shared memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hands {
    pub(crate) takes: Option<Takes>,
    /// What was published there is over: an atomic operation carries it on, a plain store ends it.
    pub(crate) ends: bool,
    pub(crate) leaves: Option<Leaves>,
}

/// When the reader has what was published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    /// It acquires.
    AtOnce,
    AtFence,
}

/// What the writer publishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaves {
    /// It releases: all that it has done and seen.
    Whole,
    /// What it had done and seen at its last fence.
    Fenced,
}

/// The address of a word of shared memory that synchronises: beyond all buffers. The block is that
/// of a warp of this number, its first.
pub(crate) fn shared_place(first: Unit, offset: u32) -> u64 {
    1 << 63 | (first as u64) << 20 | u64::from(offset)
}

impl Access {
    /// One that reads or writes or both, ordered as its instruction says.
    pub(crate) fn of(pc: u32, order: Semantics, [reads, writes]: [bool; 2]) -> Access {
        let acquire = matches!(order, Semantics::Acquire | Semantics::AcquireRelease);
        let release = matches!(order, Semantics::Release | Semantics::AcquireRelease);
        Access { pc, reads, writes, sync: order != Semantics::Weak, acquire, release }
    }

    pub(crate) fn hands(&self) -> Hands {
        let [reads, writes] = [self.reads, self.writes].map(|does| does && self.sync);
        Hands {
            takes: reads.then_some(if self.acquire { Takes::AtOnce } else { Takes::AtFence }),
            ends: writes && !reads,
            leaves: writes.then_some(if self.release { Leaves::Whole } else { Leaves::Fenced }),
        }
    }
}

/// The access that races with the one made: by whom, where, and whether it wrote.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Conflict {
    pub(crate) unit: Unit,
    pub(crate) pc: u32,
    pub(crate) wrote: bool,
}

/// Why an access cannot be.
#[derive(Debug)]
pub(crate) enum Refused {
    /// It races with another.
    Race(Conflict),
    /// The launch may not use what it takes to know.
    Fault(Box<Fault>),
}

impl From<Box<Fault>> for Refused {
    fn from(fault: Box<Fault>) -> Refused {
        Refused::Fault(fault)
    }
}

/// What the clocks' bytes are needed for.
const CLOCKS: &str = "the order of accesses by warps that run together";

impl Order {
    pub(crate) fn new(account: &mut Account<'_>, units: usize) -> Result<Order> {
        account.take(bytes_of::<Warp>(units as u64), CLOCKS)?;
        let mut warps = Vec::new();
        refill(&mut warps, units, Warp { time: 1, ..Warp::default() }, CLOCKS)?;
        Ok(Order {
            warps,
            clocks: Clocks::new(units),
            shadow: Shadow::new(),
            histories: Vec::new(),
            accesses: 0,
            mbarriers: HashMap::new(),
        })
    }

    /// What it takes of the host. Clocks share their nodes with those of a copy: all of these count
    /// once.
    pub(crate) fn held(&self) -> u64 {
        let histories: u64 = self.histories.iter().map(Histories::held).sum();
        let unused = (self.histories.capacity() - self.histories.len()) as u64;
        bytes_of::<Warp>(self.warps.capacity() as u64)
            + self.shadow.held()
            + histories
            + bytes_of::<Histories>(unused)
            + bytes_of::<(Mbarrier, [Clock; 2])>(self.mbarriers.capacity() as u64)
            + self.clocks.held()
    }

    /// Notes an access of `bytes` bytes.
    pub(crate) fn access(
        &mut self,
        account: &mut Account<'_>,
        unit: Unit,
        address: u64,
        bytes: u32,
        access: Access,
    ) -> std::result::Result<(), Refused> {
        let warp = &self.warps[unit];
        let step = Step { unit: unit as u32, time: warp.time, pc: access.pc, sync: access.sync };
        let end = address + u64::from(bytes);
        match Cell::of(step, access.writes).filter(|_| (address | end).is_multiple_of(4)) {
            Some(mine) => {
                for word in address / 4..end / 4 {
                    let cell = self.shadow.cell(account, word)?;
                    let known = (&self.warps[unit], &self.clocks);
                    match cell.after(mine, (step, access.writes), known)? {
                        Some(after) => *cell = after,
                        None => self.access_word(account, word, [true, true], step, access)?,
                    }
                }
            }
            None => {
                for word in address / 4..end.div_ceil(4) {
                    let first = 2 * word;
                    let halves = address / 2..end.div_ceil(2);
                    let halves = [first, first + 1].map(|half| halves.contains(&half));
                    self.access_word(account, word, halves, step, access)?;
                }
            }
        }
        if access.sync && access.writes && access.release {
            self.warps[unit].tick()?;
        }
        Ok(())
    }

    fn access_word(
        &mut self,
        account: &mut Account<'_>,
        word: u64,
        halves: [bool; 2],
        step: Step,
        access: Access,
    ) -> std::result::Result<(), Refused> {
        let cell = self.shadow.cell(account, word)?;
        let number = match cell.said() {
            Said::More(number) => number,
            said => {
                account.room(&mut self.histories, CLOCKS)?;
                let number = self.histories.len();
                self.histories.push(Histories::of(account, &said)?);
                *cell = Cell::more(number);
                number
            }
        };
        self.accesses += 1;
        let part = Part { access, step, halves, number: self.accesses };
        let warp = &mut self.warps[step.unit as usize];
        self.histories[number].access(account, &part, warp, &mut self.clocks)
    }

    /// Whether something has been written since the launch began to a word, or for certain to what
    /// is read of it, if that is not all (`whole`).
    pub(crate) fn has_written(
        &mut self,
        account: &mut Account<'_>,
        word: u64,
        whole: bool,
    ) -> Result<bool> {
        Ok(match self.shadow.cell(account, word)?.said() {
            Said::Nothing | Said::Read(_) => false,
            Said::Written(_) => true,
            Said::More(number) => whole && self.histories[number].have_written(),
        })
    }

    /// A fence of device scope.
    pub(crate) fn fence(&mut self, account: &mut Account<'_>, unit: Unit) -> Result<()> {
        let (warp, clocks) = (&mut self.warps[unit], &mut self.clocks);
        clocks.join(account, &mut warp.clock, &warp.seen)?;
        warp.fenced = warp.clock.clone();
        clocks.set(account, &mut warp.fenced, unit, warp.time)?;
        warp.tick()
    }

    /// An mbarrier begins.
    pub(crate) fn initialize(
        &mut self,
        account: &mut Account<'_>,
        mbarrier: Mbarrier,
    ) -> Result<()> {
        account.room_in(&mut self.mbarriers, CLOCKS)?;
        self.mbarriers.insert(mbarrier, Default::default());
        Ok(())
    }

    /// A barrier by its number is used, perhaps for the first time.
    pub(crate) fn begin(&mut self, account: &mut Account<'_>, barrier: Mbarrier) -> Result<()> {
        if self.mbarriers.contains_key(&barrier) {
            Ok(())
        } else {
            self.initialize(account, barrier)
        }
    }

    /// Such a barrier opens without that another one arrives.
    pub(crate) fn open(&mut self, barrier: Mbarrier) {
        if let Some([arrived, before]) = self.mbarriers.get_mut(&barrier) {
            *before = std::mem::take(arrived);
        }
    }

    /// A warp arrives at an mbarrier, whose phase may be over with that.
    pub(crate) fn arrive(
        &mut self,
        account: &mut Account<'_>,
        unit: Unit,
        mbarrier: Mbarrier,
        over: bool,
    ) -> Result<()> {
        let Some([arrived, before]) = self.mbarriers.get_mut(&mbarrier) else { return Ok(()) };
        let (warp, clocks) = (&mut self.warps[unit], &mut self.clocks);
        clocks.join(account, arrived, &warp.clock)?;
        clocks.set(account, arrived, unit, warp.time)?;
        if over {
            *before = std::mem::take(arrived);
        }
        warp.tick()
    }

    /// A warp finds that the phase before that of an mbarrier is over.
    pub(crate) fn wait(
        &mut self,
        account: &mut Account<'_>,
        unit: Unit,
        mbarrier: Mbarrier,
    ) -> Result<()> {
        let Some([_, before]) = self.mbarriers.get(&mbarrier) else { return Ok(()) };
        self.clocks.join(account, &mut self.warps[unit].clock, before)
    }

    /// A barrier of the block whose warps these are.
    pub(crate) fn barrier(
        &mut self,
        account: &mut Account<'_>,
        units: std::ops::Range<Unit>,
    ) -> Result<()> {
        let mut joined = Clock::default();
        for warp in &self.warps[units.clone()] {
            self.clocks.join(account, &mut joined, &warp.clock)?;
        }
        for unit in units.clone() {
            self.clocks.set(account, &mut joined, unit, self.warps[unit].time)?;
        }
        for warp in &mut self.warps[units] {
            warp.clock = joined.clone();
            warp.tick()?;
        }
        Ok(())
    }
}
