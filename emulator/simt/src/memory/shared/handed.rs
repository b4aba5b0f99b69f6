//! What atomics, and other synchronising accesses, hand from thread to thread in shared memory, by
//! the rule of global memory ([`Hands`]): a release leaves at its word what its thread has done and
//! seen, and so does a relaxed access behind a fence; an acquire takes it from there, and so does a
//! relaxed access before a fence. As in global memory, the whole warp has what a lane takes.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::mbarrier::{Clock, clock_bytes, joined, raise};
use super::{Actor, Known, Shared};
use crate::memory::order::{Hands, Leaves, Takes};
use crate::report::{bytes_of, lanes as each};

#[derive(Debug, Clone, Default)]
pub(super) struct Words {
    /// What is left at a word, by its number.
    left: BTreeMap<u32, Arc<Clock>>,
    /// By thread, what it had done and seen at its last fence; nobody, in a block that has passed
    /// none.
    fenced: Vec<Option<Told>>,
    /// By warp, what relaxed accesses have seen: a fence takes it over.
    seen: Vec<Option<Arc<Clock>>>,
    /// Words whose clocks have been paid for, and whether what fences take has.
    paid: (usize, bool),
}

/// What a thread has done and seen: of its own warp, by lane, and beside that.
#[derive(Debug, Clone)]
struct Told {
    own: [u32; 32],
    beside: Arc<Clock>,
}

impl Words {
    pub(super) fn held(&self) -> u64 {
        bytes_of::<Option<Told>>(self.fenced.capacity() as u64)
            + bytes_of::<Option<Arc<Clock>>>(self.seen.capacity() as u64)
    }

    /// Makes them those of a block that has not begun.
    pub(super) fn reset(&mut self) {
        self.left.clear();
        self.fenced.clear();
        self.seen.clear();
    }
}

impl Known {
    /// What a thread knows of the lanes of its warp, itself included.
    pub(super) fn own(&self, actor: Actor) -> [u32; 32] {
        let (warp, lane) = (usize::from(actor.thread / 32), usize::from(actor.thread % 32));
        let seen = self.seen.get(warp).and_then(Option::as_ref);
        let mut own = seen.map_or([actor.warp_epoch; 32], |seen| seen[lane]);
        own[lane] = actor.warp_epoch.saturating_add(1);
        own
    }

    /// A clock learns all that a thread has done and seen.
    pub(super) fn tell(&self, actor: Actor, clock: &mut Clock) {
        let told =
            Told { own: self.own(actor), beside: self.clocks[usize::from(actor.thread)].clone() };
        told.raise(actor, clock);
    }

    /// The lanes of a warp learn what a clock says.
    fn learn(&mut self, warp: usize, clock: &Arc<Clock>) {
        // They mostly know the same, and share it.
        let mut last: Option<[Arc<Clock>; 2]> = None;
        for mine in &mut self.clocks[32 * warp..][..32] {
            let after = match &last {
                Some([before, after]) if Arc::ptr_eq(before, mine) => after.clone(),
                _ => joined(mine, clock),
            };
            let before = std::mem::replace(mine, after.clone());
            last = Some([before, after]);
        }
    }
}

impl Told {
    fn raise(&self, actor: Actor, clock: &mut Clock) {
        raise(clock, &self.beside);
        for (mine, own) in clock[usize::from(actor.thread / 32)].iter_mut().zip(self.own) {
            *mine = (*mine).max(own);
        }
    }
}

impl Shared {
    /// Returns whether it is followed what threads hand to each other, beside what barriers of the
    /// block order.
    #[inline(always)]
    pub(crate) fn follows(&self) -> bool {
        self.mbarriers.warps > 0
    }

    /// A synchronising access has been made. Returns how many bytes of the host it takes that have
    /// not been paid for.
    #[cold]
    pub(crate) fn synchronise(
        &mut self,
        offset: u32,
        bytes: u32,
        actor: Actor,
        hands: Hands,
    ) -> u64 {
        let (warps, warp) = (self.mbarriers.warps, usize::from(actor.thread / 32));
        let Words { left, fenced, seen, paid } = &mut self.handed;
        for word in offset / 4..(offset + bytes).div_ceil(4) {
            match (hands.takes, left.get(&word)) {
                (Some(Takes::AtOnce), Some(clock)) => self.known.learn(warp, clock),
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
            let fenced = fenced.get(usize::from(actor.thread)).and_then(Option::as_ref);
            if hands.leaves == Some(Leaves::Whole) || hands.leaves.is_some() && fenced.is_some() {
                let clock = left.entry(word).or_insert_with(|| Arc::new(vec![[0; 32]; warps]));
                let clock = Arc::make_mut(clock);
                match (hands.leaves, fenced) {
                    (Some(Leaves::Fenced), Some(told)) => told.raise(actor, clock),
                    _ => self.known.tell(actor, clock),
                }
            }
        }
        let more = left.len().saturating_sub(paid.0);
        paid.0 += more;
        more as u64 * (clock_bytes(warps as u32) + 2 * bytes_of::<(u32, Arc<Clock>)>(1))
    }

    /// Lanes of a warp pass a fence; `first` is lane 0. Returns how many bytes of the host it takes
    /// that have not been paid for.
    pub(crate) fn fence(&mut self, lanes: u32, first: Actor) -> u64 {
        let (warps, warp) = (self.mbarriers.warps, usize::from(first.thread / 32));
        if let Some(seen) = self.handed.seen.get_mut(warp).and_then(Option::take) {
            self.known.learn(warp, &seen);
        }
        self.handed.fenced.resize(32 * warps, None);
        for lane in each(lanes) {
            let actor = Actor { thread: first.thread + lane as u16, ..first };
            let thread = usize::from(actor.thread);
            let beside = self.known.clocks[thread].clone();
            self.handed.fenced[thread] = Some(Told { own: self.known.own(actor), beside });
        }
        if std::mem::replace(&mut self.handed.paid.1, true) {
            return 0;
        }
        // A fence holds what its thread knew then, and a warp what it has seen.
        let threads = 32 * warps as u64;
        threads * (bytes_of::<Option<Told>>(1) + clock_bytes(warps as u32))
            + warps as u64 * (bytes_of::<Option<Arc<Clock>>>(1) + clock_bytes(warps as u32))
    }
}
