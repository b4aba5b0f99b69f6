//! Barriers for a part of a block: barriers that name their number of threads, and barriers at
//! which some threads arrive without waiting.
//!
//! `Run::barrier` executes the instruction. If the barrier is for all threads and all of them wait,
//! the path waits in the block, and `block` opens the barrier. Otherwise the shared memory of the
//! block counts who has come, since warps may come at different times and for several phases.
//! `wake` lets the paths go on whose phase is over. `settle` opens barriers for which only lanes
//! that have left are missing. Tested by `barriers.ptx` in `tests/cases`.

use super::block::Block;
use super::state::{ALL, Lanes, Next, Path, Place, Registers, Run, Scratch, Waiting, actor};
use super::warp::Warp;
use crate::isa::{BarrierId, Kernel, Op, Order, Reduction, Slot};
use crate::memory::shared::named::{Coming, WrongComing, named_bytes};
use crate::report::{
    Count, Fault, Lanes as Named, Report, ReportKind, Result, What, fault, lanes as each, uncounted,
};

impl Run<'_> {
    /// Brings lanes to a barrier of `threads` threads, or of all; they wait there or go on.
    pub(crate) fn barrier(
        &mut self,
        r: &Registers,
        scratch: &mut Scratch<'_>,
        place: &Place,
        at: Lanes,
        id: BarrierId,
        (threads, waits): (Option<Slot>, bool),
    ) -> Result<Next> {
        let (active, all) = (at.active, self.launch.threads());
        let barrier = match id {
            BarrierId::Number(number) => number,
            BarrierId::Register(slot) => number(r, slot, active)?,
        };
        let asked = match threads {
            None => all,
            Some(slot) => uniform(r, slot, active, "threads of a barrier")?,
        };
        if waits && asked == all && self.arrivals >> barrier & 1 == 0 {
            if place.epoch == u32::MAX {
                return uncounted("barriers", active);
            }
            self.trace_lanes(place, active, 0, || What::Barrier)?;
            return Ok(Next::Barrier(barrier));
        }
        let verb = if waits { "waits" } else { "arrives" };
        if asked != all && (asked == 0 || !asked.is_multiple_of(32)) {
            let message = format!(
                "{verb} at barrier {barrier} for {}: warps are counted, so that it is a multiple of 32, and not 0",
                Count(asked, "thread")
            );
            return fault(ReportKind::Barrier, active, message);
        }
        if place.warp_epoch == u32::MAX {
            return uncounted("barriers of a warp", active);
        }
        self.trace_lanes(place, active, 0, || What::Barrier)?;
        if scratch.shared.named(0).is_none() {
            self.account.take(named_bytes(place.warps), "barriers of parts of a block")?;
        }
        let coming = Coming {
            barrier,
            threads: asked.next_multiple_of(32),
            every: threads.is_none(),
            waits,
            lanes: active,
            alive: at.alive,
            first: actor(place, 0, Order::Weak),
        };
        let phase = scratch.shared.named(barrier).map_or(0, |barrier| barrier.phase);
        let opens = match scratch.shared.come(coming) {
            Ok(opens) => opens,
            Err(wrong) => return self.wrong_coming(wrong, verb, barrier, asked, active),
        };
        if let Some(order) = &mut self.order {
            let key = key(place.unit - place.warp as usize, barrier);
            order.begin(&mut self.account, key)?;
            order.arrive(&mut self.account, place.unit, key, opens)?;
        }
        self.progress = true;
        if opens {
            self.tally.barriers += 1;
        }
        Ok(if waits { Next::Part { barrier, phase } } else { Next::WarpBarrier })
    }

    #[cold]
    fn wrong_coming<T>(
        &self,
        wrong: WrongComing,
        verb: &str,
        barrier: u8,
        asked: u32,
        active: u32,
    ) -> Result<T> {
        let message = match wrong {
            WrongComing::Threads { threads, other } => format!(
                "{verb} at barrier {barrier} for {}, at which warp {} came for {threads} at {}",
                Count(asked, "thread"),
                other.warp,
                self.launch.kernel.place_of(other.pc as usize)
            ),
            WrongComing::Again { lanes } => format!(
                "{verb} at barrier {barrier}, where {} came before and count only with the other lanes of the warp, which have not \
                 come",
                Named(lanes)
            ),
        };
        fault(ReportKind::Barrier, active, message)
    }
}

/// Returns the key of a barrier among the barriers that order accesses. `first` is the number of
/// the block's first warp.
fn key(first: usize, barrier: u8) -> (u64, u32) {
    (first as u64, u32::MAX - u32::from(barrier))
}

fn number(r: &Registers, slot: Slot, active: u32) -> Result<u8> {
    let number = uniform(r, slot, active, "the number of a barrier")?;
    if number < 16 {
        return Ok(number as u8);
    }
    let message = format!("names barrier {number}: there are those from 0 to 15");
    fault(ReportKind::Barrier, active, message)
}

/// Returns the value that all lanes give, or reports that they differ.
fn uniform(r: &Registers, slot: Slot, active: u32, what: &str) -> Result<u32> {
    let values = r.words(slot);
    let first = values[active.trailing_zeros() as usize % 32];
    match each(active).find(|&lane| values[lane] != first) {
        None => Ok(first),
        Some(lane) => {
            let message = format!(
                "gives {first} as {what}, and lane {lane} of the same warp gives {}",
                values[lane]
            );
            fault(ReportKind::Barrier, active, message)
        }
    }
}

