//! Happens-before by atomics and other synchronising accesses in shared memory. The rule is the
//! rule of global memory ([`Hands`]). A release publishes at its word what its thread has done and
//! seen. A relaxed access after a fence does the same. An acquire takes over what is published
//! there. A relaxed access before a fence does the same. As in global memory, what one lane takes
//! over counts for the whole warp.

use std::sync::Arc;

use super::mbarrier::{clock_bytes, joined, raise};
use super::{Actor, Clock, Handed, Knowledge, Known, Shared};
use crate::memory::order::{Hands, Leaves, Takes};
use crate::report::{bytes_of, lanes as each};

impl Handed {
    pub(super) fn held(&self) -> u64 {
        bytes_of::<Option<Knowledge>>(self.fenced.capacity() as u64)
            + bytes_of::<Option<Arc<Clock>>>(self.seen.capacity() as u64)
    }

    /// Resets the state for a block that has not begun.
    pub(super) fn reset(&mut self) {
        self.left.clear();
        self.fenced.clear();
        self.seen.clear();
    }
}

impl Known {
    /// Returns what a thread knows of the lanes of its warp, itself included.
    pub(super) fn own(&self, actor: Actor) -> [u32; 32] {
        let (warp, lane) = (usize::from(actor.thread / 32), usize::from(actor.thread % 32));
        let seen = self.seen.get(warp).and_then(Option::as_ref);
        let mut own = seen.map_or([actor.warp_epoch; 32], |seen| seen[lane]);
        own[lane] = actor.warp_epoch.saturating_add(1);
        own
    }

    /// Raises a clock to all that a thread has done and seen.
    pub(super) fn publish(&self, actor: Actor, clock: &mut Clock) {
        self.of(actor).raise(actor, clock);
    }

    fn of(&self, actor: Actor) -> Knowledge {
        let others = self.clocks[usize::from(actor.thread)].clone();
        Knowledge { own: self.own(actor), others }
    }

    /// Joins a clock into what some lanes of a warp know.
    pub(super) fn learn(&mut self, warp: usize, lanes: u32, clock: &Arc<Clock>) {
        // Most lanes know the same and share one allocation.
        let mut last: Option<[Arc<Clock>; 2]> = None;
        for lane in each(lanes) {
            let mine = &mut self.clocks[32 * warp + lane];
            let after = match &last {
                Some([before, after]) if Arc::ptr_eq(before, mine) => after.clone(),
                _ => joined(mine, clock),
            };
            let before = std::mem::replace(mine, after.clone());
            last = Some([before, after]);
        }
    }
}

impl Knowledge {
    fn raise(&self, actor: Actor, clock: &mut Clock) {
        raise(clock, &self.others);
        for (mine, own) in clock[usize::from(actor.thread / 32)].iter_mut().zip(self.own) {
            *mine = (*mine).max(own);
        }
    }
}

impl Shared {
    /// Returns true if the block follows happens-before between threads, and not only the barriers
    /// of the whole block.
    #[inline(always)]
    pub(crate) fn follows(&self) -> bool {
        self.mbarriers.warps > 0
    }

    /// Records a synchronising access. Returns the bytes of the host that it takes and that have
    /// not been paid for.
    #[cold]
    pub(crate) fn synchronise(&mut self, offset: u32, bytes: u32, now: Actor, hands: Hands) -> u64 {
        let (warps, warp) = (self.mbarriers.warps, usize::from(now.thread / 32));
        let Handed { left, fenced, seen, paid } = &mut self.handed;
        for word in offset / 4..(offset + bytes).div_ceil(4) {
            match (hands.takes, left.get(&word)) {
                (Some(Takes::AtOnce), Some(clock)) => self.known.learn(warp, u32::MAX, clock),
                (Some(Takes::AtFence), Some(clock)) => {
                    seen.resize(warps, None);
                    let all = seen[warp]
                        .as_ref()
                        .map_or_else(|| clock.clone(), |seen| joined(seen, clock));
                    seen[warp] = Some(all);
                }
                _ => {}
            }
            if hands.ends {
                left.remove(&word);
            }
            let fenced = fenced.get(usize::from(now.thread)).and_then(Option::as_ref);
            if hands.leaves == Some(Leaves::Whole) || hands.leaves.is_some() && fenced.is_some() {
                let clock = left.entry(word).or_insert_with(|| Arc::new(vec![[0; 32]; warps]));
                let clock = Arc::make_mut(clock);
                match (hands.leaves, fenced) {
                    (Some(Leaves::Fenced), Some(fenced)) => fenced.raise(now, clock),
                    _ => self.known.publish(now, clock),
                }
            }
        }
        let more = left.len().saturating_sub(paid.0);
        paid.0 += more;
        more as u64 * (clock_bytes(warps as u32) + 2 * bytes_of::<(u32, Arc<Clock>)>(1))
    }

    /// Executes a fence in these lanes of a warp; `first` is lane 0. Returns the bytes of the host
    /// that it takes and that have not been paid for.
    pub(crate) fn fence(&mut self, lanes: u32, first: Actor) -> u64 {
        let (warps, warp) = (self.mbarriers.warps, usize::from(first.thread / 32));
        if let Some(seen) = self.handed.seen.get_mut(warp).and_then(Option::take) {
            self.known.learn(warp, u32::MAX, &seen);
        }
        self.handed.fenced.resize(32 * warps, None);
        for lane in each(lanes) {
            let actor = Actor { thread: first.thread + lane as u16, ..first };
            self.handed.fenced[usize::from(actor.thread)] = Some(self.known.of(actor));
        }
        if std::mem::replace(&mut self.handed.paid.1, true) {
            return 0;
        }
        // A fence saves what each thread knew then, and what each warp has read.
        let threads = 32 * warps as u64;
        threads * (bytes_of::<Option<Knowledge>>(1) + clock_bytes(warps as u32))
            + warps as u64 * (bytes_of::<Option<Arc<Clock>>>(1) + clock_bytes(warps as u32))
    }
}
