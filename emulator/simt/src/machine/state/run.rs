//! What all blocks of a range of a launch share.

use std::sync::Mutex;

use super::launch::Launch;
use super::scratch::Place;
use crate::memory::global::{Buffer, Memory, Slot};
use crate::memory::order::Order;
use crate::memory::texture::Table;
use crate::report::{Account, Event, Result, Tally, Trace, What};

/// What all blocks of a range of a launch share.
pub(crate) struct Run<'a> {
    pub(crate) launch: &'a Launch<'a>,
    pub(crate) memory: &'a Memory,
    /// The memory's buffers, as they were when the launch began.
    pub(crate) slots: &'a [Slot],
    /// Where the module's variables lie, if the kernel uses any.
    pub(crate) globals: &'a [u64],
    /// The address of the grid's workspace, if its blocks run together and ask for it; else 0.
    pub(crate) workspace: u64,
    /// The textures and surfaces that there were then, if the kernel uses any.
    pub(crate) objects: &'a Table,
    /// The buffer that was accessed last, and its address.
    pub(crate) recent: Option<(u64, &'a Buffer)>,
    /// The tag of the grid's first block: see `global::Word`.
    pub(crate) first_tag: u32,
    /// Held for atomic operations on two words.
    pub(crate) wide: &'a Mutex<()>,
    pub(crate) grain: u32,
    /// Whether the kernel has mbarriers, or barriers at which a part of the block meets.
    pub(crate) mbarriers: bool,
    /// At which barriers, by their numbers, threads may arrive without waiting.
    pub(crate) arrivals: u16,
    pub(crate) tally: Tally,
    /// What the range may use.
    pub(crate) account: Account<'a>,
    pub(crate) trace: Option<&'a mut Trace>,
    /// Present if the blocks run together: then accesses of other blocks may be ordered.
    pub(crate) order: Option<Order>,
    /// Something happened that other blocks or warps can see.
    pub(crate) progress: bool,
    pub(crate) beside: Beside,
}

/// Which launch it is of those that run side by side, each with so many warps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Beside {
    pub(crate) number: usize,
    pub(crate) count: usize,
    pub(crate) warps: usize,
}

impl Beside {
    /// One that runs by itself.
    pub(crate) const ALONE: Beside = Beside { number: 0, count: 1, warps: 0 };

    /// The number among all warps of that with a number in this launch.
    pub(crate) fn unit(self, warp: usize) -> usize {
        self.number * self.warps + warp
    }

    /// The launch of one of all warps, and its number in that.
    pub(crate) fn warp(self, unit: usize) -> (usize, usize) {
        if self.count == 1 { (0, unit) } else { (unit / self.warps, unit % self.warps) }
    }
}

impl Run<'_> {
    /// Records an event that has room for so many values of all lanes beside it.
    pub(crate) fn trace_lanes(
        &mut self,
        place: &Place,
        lanes: u32,
        values: u8,
        what: impl FnOnce() -> What,
    ) -> Result<()> {
        let kernel = self.launch.kernel;
        let Some(trace) = &mut self.trace else { return Ok(()) };
        trace.push(&mut self.account, values, || Event {
            block: place.block,
            warp: place.warp,
            lanes,
            line: kernel.places[place.pc as usize].line,
            source: kernel.source_of(place.pc as usize),
            what: what(),
        })
    }
}
