//! What orders accesses to global memory between the warps of a launch whose blocks run together.
//!
//! Every warp has a vector clock: for each warp, up to which of its steps this one has seen. A barrier
//! joins the clocks of a block; a release (or a fence and then a relaxed store) leaves the clock at the word,
//! and an acquire (or a relaxed load and then a fence) takes it from there. Two accesses of one word race
//! if at least one writes, not both are synchronising, and the later warp has not seen the earlier access.
//! (Mattern, 1989; the form for race detection is that of FastTrack, Flanagan and Freund, 2009, with warps
//! for threads.)

use std::collections::HashMap;

use super::bounds::{Account, bytes_of, refill, reserve};
use super::machine::fault::{Fault, Result};
use super::machine::step::uncounted;

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
    /// What the warps of a block have seen together, at its last barrier.
    joined: Clock,
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
        let each = (units as u64 + 1).saturating_mul(bytes_of::<u32>(units as u64));
        let headers = bytes_of::<(Clock, Option<Clock>, Clock)>(units as u64);
        account.take(each.saturating_add(headers), CLOCKS)?;
        let mut order = Order {
            clocks: Vec::new(),
            fenced: Vec::new(),
            seen: Vec::new(),
            joined: Clock::new(),
            halves: HashMap::new(),
        };
        refill(&mut order.clocks, units, Clock::new(), CLOCKS)?;
        refill(&mut order.fenced, units, None, CLOCKS)?;
        refill(&mut order.seen, units, Clock::new(), CLOCKS)?;
        reserve(&mut order.joined, units, CLOCKS)?;
        for (unit, clock) in order.clocks.iter_mut().enumerate() {
            refill(clock, units, 0, CLOCKS)?;
            clock[unit] = 1;
        }
        Ok(order)
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
        // Rows of 16-bit values may meet within a word.
        for place in address / 2..(address + u64::from(bytes)).div_ceil(2) {
            self.access_half(account, unit, place, access)?;
        }
        if access.sync && access.writes && access.release {
            tick(&mut self.clocks[unit], unit)?;
        }
        Ok(())
    }

    fn access_half(
        &mut self,
        account: &mut Account<'_>,
        unit: Unit,
        place: u64,
        access: Access,
    ) -> std::result::Result<(), Refused> {
        account.room_in(&mut self.halves, CLOCKS)?;
        let history = self.halves.entry(place).or_default();
        let clock = &mut self.clocks[unit];
        let unseen = |step: &Step| {
            step.unit != unit && step.time > clock[step.unit] && !(step.sync && access.sync)
        };
        let race = |step: &Step, wrote| {
            Err(Refused::Race(Conflict { unit: step.unit, pc: step.pc, wrote }))
        };
        if let Some(step) = history.write.filter(unseen) {
            return race(&step, true);
        }
        if access.writes
            && let Some(step) = history.reads.iter().find(|step| unseen(step))
        {
            return race(step, false);
        }
        let step = Step { unit, time: clock[unit], pc: access.pc, sync: access.sync };
        if access.reads && access.sync {
            if access.acquire {
                join(account, clock, &history.published)?;
            } else {
                join(account, &mut self.seen[unit], &history.published)?;
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
                    join(account, &mut history.published, clock)?;
                } else if let Some(fenced) = &self.fenced[unit] {
                    join(account, &mut history.published, fenced)?;
                }
            }
        } else {
            history.reads.retain(|read| read.unit != unit);
            account.room(&mut history.reads, CLOCKS)?;
            history.reads.push(step);
        }
        Ok(())
    }

    /// A fence of device scope.
    pub(crate) fn fence(&mut self, account: &mut Account<'_>, unit: Unit) -> Result<()> {
        let clock = &mut self.clocks[unit];
        join(account, clock, &self.seen[unit])?;
        let fenced = self.fenced[unit].get_or_insert_default();
        fenced.clear();
        join(account, fenced, clock)?;
        tick(clock, unit)
    }

    /// A barrier of the block whose warps these are.
    pub(crate) fn barrier(&mut self, units: std::ops::Range<Unit>) -> Result<()> {
        self.joined.clear();
        self.joined.resize(self.clocks.len(), 0);
        for unit in units.clone() {
            raise(&mut self.joined, &self.clocks[unit]);
        }
        for unit in units {
            self.clocks[unit].clone_from(&self.joined);
            tick(&mut self.clocks[unit], unit)?;
        }
        Ok(())
    }
}

/// The warp's next step.
fn tick(clock: &mut Clock, unit: Unit) -> Result<()> {
    match clock[unit].checked_add(1) {
        Some(next) => clock[unit] = next,
        None => return uncounted("steps of a warp that order it with others", 0),
    }
    Ok(())
}

fn join(account: &mut Account<'_>, clock: &mut Clock, other: &[u32]) -> Result<()> {
    if clock.len() < other.len() {
        account.room_for(clock, other.len(), CLOCKS)?;
        clock.resize(other.len(), 0);
    }
    raise(clock, other);
    Ok(())
}

fn raise(clock: &mut Clock, other: &[u32]) {
    for (mine, theirs) in clock.iter_mut().zip(other) {
        *mine = (*mine).max(*theirs);
    }
}
