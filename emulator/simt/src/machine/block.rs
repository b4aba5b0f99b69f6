//! A block: its warps, its shared memory, and the barriers at which its threads wait for each
//! other.
//!
//! The warps take turns, and in a turn each warp executes up to a given number of instructions.
//! When all warps wait or have left, the barrier opens if all threads wait at the same one.
//! Otherwise the block reports why the barrier cannot open: threads wait at different barriers,
//! have left the kernel, or spin on an mbarrier at which no thread arrives. The module `barrier`
//! handles barriers for a part of the block. Tested by `barriers.ptx`, `mbarriers.ptx` and
//! `races.ptx` in `tests/cases`.

use std::mem;

use super::state::{IDLE_ROUNDS, Identity, Launch, Path, Place, Run, Waiting};
use super::warp::Warp;
use crate::isa::{Kernel, Op};
use crate::memory::global::Tags;
use crate::memory::shared::Shared;
use crate::report::{Count, Fault, Lanes, Report, ReportKind, bytes_of, fault, reserve};

/// A block of threads.
#[derive(Debug, Clone, Default)]
pub(crate) struct Block {
    pub(crate) number: u64,
    first: u64,
    pub(crate) index: [u32; 3],
    pub(crate) warps: Vec<Warp>,
    pub(crate) shared: Shared,
    pub(crate) shared_bytes: u32,
    epoch: u32,
    /// True while the warps have done nothing in this round but spin on mbarriers.
    pub(crate) only_spins: bool,
    /// The number of rounds in a row in which the warps did nothing but spin on mbarriers.
    spinning_rounds: u32,
}

impl Block {
    /// Returns the host memory in bytes that a block of a launch takes, itself included.
    pub(crate) fn bytes(launch: &Launch<'_>, grain: u32) -> u64 {
        let kernel = launch.kernel;
        let warps = launch.warps();
        let mbarriers = launch.has_parts();
        let parts = kernel.code.iter().any(|code| matches!(code.op, Op::WarpBarrier { .. }));
        let parts = if parts || mbarriers { warps } else { 0 };
        let shared = Shared::host_bytes(launch.all_shared_bytes(), grain, parts, mbarriers);
        let warps = u64::from(warps).saturating_mul(Warp::bytes(kernel));
        bytes_of::<Block>(1).saturating_add(shared).saturating_add(warps)
    }

    /// Returns the index in the grid of block `number`.
    pub(crate) fn index_of(launch: &Launch<'_>, number: u64) -> [u32; 3] {
        let [x, y, _] = launch.grid.map(u64::from);
        [(number % x) as u32, (number / x % y) as u32, (number / x / y) as u32]
    }

    /// Makes this block `number` of the grid, before its first instruction. `first` is the number
    /// of the first block that runs together with it. The range's account has paid for its bytes.
    pub(crate) fn reset(&mut self, run: &Run<'_>, number: u64, first: u64) -> fault::Result<()> {
        let launch = run.launch;
        let kernel = launch.kernel;
        self.number = number;
        self.first = first;
        self.index = Block::index_of(launch, number);
        self.shared_bytes = launch.shared_bytes();
        let warps = launch.warps();
        let followed = if run.mbarriers { warps } else { 0 };
        self.shared.reset(launch.all_shared_bytes(), run.grain, followed)?;
        let reserved = launch.reserved_shared();
        self.shared.give(reserved.start as u32..reserved.end as u32);
        // The reserved bytes count as written in epoch 0, so the threads start in epoch 1.
        (self.epoch, self.only_spins, self.spinning_rounds) =
            (u32::from(!reserved.is_empty()), true, 0);
        reserve(&mut self.warps, warps as usize, "warps")?;
        self.warps.resize_with(warps as usize, Warp::default);
        for (warp, index) in self.warps.iter_mut().zip(0..) {
            let identity = Identity {
                block: self.index,
                grid: launch.grid,
                threads: launch.block,
                warp: index,
                warps,
                dynamic_shared: launch.dynamic_shared,
                total_shared: self.shared_bytes,
                globals: run.globals,
                workspace: run.workspace,
            };
            warp.reset(kernel, &identity, launch.threads())?;
        }
        Ok(())
    }