impl Block {
    /// Lets the paths go on whose barrier has opened.
    pub(crate) fn wake(&mut self, run: &mut Run<'_>) -> std::result::Result<(), Box<Report>> {
        if !self.shared.has_opened() {
            return Ok(());
        }
        let kernel = run.launch.kernel;
        for barrier in 0..16 {
            let Some(phase) = self.shared.named(barrier).map(|barrier| barrier.phase) else {
                break;
            };
            let is_over = |path: &Path| {
                matches!(path.waiting, Some(Waiting::Part { barrier: number, phase: before })
                    if number == barrier && before < phase)
            };
            self.reduce(kernel, is_over);
            let first = run.others.unit((self.number - self.first()) as usize * self.warps.len());
            for (warp, unit) in self.warps.iter_mut().zip(first..) {
                let (index, mut woken) = (warp.index, None);
                for path in warp.paths.iter_mut().filter(|path| is_over(path)) {
                    woken = Some(*path);
                    path.pc += 1;
                    path.waiting = None;
                }
                if let (Some(path), Some(order)) = (woken, &mut run.order) {
                    let waited = order.wait(&mut run.account, unit, key(first, barrier));
                    waited.map_err(|fault| {
                        Fault { lanes: path.lanes, ..*fault }.at(kernel, self.index, index, path.pc)
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Counts threads that have left toward the barriers for a part of the block, and opens those
    /// that are complete then. The caller has checked that no warp can go on. Returns whether one
    /// opens.
    pub(crate) fn settle(&mut self, run: &mut Run<'_>) -> std::result::Result<bool, Box<Report>> {
        if self.shared.named(0).is_none() {
            return Ok(false);
        }
        let alive: Vec<u32> = self.warps.iter().map(|warp| warp.alive).collect();
        let opened = self.shared.settle(&alive);
        if opened == 0 {
            return Ok(false);
        }
        run.tally.barriers += u64::from(opened.count_ones());
        run.progress = true;
        let first = run.others.unit((self.number - self.first()) as usize * self.warps.len());
        if let Some(order) = &mut run.order {
            each(opened).for_each(|barrier| order.open(key(first, barrier as u8)));
        }
        self.wake(run)?;
        Ok(true)
    }

    /// Gives the result of a barrier that reduces predicates to the threads that wait at it.
    pub(crate) fn reduce(&mut self, kernel: &Kernel, meets: impl Fn(&Path) -> bool) {
        let code = |path: &Path| kernel.code[path.pc as usize].op;
        let (mut threads, mut hold) = (0, 0);
        for warp in &self.warps {
            for path in warp.paths.iter().filter(|path| meets(path)) {
                if let Op::BarrierReduce { a, .. } = code(path) {
                    threads += path.lanes.count_ones();
                    hold += (path.lanes & warp.registers.guard(a)).count_ones();
                }
            }
        }
        if threads == 0 {
            return;
        }
        for Warp { paths, registers, .. } in &mut self.warps {
            for path in paths.iter().filter(|path| meets(path)) {
                let Op::BarrierReduce { op, d, .. } = code(path) else { continue };
                let mut set =
                    |holds| registers.set_predicate(d, path.lanes, if holds { ALL } else { 0 });
                match op {
                    Reduction::All => set(hold == threads),
                    Reduction::Any => set(hold > 0),
                    Reduction::Count => registers.set_words(d, path.lanes, |_| hold),
                }
            }
        }
    }

    /// Returns the mistake if threads wait at a barrier for threads that will not come.
    pub(crate) fn incomplete_part(&self, kernel: &Kernel) -> Option<Box<Report>> {
        let number = |path: &Path| match path.waiting {
            Some(Waiting::Part { barrier, .. }) => Some(barrier),
            _ => None,
        };
        let mut paths =
            self.warps.iter().flat_map(|warp| warp.paths.iter().map(move |path| (warp, path)));
        let (first, path) = paths.clone().find(|(_, path)| number(path).is_some())?;
        let named = |barrier: u8| match self.shared.named(barrier) {
            Some(found) => format!(
                "at barrier {barrier} for {}, of which {} have come",
                Count(found.expected, "thread"),
                found.come
            ),
            None => format!("at barrier {barrier}"),
        };
        let barrier = number(path)?;
        let mut message = format!("waits {}, and no thread of the block goes on", named(barrier));
        const MOST_NAMED: usize = 6;
        let (mut count, mut more) = (0, 0);
        let others =
            paths.by_ref().filter(|(warp, other)| warp.index != first.index || other.pc != path.pc);
        for (warp, other) in others {
            count += 1;
            if count > MOST_NAMED {
                more += 1;
                continue;
            }
            let who = match other.lanes == warp.alive {
                true => format!("warp {}", warp.index),
                false => format!("{} of warp {}", Named(other.lanes), warp.index),
            };
            let does = if other.lanes.is_power_of_two() || other.lanes == warp.alive {
                "waits"
            } else {
                "wait"
            };
            let whither = match other.waiting {
                Some(Waiting::Part { barrier: same, .. }) if same == barrier => "there".to_string(),
                Some(Waiting::Part { barrier, .. }) => named(barrier),
                Some(Waiting::Barrier(barrier)) => {
                    format!("at barrier {barrier} for all threads of the block")
                }
                _ => "for lanes of its warp".to_string(),
            };
            let separator = if count == 1 { ":" } else { ";" };
            let place = kernel.place_of(other.pc as usize);
            message += &format!("{separator} {who} {does} {whither}, at {place}");
        }
        if more > 0 {
            message += &format!("; {} more", Count(more, "group of lanes"));
        }
        let left = self.warps.iter().filter(|warp| warp.alive == 0).count() as u32;
        if left > 0 {
            let separator = if count == 0 { ":" } else { ";" };
            message += &format!("{separator} {} left the kernel", Count(left, "warp"));
        }
        let fault = Fault { kind: ReportKind::Barrier, lanes: path.lanes, message };
        Some(fault.at(kernel, self.index, first.index, path.pc))
    }
}
