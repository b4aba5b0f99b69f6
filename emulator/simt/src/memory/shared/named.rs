//! The sixteen named barriers of a block, where only a part of the block meets at them: the lanes
//! that have arrived, the lanes that wait, and the happens-before that follows.
//!
//! A barrier counts whole warps. A warp counts when all of its lanes that have not exited have
//! arrived. A thread that arrives without waiting publishes what it has done. The threads that wait
//! take it over when the barrier opens. Tested by `cases/barriers.ptx`.

use std::sync::Arc;

use super::{Actor, Barrier, Barriers, Culprit, Known, Shared};
use crate::report::{bytes_of, lanes as each};

/// Returns the bytes of the host that the barriers of a block of `warps` warps take.
pub(crate) fn named_bytes(warps: u32) -> u64 {
    let barrier = bytes_of::<Barrier>(1) + bytes_of::<[u32; 34]>(warps.into());
    barrier.saturating_mul(COUNT as u64)
}

/// The number of named barriers of a block.
const COUNT: usize = 16;

/// Lanes of a warp that arrive at a barrier.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Coming {
    pub(crate) barrier: u8,
    /// The number of threads expected; `every` is true if that is the whole block by default.
    pub(crate) threads: u32,
    pub(crate) every: bool,
    pub(crate) waits: bool,
    /// The lanes that arrive; `alive` are the lanes of their warp that have not exited.
    pub(crate) lanes: u32,
    pub(crate) alive: u32,
    /// Lane 0 of the warp.
    pub(crate) first: Actor,
}

/// An error of an arrival at a barrier.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WrongComing {
    /// Another thread arrived and expects a different number of threads.
    Threads { threads: u32, other: Culprit },
    /// These lanes have arrived already, and other lanes of their warp have not.
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
        self.all.first().map_or(0, |barrier| named_bytes(barrier.partial.len() as u32))
    }
}

impl Barrier {
    /// Opens the barrier if all threads have arrived. Returns true if it has opened.
    fn open(&mut self, known: &mut Known, left: u32) -> bool {
        let enough = self.come >= self.expected || self.every && self.come + left >= self.expected;
        if self.expected == 0 || !enough {
            return false;
        }
        let arrived = Arc::new(self.arrived.clone());
        for (warp, waiting) in self.waiting.iter_mut().enumerate() {
            known.learn(warp, *waiting, &arrived);
            *waiting = 0;
        }
        self.arrived.iter_mut().for_each(|lanes| *lanes = [0; 32]);
        (self.expected, self.come, self.first) = (0, 0, None);
        self.phase += 1;
        true
    }
}

impl Shared {
    /// Records lanes that arrive at a barrier. Returns true if it opens.
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
            self.known.publish(actor, &mut barrier.arrived);
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
        // What the lanes do from now on comes after what they have published.
        self.part(first.thread as u32 / 32, first.warp_epoch);
        Ok(opens)
    }

    /// Counts the lanes that have exited, when no warp can proceed. A warp counts as arrived if its
    /// other lanes have exited, and warps that have exited count where all threads are expected.
    /// `alive` are the other lanes of each warp. Returns a bit for each barrier that opens.
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

    /// Returns true if a barrier has opened since the last call.
    pub(crate) fn has_opened(&mut self) -> bool {
        std::mem::take(&mut self.named.opened)
    }

    /// Returns a barrier by its number, if any named barrier was used.
    pub(crate) fn named(&self, number: u8) -> Option<&Barrier> {
        self.named.all.get(usize::from(number))
    }
}