    /// Frees what a block that has run allocated as it grew, before the block is saved for later
    /// launches. The range's account paid for these bytes.
    pub(crate) fn retire(&mut self) {
        self.warps.iter_mut().for_each(Warp::retire);
        self.shared.retire();
    }

    /// Returns the host memory in bytes that the block holds, itself included.
    pub(crate) fn held(&self) -> u64 {
        let unused = (self.warps.capacity() - self.warps.len()) as u64;
        let warps: u64 = self.warps.iter().map(Warp::held).sum();
        bytes_of::<Block>(1) + self.shared.held() + warps + bytes_of::<Warp>(unused)
    }

    /// Returns the number of the first of the blocks that run together.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// Lets every warp execute up to `quantum` instructions. Returns whether all have left.
    pub(crate) fn turn(&mut self, run: &mut Run<'_>, quantum: u32) -> Result<bool, Box<Report>> {
        let mut place = self.place(run);
        for warp in &mut self.warps {
            if warp.is_ready() {
                let shared = (&mut self.shared, self.shared_bytes);
                warp.advance(run, place, self.index, shared, quantum)?;
                self.only_spins &= warp.spin.is_some();
            }
            place.warp += 1;
            place.unit += 1;
        }
        self.end_turn(run)
    }

    /// Returns the place of the first warp. Each instruction sets `pc` and `warp_epoch`.
    pub(crate) fn place(&self, run: &Run<'_>) -> Place {
        let warps = self.warps.len();
        Place {
            pc: 0,
            block: self.number,
            first_block: self.first,
            warp: 0,
            warps: warps as u32,
            unit: run.others.unit((self.number - self.first) as usize * warps),
            tags: Tags::new(run.first_tag, run.launch.blocks(), self.number),
            epoch: self.epoch,
            warp_epoch: 0,
        }
    }

    /// Executes one instruction of a warp that is ready.
    pub(crate) fn step(&mut self, run: &mut Run<'_>, warp: usize) -> Result<(), Box<Report>> {
        let mut place = self.place(run);
        place.warp += warp as u32;
        place.unit += warp;
        let Some(warp) = self.warps.get_mut(warp) else { return Ok(()) };
        let Some(path) = warp.next_path() else { return Ok(()) };
        let shared = (&mut self.shared, self.shared_bytes);
        warp.step(run, &mut place, self.index, shared, path).map(drop)
    }

    /// Ends a round in which every warp had its turn, and opens the barrier if all wait at it.
    /// Returns whether all have left.
    pub(crate) fn end_turn(&mut self, run: &mut Run<'_>) -> Result<bool, Box<Report>> {
        self.wake(run)?;
        let only_spins = mem::replace(&mut self.only_spins, true) && !run.progress;
        self.spinning_rounds = if only_spins { self.spinning_rounds + 1 } else { 0 };
        if self.warps.iter().any(Warp::is_ready) {
            return if self.spinning_rounds > IDLE_ROUNDS {
                self.stuck_spinning(run)
            } else {
                Ok(false)
            };
        }
        if self.warps.iter().all(|warp| warp.paths.is_empty()) {
            return Ok(true);
        }
        if !self.settle(run)? {
            self.release(run)?;
        }
        Ok(false)
    }

