//! Selects the path of a warp that runs next, moves its lanes, and joins paths that meet.

use std::ops::Range;

use super::state::{Next, Path, Run, Waiting};
use super::warp::Warp;
use crate::isa::{Clock, Kernel};
use crate::report::{Fault, Lanes as Named, Report, ReportKind};

impl Warp {
    /// Returns the range of instructions in which the next path stays next and meets no other path.
    #[inline(always)]
    pub(crate) fn alone(&self, current: usize) -> Range<u32> {
        if self.paths.len() == 1 { 0..u32::MAX } else { self.between_others(current) }
    }

    fn between_others(&self, current: usize) -> Range<u32> {
        if self.skip > 0 {
            return 0..0;
        }
        let pc = self.paths[current].pc;
        let others = || self.paths.iter().map(|path| path.pc);
        // Paths below are waiting: otherwise one of them would be next.
        let first = others().filter(|other| *other < pc).max().map_or(0, |below| below + 1);
        first..others().filter(|other| *other > pc).min().unwrap_or(u32::MAX)
    }

    /// Ends a turn in which the warp has executed its full quantum.
    pub(crate) fn end_turn(&mut self, run: &Run<'_>) {
        if !run.progress && self.paths.len() > 1 {
            self.skip += 1;
        } else {
            self.skip = 0;
        }
    }

    /// Joins paths that have met, and returns the path to run: the lowest path that is ready,
    /// unless `skip` makes it stand back.
    #[inline(always)]
    pub(crate) fn next_path(&mut self) -> Option<usize> {
        match &self.paths[..] {
            [path] => path.waiting.is_none().then_some(0),
            _ => self.next_of_several(),
        }
    }

    fn next_of_several(&mut self) -> Option<usize> {
        self.join();
        let ready = |&i: &usize| self.paths[i].waiting.is_none();
        if self.skip == 0 {
            return (0..self.paths.len()).filter(ready).min_by_key(|&i| self.paths[i].pc);
        }
        let mut order: Vec<usize> = (0..self.paths.len()).filter(ready).collect();
        order.sort_by_key(|&i| self.paths[i].pc);
        Some(order[self.skip.checked_rem(order.len())?])
    }

    /// Joins paths at the same instruction, unless one waits at a barrier that the other has not
    /// reached.
    fn join(&mut self) {
        let mut i = 0;
        while i < self.paths.len() {
            let mut k = i + 1;
            while k < self.paths.len() {
                let (a, b) = (self.paths[i], self.paths[k]);
                let barrier = |path: Path| {
                    matches!(path.waiting, Some(Waiting::Barrier(_) | Waiting::Part { .. }))
                };
                if a.pc == b.pc && barrier(a) == barrier(b) {
                    self.paths[i].lanes |= b.lanes;
                    // Lanes that waited for others check again which lanes are there.
                    if !barrier(a) && (a.lanes | b.lanes != a.lanes) {
                        self.paths[i].waiting = None;
                    }
                    self.paths.swap_remove(k);
                } else {
                    k += 1;
                }
            }
            i += 1;
        }
    }

