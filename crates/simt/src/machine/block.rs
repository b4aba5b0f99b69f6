//! A block: its warps, its shared memory, and the barriers at which its threads wait for each other.

use super::Run;
use super::fault::{self, Fault};
use super::registers::Identity;
use super::warp::{Path, Place, Waiting, Warp};
use crate::bounds::{bytes_of, reserve};
use crate::global_memory::Tags;
use crate::instruction::Op;
use crate::launch::Launch;
use crate::program::Kernel;
use crate::report::{Count, Lanes, Report, ReportKind};
use crate::shared_memory::Shared;

/// A block of threads.
#[derive(Debug, Default)]
pub(crate) struct Block {
    number: u64,
    first: u64,
    index: [u32; 3],
    warps: Vec<Warp>,
    shared: Shared,
    shared_bytes: u32,
    epoch: u32,
}

impl Block {
    /// What a block of a launch takes of the host, itself included.
    pub(crate) fn bytes(launch: &Launch<'_>, grain: u32) -> u64 {
        let kernel = launch.kernel;
        let warps = launch.warps();
        let parts = kernel.code.iter().any(|code| matches!(code.op, Op::WarpBarrier { .. }));
        let shared =
            Shared::host_bytes(launch.shared_bytes(), grain, if parts { warps } else { 0 });
        let warps = u64::from(warps).saturating_mul(Warp::bytes(kernel));
        bytes_of::<Block>(1).saturating_add(shared).saturating_add(warps)
    }

    /// The index in the grid of block `number`.
    pub(crate) fn index_of(launch: &Launch<'_>, number: u64) -> [u32; 3] {
        let [x, y, _] = launch.grid.map(u64::from);
        [(number % x) as u32, (number / x % y) as u32, (number / x / y) as u32]
    }

    /// Makes it block `number` of the grid, before its first instruction. `first` is the number of the
    /// first block of those that run together. The range's account has its bytes.
    pub(crate) fn reset(&mut self, run: &Run<'_>, number: u64, first: u64) -> fault::Result<()> {
        let launch = run.launch;
        let kernel = launch.kernel;
        self.number = number;
        self.first = first;
        self.index = Block::index_of(launch, number);
        self.shared_bytes = launch.shared_bytes();
        self.shared.reset(self.shared_bytes, run.grain)?;
        self.epoch = 0;
        let warps = launch.warps();
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
            };
            warp.reset(kernel, &identity, launch.threads())?;
        }
        Ok(())
    }

    /// The block has run, and is going to be kept: what a range's account had paid for as it grew is given back.
    pub(super) fn retire(&mut self) {
        self.warps.iter_mut().for_each(Warp::retire);
    }

    /// Bytes of the host that it has, itself included.
    pub(super) fn held(&self) -> u64 {
        let unused = (self.warps.capacity() - self.warps.len()) as u64;
        let warps: u64 = self.warps.iter().map(Warp::held).sum();
        bytes_of::<Block>(1) + self.shared.held() + warps + bytes_of::<Warp>(unused)
    }

    /// Lets every warp execute up to `quantum` instructions. Returns whether all have left.
    pub(crate) fn turn(&mut self, run: &mut Run<'_>, quantum: u32) -> Result<bool, Box<Report>> {
        let warps = self.warps.len();
        let mut place = Place {
            pc: 0,
            block: self.number,
            first_block: self.first,
            warp: 0,
            warps: warps as u32,
            unit: (self.number - self.first) as usize * warps,
            tags: Tags::new(run.first_tag, run.launch.blocks(), self.number),
            epoch: self.epoch,
            warp_epoch: 0,
        };
        for warp in &mut self.warps {
            if warp.is_ready() {
                let shared = (&mut self.shared, self.shared_bytes);
                warp.advance(run, place, self.index, shared, quantum)?;
            }
            place.warp += 1;
            place.unit += 1;
        }
        if self.warps.iter().any(Warp::is_ready) {
            return Ok(false);
        }
        if self.warps.iter().all(|warp| warp.paths.is_empty()) {
            return Ok(true);
        }
        self.release(run)?;
        Ok(false)
    }

    /// Everybody waits or has left: opens the barrier, if all wait at the same one and nobody has left. Barrier 0 is that
    /// of `__syncthreads`, one place in the source for all. To the others, which only PTX can name, each warp may come
    /// from a place of its own.
    fn release(&mut self, run: &mut Run<'_>) -> Result<(), Box<Report>> {
        let kernel = run.launch.kernel;
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
        let left = self.warps.iter().find_map(|warp| Some((warp.index, warp.left?)));
        if let Some((other_warp, (lanes, pc))) = left {
            let missing: u32 =
                self.warps.iter().map(|warp| (warp.exists & !warp.alive).count_ones()).sum();
            let message = format!(
                "waits at a barrier that {} of the block cannot reach: {} of warp {other_warp} left the kernel at {}",
                Count(missing, "thread"),
                Lanes(lanes),
                kernel.place_of(pc as usize),
            );
            return Err(self.at_barrier(kernel, warp, first, message));
        }
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
            let barrier = order.barrier(&mut run.account, first..first + self.warps.len());
            barrier.map_err(|fault| Fault { lanes, ..*fault }.at(kernel, self.index, warp, pc))?;
        }
        Ok(())
    }

    fn at_barrier(&self, kernel: &Kernel, warp: u32, path: Path, message: String) -> Box<Report> {
        debug_assert!(matches!(path.waiting, Some(Waiting::Barrier(_))));
        let fault = Fault { kind: ReportKind::Barrier, lanes: path.lanes, message };
        fault.at(kernel, self.index, warp, path.pc)
    }

    /// Where the first thread is that has not left, and its warp and lanes: for reports about a block.
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