    /// Opens the barrier if all threads that are left wait at the same one; no warp can go on. All
    /// threads reach barrier 0, `__syncthreads`, at one place in the source. Only PTX can name the
    /// other barriers, and each warp may reach them at a different place.
    fn release(&mut self, run: &mut Run<'_>) -> Result<(), Box<Report>> {
        let kernel = run.launch.kernel;
        if let Some(report) = self.incomplete_part(kernel) {
            return Err(report);
        }
        let mut waiting =
            self.warps.iter().flat_map(|warp| warp.paths.iter().map(move |path| (warp, *path)));
        let Some((warp, first)) = waiting.next() else { return Ok(()) };
        let warp = warp.index;
        let anywhere = first.waiting != Some(Waiting::Barrier(0));
        let place =
            |warp: &Warp| warp.paths.first().filter(|_| anywhere).map_or(first.pc, |path| path.pc);
        if let Some((other, path)) =
            waiting.find(|(other, path)| path.waiting != first.waiting || path.pc != place(other))
        {
            let (other_warp, other) = (other.index, path);
            let message = format!(
                "waits at a barrier, and {} of warp {other_warp} at another, at {}",
                Lanes(other.lanes),
                kernel.place_of(other.pc as usize),
            );
            return Err(self.at_barrier(kernel, warp, first, message));
        }
        if let Some(report) = self.missing_threads(kernel, warp, first) {
            return Err(report);
        }
        self.reduce(kernel, |_| true);
        for path in self.warps.iter_mut().flat_map(|warp| &mut warp.paths) {
            path.pc += 1;
            path.waiting = None;
        }
        let Path { pc, lanes, .. } = first;
        self.epoch += 1;
        run.tally.barriers += 1;
        run.progress = true;
        if let Some(order) = &mut run.order {
            let first = (self.number - self.first) as usize * self.warps.len();
            let first = run.others.unit(first);
            let barrier = order.barrier(&mut run.account, first..first + self.warps.len());
            barrier.map_err(|fault| Fault { lanes, ..*fault }.at(kernel, self.index, warp, pc))?;
        }
        Ok(())
    }

    /// Returns the mistake if the barrier would open although threads have left before it.
    ///
    /// A barrier counts only the warps that are still there, unless it names its number of threads.
    /// So a whole warp may leave, but it may not go around the barrier to the code behind it. A GPU
    /// since Volta also lets single lanes of a warp leave. PTX forbids that for `bar.sync`, which
    /// is `barrier.sync.aligned`.
    fn missing_threads(&self, kernel: &Kernel, warp: u32, first: Path) -> Option<Box<Report>> {
        let mut left = self.warps.iter().filter_map(|warp| Some((warp, warp.left?))).peekable();
        let any = left.peek().copied()?;
        let part = left.find(|(warp, _)| warp.alive != 0);
        let pc = first.pc as usize;
        let mut gone = self.warps.iter().filter_map(|warp| Some((warp, warp.left?)));
        let around = gone.find(|(warp, _)| warp.alive == 0 && warp.before_exit > first.pc);
        if let Some(suspect) = part.and_then(|(warp, _)| warp.suspect.as_deref()) {
            let message = format!(
                "{}, and they miss the barrier at {} as well: a GPU lets the others pass, without what these should do",
                suspect.message,
                kernel.place_of(pc),
            );
            let fault = Fault { kind: ReportKind::Shuffle, lanes: suspect.lanes, message };
            return Some(fault.at(kernel, self.index, part?.0.index, suspect.pc));
        }
        let opcode = &*kernel.opcodes[pc];
        let is_aligned = !opcode.starts_with("barrier.") || opcode.ends_with(".aligned");
        let is_counted = matches!(
            kernel.code[pc].op,
            Op::Barrier { threads: Some(_), .. } | Op::BarrierReduce { threads: Some(_), .. }
        );
        let (other, (lanes, exit)) = match part.filter(|_| is_aligned).or(around) {
            Some(found) => found,
            None if is_counted => any,
            None => return None,
        };
        let missing: u32 =
            self.warps.iter().map(|warp| (warp.exists & !warp.alive).count_ones()).sum();
        let mut message = format!(
            "waits at a barrier that {} of the block cannot reach: {} of warp {} left the kernel at {}",
            Count(missing, "thread"),
            Lanes(lanes),
            other.index,
            kernel.place_of(exit as usize),
        );
        if !is_counted {
            message += match other.alive {
                0 => {
                    " (a GPU waits for the others only, but what is behind a barrier is for those that were there)"
                }
                _ => {
                    " (a GPU waits for the others only, but by PTX the lanes of a warp must come together)"
                }
            };
        }
        Some(self.at_barrier(kernel, warp, first, message))
    }