    /// Moves the active lanes of a path to their next instruction, and the other lanes of the path
    /// to the instruction that follows.
    #[inline]
    pub(crate) fn go(&mut self, run: &mut Run<'_>, current: usize, active: u32, next: Next) {
        let Path { pc, lanes, .. } = self.paths[current];
        let others = lanes & !active;
        if let Next::Clock(part, d) = next {
            let clock = self.clock;
            match part {
                Clock::Low => self.registers.set_words(d, active, |_| clock as u32),
                Clock::High => self.registers.set_words(d, active, |_| (clock >> 32) as u32),
                Clock::Whole => self.registers.set_longs(d, active, |_| clock),
            }
        }
        let at = |pc, waiting| Some(Path { pc, lanes: active, waiting });
        let own = match next {
            Next::Step | Next::Clock(..) | Next::Yield(_) | Next::Scatter(_) => at(pc + 1, None),
            Next::WarpBarrier => {
                self.epoch += 1;
                at(pc + 1, None)
            }
            Next::Branch(target) => {
                self.jumped = (pc, target);
                if others != 0 {
                    run.tally.divergent_branches += 1;
                }
                at(target, None)
            }
            Next::Barrier(id) => at(pc, Some(Waiting::Barrier(id))),
            Next::Part { barrier, phase } => {
                self.epoch += 1;
                at(pc, Some(Waiting::Part { barrier, phase }))
            }
            Next::Gather => {
                // The instruction has not been executed yet, so it does not count.
                self.clock -= 1;
                let executed = &mut run.tally.executed[pc as usize];
                executed.times -= 1;
                executed.lanes -= u64::from(active.count_ones());
                at(pc, Some(Waiting::Lanes { alive: self.alive }))
            }
            Next::Exit => {
                self.alive &= !active;
                self.left.get_or_insert((active, pc));
                let (from, to) = self.jumped;
                self.before_exit = if to == pc { from } else { pc.saturating_sub(1) };
                run.progress = true;
                None
            }
        };
        let others = (others != 0).then_some(Path { pc: pc + 1, lanes: others, waiting: None });
        match (own, others) {
            (Some(own), others) => {
                self.paths[current] = own;
                self.paths.extend(others);
            }
            (None, Some(others)) => self.paths[current] = others,
            (None, None) => {
                self.paths.swap_remove(current);
            }
        }
        if self.paths.len() > 1 {
            // Lanes that wait for a lane that has just left check again, and report it.
            for path in &mut self.paths {
                if matches!(path.waiting, Some(Waiting::Lanes { alive }) if alive != self.alive) {
                    path.waiting = None;
                }
            }
        } else if let [Path { waiting: waiting @ Some(Waiting::Lanes { .. }), .. }] =
            &mut self.paths[..]
            && !matches!(next, Next::Gather)
        {
            *waiting = None;
        }
    }

    /// Moves each active lane of a path to its target, and the other lanes of the path to the
    /// instruction that follows.
    #[cold]
    pub(crate) fn scatter(
        &mut self,
        run: &mut Run<'_>,
        current: usize,
        active: u32,
        targets: &[u32; 32],
    ) {
        let Path { pc, lanes, .. } = self.paths.swap_remove(current);
        let first = self.paths.len();
        for lane in crate::report::lanes(active) {
            let pc = targets[lane];
            match self.paths[first..].iter_mut().find(|path| path.pc == pc) {
                Some(path) => path.lanes |= 1 << lane,
                None => self.paths.push(Path { pc, lanes: 1 << lane, waiting: None }),
            }
        }
        let others = lanes & !active;
        if others != 0 {
            self.paths.push(Path { pc: pc + 1, lanes: others, waiting: None });
        }
        run.tally.divergent_branches += u64::from(self.paths.len() > first + 1);
    }

    /// Returns the mistake if lanes wait for other lanes of their warp that will not come.
    pub(crate) fn stuck(&self, kernel: &Kernel, index: [u32; 3]) -> Option<Box<Report>> {
        let lanes = |path: &&Path| matches!(path.waiting, Some(Waiting::Lanes { .. }));
        let path = self.paths.iter().find(lanes)?;
        let whom = match kernel.code[path.pc as usize].op.is_of_matrices() {
            true => "for all lanes of its warp",
            false => "for lanes that its mask names",
        };
        let message = match self.paths.iter().find(|other| other.pc != path.pc) {
            Some(other) => format!(
                "waits {whom}, while {} {} at {}",
                Named(other.lanes),
                if other.lanes.is_power_of_two() { "waits" } else { "wait" },
                kernel.place_of(other.pc as usize)
            ),
            None => format!("waits {whom} and that do not come"),
        };
        let fault = Fault { kind: ReportKind::Shuffle, lanes: path.lanes, message };
        Some(fault.at(kernel, index, self.index, path.pc))
    }
}
