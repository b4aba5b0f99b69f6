//! What orders accesses to global memory between the warps of a launch whose blocks run together.
//!
//! Every warp has a vector clock: for each warp, up to which of its steps this one has seen. A barrier
//! joins the clocks of a block; a release (or a fence and then a relaxed store) leaves the clock at the word,
//! and an acquire (or a relaxed load and then a fence) takes it from there. Two accesses of one word race
//! if at least one writes, not both are synchronising, and the later warp has not seen the earlier access.
//! (Mattern, 1989; the form for race detection is that of FastTrack, Flanagan and Freund, 2009, with warps
//! for threads.)

use std::collections::HashMap;

type Clock = Vec<u32>;

/// A warp's number in the launch.
pub(crate) type Unit = usize;

#[derive(Debug)]
pub(crate) struct Order {
    clocks: Vec<Clock>,
    /// The clock at a warp's last fence: what a relaxed store publishes.
    fenced: Vec<Option<Clock>>,
    /// What relaxed loads have seen: a fence takes it over.
    seen: Vec<Clock>,
    /// What happened to every two bytes.
    halves: HashMap<u64, History>,
}

#[derive(Debug, Default)]
struct History {
    write: Option<Step>,
    reads: Vec<Step>,
    /// What a release left here.
    published: Clock,
}

/// An access: who, at which of its steps, and where in the code.
#[derive(Debug, Clone, Copy)]
struct Step {
    unit: Unit,
    time: u32,
    pc: u32,
    sync: bool,
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

/// The access that races with the one made: by whom, where, and whether it wrote.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Conflict {
    pub(crate) unit: Unit,
    pub(crate) pc: u32,
    pub(crate) wrote: bool,
}

impl Order {
    pub(crate) fn new(units: usize) -> Order {
        let clocks = (0..units).map(|unit| {
            let mut clock = vec![0; units];
            clock[unit] = 1;
            clock
        });
        Order {
            clocks: clocks.collect(),
            fenced: vec![None; units],
            seen: vec![Clock::new(); units],
            halves: HashMap::new(),
        }
    }

    /// Notes an access of `bytes` bytes.
    pub(crate) fn access(
        &mut self,
        unit: Unit,
        address: u64,
        bytes: u32,
        access: Access,
    ) -> Result<(), Conflict> {
        // Rows of 16-bit values may meet within a word.
        for place in address / 2..(address + u64::from(bytes)).div_ceil(2) {
            self.access_half(unit, place, access)?;
        }
        if access.sync && access.writes && access.release {
            self.clocks[unit][unit] += 1;
        }
        Ok(())
    }

    fn access_half(&mut self, unit: Unit, place: u64, access: Access) -> Result<(), Conflict> {
        let history = self.halves.entry(place).or_default();
        let clock = &mut self.clocks[unit];
        let unseen = |step: &Step| {
            step.unit != unit && step.time > clock[step.unit] && !(step.sync && access.sync)
        };
        if let Some(step) = history.write.filter(unseen) {
            return Err(Conflict { unit: step.unit, pc: step.pc, wrote: true });
        }
        if access.writes
            && let Some(step) = history.reads.iter().find(|step| unseen(step))
        {
            return Err(Conflict { unit: step.unit, pc: step.pc, wrote: false });
        }
        let step = Step { unit, time: clock[unit], pc: access.pc, sync: access.sync };
        if access.reads && access.sync {
            if access.acquire {
                join(clock, &history.published);
            } else {
                join(&mut self.seen[unit], &history.published);
            }
        }
        if access.writes {
            // The warp's own plain accesses are not made up for by its synchronising ones.
            let remains = |old: &Step| access.sync && !old.sync && old.unit == unit;
            if !history.write.as_ref().is_some_and(remains) {
                history.write = Some(step);
            }
            history.reads.retain(remains);
            if access.sync {
                // An atomic operation carries on what was published; a plain store ends it.
                if !access.reads {
                    history.published.clear();
                }
                if access.release {
                    join(&mut history.published, clock);
                } else if let Some(fenced) = &self.fenced[unit] {
                    join(&mut history.published, fenced);
                }
            }
        } else {
            history.reads.retain(|read| read.unit != unit);
            history.reads.push(step);
        }
        Ok(())
    }

    /// A fence of device scope.
    pub(crate) fn fence(&mut self, unit: Unit) {
        let clock = &mut self.clocks[unit];
        join(clock, &self.seen[unit]);
        self.fenced[unit] = Some(clock.clone());
        clock[unit] += 1;
    }

    /// A barrier of the block whose warps these are.
    pub(crate) fn barrier(&mut self, units: std::ops::Range<Unit>) {
        let mut all = Clock::new();
        for unit in units.clone() {
            join(&mut all, &self.clocks[unit]);
        }
        for unit in units {
            self.clocks[unit].clone_from(&all);
            self.clocks[unit][unit] += 1;
        }
    }
}

fn join(clock: &mut Clock, other: &[u32]) {
    if clock.len() < other.len() {
        clock.resize(other.len(), 0);
    }
    for (mine, theirs) in clock.iter_mut().zip(other) {
        *mine = (*mine).max(*theirs);
    }
}
