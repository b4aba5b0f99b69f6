//! The order of accesses to global memory by the warps of a launch whose blocks are co-scheduled.
//!
//! The method is happens-before by vector clocks (Mattern, 1989), in the form that FastTrack gave
//! it for race detection (Flanagan and Freund, 2009), with warps for threads. Time advances by
//! warp: each warp counts its own steps, and its clock holds, for each other warp, the number of
//! the last step that this warp has seen. A step ends where a warp publishes something, so all
//! accesses of one step are published together.
//!
//! Clocks move from warp to warp in these ways. A barrier joins the clocks of a block. A release
//! stores the clock of its warp at the word, and a relaxed store stores the clock of the warp's
//! last fence. An acquire joins the clock at the word into the clock of its warp, and a relaxed
//! load joins it at the warp's next fence. An mbarrier collects the clocks of the warps that arrive
//! and hands them to the warps that find the phase over.
//!
//! Two accesses to one word race if at least one writes, not both are synchronising, and the later
//! warp has not seen the step of the earlier access. So a word needs its last write and, for each
//! warp, the last read after it. Most words need less, which `history` stores in one cell of 64
//! bits. Clocks share their equal parts (`clock`), since a launch may have thousands of warps.
//!
//! Tested by `tests` against a plain model, and by `cases/blocks.ptx` and `suite/side_by_side.rs`.

mod access;
mod clock;
mod history;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use crate::report::{Account, Result, bytes_of, refill};
use access::{Mbarrier, Step, Unit, Warp};
use clock::{CLOCKS, Clock, Clocks};
use history::{Cell, Contents, Histories, Part, Shadow};

pub(crate) use access::{Access, Conflict, Hands, Leaves, Refused, Takes, shared_place};

#[derive(Debug, Clone)]
pub(crate) struct Order {
    warps: Vec<Warp>,
    clocks: Clocks,
    shadow: Shadow,
    /// The histories of words that need more than a cell.
    histories: Vec<Histories>,
    /// The number of accesses to such words.
    accesses: u64,
    /// The clocks of the present phase of each mbarrier, and of the phase before.
    mbarriers: HashMap<Mbarrier, [Clock; 2]>,
}

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

    /// Returns the bytes of the host that it takes. Nodes that several clocks share count once.
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

    /// Records an access of `bytes` bytes.
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
        let number = match cell.contents() {
            Contents::More(number) => number,
            contents => {
                account.room(&mut self.histories, CLOCKS)?;
                let number = self.histories.len();
                self.histories.push(Histories::of(account, &contents)?);
                *cell = Cell::more(number);
                number
            }
        };
        self.accesses += 1;
        let part = Part { access, step, halves, number: self.accesses };
        let warp = &mut self.warps[step.unit as usize];
        self.histories[number].access(account, &part, warp, &mut self.clocks)
    }

    /// Returns true if the launch has written to a word. For a read of a part of a word (`whole` is
    /// false), returns true only if that part is certainly written.
    pub(crate) fn has_written(
        &mut self,
        account: &mut Account<'_>,
        word: u64,
        whole: bool,
    ) -> Result<bool> {
        Ok(match self.shadow.cell(account, word)?.contents() {
            Contents::Nothing | Contents::Read(_) => false,
            Contents::Written(_) => true,
            Contents::More(number) => whole && self.histories[number].have_written(),
        })
    }

    /// Executes a fence of device scope.
    pub(crate) fn fence(&mut self, account: &mut Account<'_>, unit: Unit) -> Result<()> {
        let (warp, clocks) = (&mut self.warps[unit], &mut self.clocks);
        clocks.join(account, &mut warp.clock, &warp.seen)?;
        warp.fenced = warp.clock.clone();
        clocks.set(account, &mut warp.fenced, unit, warp.time)?;
        warp.tick()
    }

    /// Adds an mbarrier, whose clocks are empty.
    pub(crate) fn initialize(&mut self, account: &mut Account<'_>, key: Mbarrier) -> Result<()> {
        account.room_in(&mut self.mbarriers, CLOCKS)?;
        self.mbarriers.insert(key, Default::default());
        Ok(())
    }

    /// Adds a named barrier if this is its first use.
    pub(crate) fn begin(&mut self, account: &mut Account<'_>, barrier: Mbarrier) -> Result<()> {
        if self.mbarriers.contains_key(&barrier) {
            Ok(())
        } else {
            self.initialize(account, barrier)
        }
    }

    /// Opens a named barrier without another arrival.
    pub(crate) fn open(&mut self, barrier: Mbarrier) {
        if let Some([arrived, before]) = self.mbarriers.get_mut(&barrier) {
            *before = std::mem::take(arrived);
        }
    }

    /// Records that a warp arrives at an mbarrier; `over` is true if this ends the phase.
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

    /// Records that a warp finds the phase before the present one over.
    pub(crate) fn wait(
        &mut self,
        account: &mut Account<'_>,
        unit: Unit,
        mbarrier: Mbarrier,
    ) -> Result<()> {
        let Some([_, before]) = self.mbarriers.get(&mbarrier) else { return Ok(()) };
        self.clocks.join(account, &mut self.warps[unit].clock, before)
    }

    /// Executes a barrier of the block that has these warps.
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