    /// Reports that every warp that could go on spins on an mbarrier at which no thread arrives.
    #[cold]
    fn stuck_spinning(&self, run: &Run<'_>) -> Result<bool, Box<Report>> {
        let kernel = run.launch.kernel;
        let mut waiting = self.warps.iter().filter_map(|warp| Some((warp.index, warp.spin?)));
        let Some((index, spin)) = waiting.next() else { return Ok(false) };
        let (phase, come, expected) = self
            .shared
            .mbarrier_at(spin.offset)
            .map_or((0, 0, 0), |of| (of.phase, of.expected - of.pending, of.expected));
        let mut message = format!(
            "spins on the mbarrier at offset {} of shared memory: it is in phase {phase}, of parity {}, with {come} of \
             {}, and no thread of the block does anything but wait",
            spin.offset,
            phase % 2,
            Count(expected, "arrival"),
        );
        let bytes = self.shared.mbarrier_at(spin.offset).map_or(0, |of| of.bytes);
        if bytes != 0 {
            let does = if bytes > 0 {
                "are expected and have not come"
            } else {
                "came that were not expected"
            };
            message += &format!("; {} of bulk copies {does}", Count(bytes.unsigned_abs(), "byte"));
        }
        const MOST_NAMED: usize = 4;
        for (i, (index, spin)) in waiting.by_ref().take(MOST_NAMED).enumerate() {
            message += &format!(
                "{} warp {index} on that at offset {} at {}",
                if i == 0 { ":" } else { "," },
                spin.offset,
                kernel.place_of(spin.pc as usize)
            );
        }
        match waiting.count() {
            0 => {}
            more => message += &format!(", {} more", Count(more as u32, "warp")),
        }
        let barrier = self.warps.iter().find_map(|warp| {
            let at = |path: &&Path| {
                matches!(path.waiting, Some(Waiting::Barrier(_) | Waiting::Part { .. }))
            };
            Some((warp.index, warp.paths.iter().find(at)?.pc))
        });
        if let Some((index, pc)) = barrier {
            let place = kernel.place_of(pc as usize);
            message += &format!("; warp {index} waits at the barrier at {place}");
        }
        let left = self.warps.iter().filter(|warp| warp.paths.is_empty()).count();
        if left > 0 {
            message += &format!("; {} left the kernel", Count(left as u32, "warp"));
        }
        let fault = Fault { kind: ReportKind::NoProgress, lanes: spin.lanes, message };
        Err(fault.at(kernel, self.index, index, spin.pc))
    }

    fn at_barrier(&self, kernel: &Kernel, warp: u32, path: Path, message: String) -> Box<Report> {
        debug_assert!(matches!(path.waiting, Some(Waiting::Barrier(_))));
        let fault = Fault { kind: ReportKind::Barrier, lanes: path.lanes, message };
        fault.at(kernel, self.index, warp, path.pc)
    }

    /// Returns a report about the block, with the place, warp and lanes of the first thread that
    /// has not left.
    pub(crate) fn somewhere(
        &self,
        kernel: &Kernel,
        kind: ReportKind,
        message: String,
    ) -> Box<Report> {
        let first = self.warps.iter().find_map(|warp| Some((warp.index, *warp.paths.first()?)));
        let (warp, pc, lanes) = first.map_or((0, 0, 0), |(warp, path)| (warp, path.pc, path.lanes));
        Fault { kind, lanes, message }.at(kernel, self.index, warp, pc)
    }
}
