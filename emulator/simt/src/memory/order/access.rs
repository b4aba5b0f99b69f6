//! Accesses as they are ordered, and what a warp has seen.

use super::clock::{Clock, Clocks};
use crate::isa::Order as Semantics;
use crate::report::{Account, Fault, Result, uncounted};

/// A warp's number in the launch.
pub(crate) type Unit = usize;

/// An mbarrier's block, and its place in shared memory.
pub(crate) type Mbarrier = (u64, u32);

/// What a warp has seen.
#[derive(Debug, Clone, Default)]
pub(super) struct Warp {
    /// Its own step.
    pub(super) time: u32,
    /// Of the others: up to which of their steps it has seen them.
    pub(super) clock: Clock,
    /// Its clock at its last fence, its own step included: what a relaxed store publishes.
    pub(super) fenced: Clock,
    /// What relaxed loads have seen: a fence takes it over.
    pub(super) seen: Clock,
}

impl Warp {
    /// Its clock, its own step included.
    pub(super) fn whole(
        &self,
        account: &mut Account<'_>,
        step: Step,
        clocks: &mut Clocks,
    ) -> Result<Clock> {
        let mut clock = self.clock.clone();
        clocks.set(account, &mut clock, step.unit as usize, step.time)?;
        Ok(clock)
    }

    /// Its next step.
    pub(super) fn tick(&mut self) -> Result<()> {
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

/// An access: who, at which of its steps, and where in the code.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub(super) unit: u32,
    pub(super) time: u32,
    pub(super) pc: u32,
    pub(super) sync: bool,
}
