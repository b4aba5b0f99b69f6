//! Accesses with their ordering semantics, and what a warp has seen.

use super::clock::{Clock, Clocks};
use crate::isa::Order as Semantics;
use crate::report::{Account, Fault, Result, uncounted};

/// A warp's number in the launch.
pub(crate) type Unit = usize;

/// An mbarrier, by its block and its offset in shared memory.
pub(crate) type Mbarrier = (u64, u32);

/// The time and the knowledge of a warp.
#[derive(Debug, Clone, Default)]
pub(super) struct Warp {
    /// The number of its present step.
    pub(super) time: u32,
    /// For each other warp, the last of its steps that this warp has seen.
    pub(super) clock: Clock,
    /// Its clock at its last fence, with its own step: what a relaxed store publishes.
    pub(super) fenced: Clock,
    /// The clocks that its relaxed loads have read. The next fence takes them over.
    pub(super) seen: Clock,
}

impl Warp {
    /// Returns its clock with its own step.
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

    /// Begins its next step.
    pub(super) fn tick(&mut self) -> Result<()> {
        match self.time.checked_add(1) {
            Some(next) => self.time = next,
            None => return uncounted("steps of a warp that order it with others", 0),
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Access {
    pub(crate) pc: u32,
    pub(crate) reads: bool,
    pub(crate) writes: bool,
    /// True if it is relaxed, volatile, acquire, release or atomic.
    pub(crate) sync: bool,
    pub(crate) acquire: bool,
    pub(crate) release: bool,
}

/// The effect of a synchronising access on what is published at its place. Global and shared memory
/// follow this one rule.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hands {
    pub(crate) takes: Option<Takes>,
    /// True for a plain store, which ends what was published. An atomic operation carries it on.
    pub(crate) ends: bool,
    pub(crate) leaves: Option<Leaves>,
}

/// The time at which the reader takes over what was published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    /// At once: the access acquires.
    AtOnce,
    AtFence,
}

/// The part of its clock that the writer publishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaves {
    /// All that it has done and seen: the access releases.
    Whole,
    /// The clock at its last fence: all that it had done and seen then.
    Fenced,
}

/// Returns an address, beyond all buffers, for a word of shared memory that synchronises. `first`
/// is the number of the block's first warp.
pub(crate) fn shared_place(first: Unit, offset: u32) -> u64 {
    1 << 63 | (first as u64) << 20 | u64::from(offset)
}

impl Access {
    /// Returns an access that reads, writes or does both, with the order of its instruction.
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

/// The earlier access that races: its warp, its instruction, and true if it wrote.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Conflict {
    pub(crate) unit: Unit,
    pub(crate) pc: u32,
    pub(crate) wrote: bool,
}

/// The reason why an access is refused.
#[derive(Debug)]
pub(crate) enum Refused {
    /// It races with another access.
    Race(Conflict),
    /// The launch may not use the bytes of the host that its record takes.
    Fault(Box<Fault>),
}

impl From<Box<Fault>> for Refused {
    fn from(fault: Box<Fault>) -> Refused {
        Refused::Fault(fault)
    }
}

/// An access: its warp, the warp's step, and the instruction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub(super) unit: u32,
    pub(super) time: u32,
    pub(super) pc: u32,
    pub(super) sync: bool,
}
