//! The sixteen barriers of a block by their numbers, as far as a part of the block meets at them:
//! who has come, who waits, and what that hands from thread to thread.
//!
//! A barrier counts whole warps: one counts when all of its lanes have come which have not left.
//! Whoever arrives without waiting hands over what it has done, and those who wait get it when the
//! barrier opens.

use std::sync::Arc;

use super::mbarrier::{Clock, joined};
use super::{Actor, Culprit, Known, Shared};
use crate::report::{bytes_of, lanes as each};

/// Returns the bytes of the host that the barriers of a block of `warps` warps take.
pub(crate) fn host_bytes(warps: u32) -> u64 {
    let barrier = bytes_of::<Barrier>(1) + bytes_of::<[u32; 34]>(warps.into());
    barrier.saturating_mul(COUNT as u64)
}

/// The barriers that a block has.
const COUNT: usize = 16;

#[derive(Debug, Clone, Default)]
pub(super) struct Barriers {
    /// None before the first one is used; then all of them.
    all: Vec<Barrier>,
    /// True if one has opened, and the lanes that wait at it have not been notified.
    opened: bool,
}

/// A barrier.
#[derive(Debug, Clone, Default)]
pub(crate) struct Barrier {
    /// Threads that it opens for, and those of whole warps that have come.
    pub(crate) expected: u32,
    pub(crate) come: u32,
    /// True if the number was not said: then those that have left are not waited for.
    every: bool,
    /// How often it has opened.
    pub(crate) phase: u32,
    /// Who was the first to come.
    first: Option<Culprit>,
    /// By warp: lanes that have come and do not count yet, and those that wait.
    partial: Vec<u32>,
    waiting: Vec<u32>,
    arrived: Clock,
}

/// Lanes of a warp that come to a barrier.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Coming {
    pub(crate) barrier: u8,
    /// For how many threads, and whether that is all of the block because no number is said.
    pub(crate) threads: u32,
    pub(crate) every: bool,
    pub(crate) waits: bool,
    /// The lanes, and those of their warp that have not left.
    pub(crate) lanes: u32,
    pub(crate) alive: u32,
    /// Lane 0 of the warp.
    pub(crate) first: Actor,
}

/// What is wrong with coming to a barrier.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WrongComing {
    /// Somebody came for another number of threads.
    Threads { threads: u32, other: Culprit },
    /// These lanes have come already, and others of the warp have not.
    Again { lanes: u32 },
}

impl Barriers {
    /// Resets them for a block of `warps` warps that has not begun.
    pub(super) fn reset(&mut self, warps: usize) {
        self.opened = false;
        if self.all.first().is_some_and(|barrier| barrier.partial.len() != warps) {
            self.all.clear();
        }
        for barrier in &mut self.all {
            (barrier.expected, barrier.come, barrier.every) = (0, 0, false);
            (barrier.phase, barrier.first) = (0, None);
            barrier.partial.fill(0);
            barrier.waiting.fill(0);
            barrier.arrived.fill([0; 32]);
        }
    }

    pub(super) fn held(&self) -> u64 {
        self.all.first().map_or(0, |barrier| host_bytes(barrier.partial.len() as u32))
    }
}

impl Barrier {
    /// Opens it if all have come. Whether it has.
    fn open(&mut self, known: &mut Known, left: u32) -> bool {
        let enough = self.come >= self.expected || self.every && self.come + left >= self.expected;
        if self.expected == 0 || !enough {
            return false;
        }
        let arrived = Arc::new(self.arrived.clone());
        for (warp, waiting) in self.waiting.iter_mut().enumerate() {
            // Lanes of a warp mostly know the same, and share it.
            let mut last: Option<[Arc<Clock>; 2]> = None;
            for lane in each(*waiting) {
                let clock = &mut known.clocks[32 * warp + lane];
                let after = match &last {
                    Some([before, after]) if Arc::ptr_eq(before, clock) => after.clone(),
                    _ => joined(clock, &arrived),
                };
                let before = std::mem::replace(clock, after.clone());
                last = Some([before, after]);
            }
            *waiting = 0;
        }
        self.arrived.iter_mut().for_each(|lanes| *lanes = [0; 32]);
        (self.expected, self.come, self.first) = (0, 0, None);
        self.phase += 1;
        true
    }
}

impl Shared {
    /// Lanes come to a barrier. Whether it opens.
    pub(crate) fn come(&mut self, coming: Coming) -> Result<bool, WrongComing> {
        let Coming { threads, every, lanes, alive, first, .. } = coming;
        let warps = self.mbarriers.warps;
        if self.named.all.is_empty() {
            let barrier = Barrier {
                partial: vec![0; warps],
                waiting: vec![0; warps],
                arrived: vec![[0; 32]; warps],
                ..Barrier::default()
            };
            self.named.all = vec![barrier; COUNT];
        }
        let barrier = &mut self.named.all[usize::from(coming.barrier) % COUNT];
        let warp = usize::from(first.thread / 32);
        if let Some(other) = barrier.first.filter(|_| barrier.expected != threads) {
            return Err(WrongComing::Threads { threads: barrier.expected, other });
        }
        if barrier.partial[warp] & lanes != 0 {
            return Err(WrongComing::Again { lanes: barrier.partial[warp] & lanes });
        }
        let lane = lanes.trailing_zeros();
        barrier.every = every && (barrier.first.is_none() || barrier.every);
        barrier.expected = threads;
        barrier.first.get_or_insert(Culprit { warp: warp as u32, lane, pc: first.pc });
        for lane in each(lanes) {
            let actor = Actor { thread: first.thread + lane as u16, ..first };
            self.known.tell(actor, &mut barrier.arrived);
        }
        if coming.waits {
            barrier.waiting[warp] |= lanes;
        }
        barrier.partial[warp] |= lanes;
        let mut opens = false;
        if barrier.partial[warp] & alive == alive {
            barrier.partial[warp] = 0;
            barrier.come += 32;
            opens = barrier.open(&mut self.known, 0);
        }
        self.named.opened |= opens;
        // What the lanes do from here on is behind what they have handed over.
        self.part(first.thread as u32 / 32, first.warp_epoch);
        Ok(opens)
    }

    /// Nobody goes on. A warp of which some lanes have come counts if the others have left, and
    /// warps that have left count where all are waited for. `alive` are the lanes of each warp that
    /// have not left. Whether a barrier opens, and which ones.
    pub(crate) fn settle(&mut self, alive: &[u32]) -> u32 {
        let left = 32 * alive.iter().filter(|lanes| **lanes == 0).count() as u32;
        let mut opened = 0;
        for (number, barrier) in self.named.all.iter_mut().enumerate() {
            for (partial, alive) in barrier.partial.iter_mut().zip(alive) {
                if *partial != 0 && *partial & alive == *alive {
                    *partial = 0;
                    barrier.come += 32;
                }
            }
            opened |= u32::from(barrier.open(&mut self.known, left)) << number;
        }
        self.named.opened |= opened != 0;
        opened
    }

    /// Returns whether a barrier has opened since this was asked last.
    pub(crate) fn has_opened(&mut self) -> bool {
        std::mem::take(&mut self.named.opened)
    }

    /// A barrier at which a part of the block meets, if any was used.
    pub(crate) fn named(&self, number: u8) -> Option<&Barrier> {
        self.named.all.get(usize::from(number))
    }
}
