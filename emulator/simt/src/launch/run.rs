//! Runs the blocks of a launch: one after the other, together, or alongside the blocks of other
//! launches.
//!
//! Independent blocks run one by one, in ranges that the caller may deal to its cores. Blocks that
//! wait for each other run in short turns on one core, so that none waits forever and the order of
//! their accesses is known. When no block has made progress for some thousand rounds, the launch
//! reports that. Launches that run side by side are co-scheduled in the same way. Tested by
//! `launches.rs`, `memory.rs`, `side_by_side.rs` and `grid_barrier.rs` in `tests/suite`, and by
//! `blocks.ptx` in `tests/cases`.

use std::ops::Range;
use std::ptr;

use super::prepared::Prepared;
use crate::machine::block::Block;
use crate::machine::state::{CoScheduled, IDLE_ROUNDS, Launch, Run};
use crate::memory::global::variables;
use crate::memory::order::Order as Ordering;
use crate::report::{
    Account, Counters, Fault, Report, ReportKind, Result as Found, Tally, Trace, bytes_of, reserve,
};

/// The number of instructions that a warp executes in a turn.
pub(crate) const QUANTUM: u32 = 1 << 14;
/// The number of instructions that a warp executes in a turn if blocks run together.
pub(crate) const SHORT_QUANTUM: u32 = 256;

impl Prepared<'_> {
    /// Returns the launch.
    pub fn launch(&self) -> &Launch<'_> {
        &self.launch
    }

    /// Returns the bytes of [`Launch::host_bytes`] that a range of blocks, run one after the other,
    /// takes while it runs, without the pages that it touches. So a caller that runs ranges at the
    /// same time can compute how many fit.
    pub fn range_bytes(&self) -> u64 {
        let block = Block::bytes(&self.launch, self.grain);
        block.saturating_add(Tally::bytes(self.launch.kernel))
    }

    /// Runs a range of the grid's blocks, one after the other. Blocks of other ranges may run on
    /// other cores at the same time.
    ///
    /// # Errors
    ///
    /// Returns the report of the first mistake of a block; the blocks after it do not run.
    pub fn run(&self, blocks: Range<u64>) -> Result<Counters, Report> {
        self.in_order(blocks, None)
    }

    /// Runs a range of the grid's blocks, one after the other, and records the values of the lanes
    /// in `trace`.
    ///
    /// # Errors
    ///
    /// Returns the report of the first mistake of a block; the blocks after it do not run.
    pub fn run_traced(&self, blocks: Range<u64>, trace: &mut Trace) -> Result<Counters, Report> {
        self.in_order(blocks, Some(trace))
    }

    /// Runs a range of the grid's blocks together, in turns on this core: for kernels whose blocks
    /// wait for each other ([`Kernel::communicates`](crate::Kernel::communicates)). The emulator
    /// follows the order that the kernel itself makes between its blocks, and reports an access
    /// that it does not order.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Prepared::run`], and a report if no block makes progress.
    pub fn run_together(
        &self,
        blocks: Range<u64>,
        trace: Option<&mut Trace>,
    ) -> Result<Counters, Report> {
        let warps = self.warps_together(&blocks)?;
        let kernel = self.launch.kernel;
        let count = blocks.end - blocks.start;
        // Each block may be in two lists: of this round, and of the blocks that are left.
        let each = Block::bytes(&self.launch, self.grain).saturating_add(bytes_of::<Block>(1));
        let mut run = self.start(each.saturating_mul(count), trace, blocks.start)?;
        run.workspace = self.workspace_address();
        let mut order = None;
        let begun = self.begin(&mut run, &blocks, warps as usize, &mut order);
        let mut all = begun.map_err(|fault| self.before(blocks.start, *fault))?;
        run.order = order;
        let mut idle = 0;
        while !all.is_empty() {
            all = self.round(&mut run, all)?;
            idle = if run.progress { 0 } else { idle + 1 };
            if idle > IDLE_ROUNDS
                && let Some(block) = all.first()
            {
                return Err(*stuck(&run, block, all.len()));
            }
        }
        Ok(run.tally.counters(kernel))
    }

    /// Returns the address of a cooperative launch's workspace, or 0 if the kernel does not use it.
    pub(crate) fn workspace_address(&self) -> u64 {
        self.workspace.as_ref().map_or(0, |workspace| workspace.address())
    }

    /// Returns the number of warps of blocks that run together, unless there are too many.
    pub(crate) fn warps_together(&self, blocks: &Range<u64>) -> Result<u64, Report> {
        self.inside(blocks)?;
        let warps = (blocks.end - blocks.start).saturating_mul(self.launch.warps().into());
        let most = Launch::WARPS_TOGETHER;
        if warps <= most {
            return Ok(warps);
        }
        let parts = match self.workspace {
            None => ", so run a part of the grid",
            Some(_) => {
                ", and a grid with a barrier (`grid.sync()`) has no parts (a GPU refuses one that does not fit with \
                 `cudaErrorCooperativeLaunchTooLarge`)"
            }
        };
        let message = format!("cannot run {warps} warps together: {most} at most{parts}");
        Err(Report::launch(self.launch.kernel, message))
    }

    /// Runs launches side by side, each with all of its blocks, in turns on this core, like devices
    /// that reach each other's memory. Here they share one memory. All launches have the same
    /// kernel, and grids and blocks of the same extents. As in [`Prepared::run_together`], an
    /// access that nothing orders with an access of another launch is reported. In a report, the
    /// number of the launch, counted from 0, follows the name of the kernel.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Prepared::run_together`], with all warps of all launches, and a
    /// [`Report`] of kind [`ReportKind::Launch`] if the launches differ in more than their
    /// arguments.
    pub fn run_side_by_side(launches: &[Prepared<'_>]) -> Result<Vec<Counters>, Report> {
        let Some(first) = launches.first() else { return Ok(Vec::new()) };
        let (kernel, count) = (first.launch.kernel, launches.len());
        let alike = |other: &Prepared<'_>| {
            ptr::eq(other.memory, first.memory)
                && ptr::eq(other.launch.kernel, kernel)
                && (other.launch.grid, other.launch.block)
                    == (first.launch.grid, first.launch.block)
        };
        if !launches.iter().all(alike) {
            let message = String::from(
                "cannot run side by side with a launch of another kernel, grid or memory",
            );
            return Err(Report::launch(kernel, message));
        }
        let (blocks, most) = (first.launch.blocks(), Launch::WARPS_TOGETHER);
        let warps = blocks.saturating_mul(first.launch.warps().into());
        let all = warps.saturating_mul(count as u64);
        if all > most {
            let message = format!("cannot run {all} warps side by side: {most} at most");
            return Err(Report::launch(kernel, message));
        }
        let of_launch = |number: usize, mut report: Report| {
            report.kernel += &format!(" of launch {number}");
            report
        };
        let mut order = None;
        let mut sides = Vec::with_capacity(count);
        for (number, prepared) in launches.iter().enumerate() {
            let others = CoScheduled { number, count, warps: warps as usize };
            let begun = prepared.begin_with(others, all as usize, &mut order);
            sides.push(begun.map_err(|report| of_launch(number, report))?);
        }
        let mut idle = 0;
        while sides.iter().any(|(_, blocks)| !blocks.is_empty()) {
            let mut progress = false;
            for (number, (run, blocks)) in sides.iter_mut().enumerate() {
                run.order = order.take();
                let left = launches[number].round(run, std::mem::take(blocks));
                *blocks = left.map_err(|report| of_launch(number, report))?;
                order = run.order.take();
                progress |= run.progress;
            }
            idle = if progress { 0 } else { idle + 1 };
            let waiting = sides.iter().map(|(_, blocks)| blocks.len()).sum();
            if idle > IDLE_ROUNDS {
                let first = sides.iter().enumerate().find_map(|(number, (run, blocks))| {
                    Some((number, stuck(run, blocks.first()?, waiting)))
                });
                if let Some((number, report)) = first {
                    return Err(of_launch(number, *report));
                }
            }
        }
        Ok(sides.into_iter().map(|(run, _)| run.tally.counters(kernel)).collect())
    }

    /// Begins all blocks of one of several launches. The first launch makes the order of accesses.
    fn begin_with(
        &self,
        others: CoScheduled,
        warps: usize,
        order: &mut Option<Ordering>,
    ) -> Result<(Run<'_>, Vec<Block>), Report> {
        let blocks = 0..self.launch.blocks();
        let each = Block::bytes(&self.launch, self.grain).saturating_add(bytes_of::<Block>(1));
        let mut run = self.start(each.saturating_mul(blocks.end), None, 0)?;
        run.others = others;
        run.workspace = self.workspace_address();
        let begun = self.begin(&mut run, &blocks, warps, order);
        let all = begun.map_err(|fault| self.before(0, *fault))?;
        Ok((run, all))
    }

    /// Gives each of the blocks a turn, and returns the blocks that have not left.
    fn round(&self, run: &mut Run<'_>, all: Vec<Block>) -> Result<Vec<Block>, Report> {
        run.progress = false;
        let Some(first) = all.first() else { return Ok(all) };
        let kernel = self.launch.kernel;
        let place = |fault: Box<Fault>| *first.somewhere(kernel, fault.kind, fault.message);
        self.bounds.go_on().map_err(place)?;
        let mut left = Vec::with_capacity(all.len());
        for mut block in all {
            if block.turn(run, SHORT_QUANTUM).map_err(|report| *report)? {
                run.tally.blocks += 1;
                self.save(block);
            } else {
                left.push(block);
            }
        }
        Ok(left)
    }

    /// Begins the blocks that run together, and makes the order of their accesses. Returns the
    /// blocks, each before its first instruction.
    fn begin(
        &self,
        run: &mut Run<'_>,
        blocks: &Range<u64>,
        warps: usize,
        order: &mut Option<Ordering>,
    ) -> Found<Vec<Block>> {
        if order.is_none() {
            *order = Some(Ordering::new(&mut run.account, warps)?);
        }
        let mut all: Vec<Block> = Vec::new();
        reserve(&mut all, (blocks.end - blocks.start) as usize, "blocks")?;
        for number in blocks.clone() {
            let mut block: Block = self.memory.spare.take();
            block.reset(run, number, blocks.start)?;
            all.push(block);
        }
        Ok(all)
    }

    fn in_order(&self, blocks: Range<u64>, trace: Option<&mut Trace>) -> Result<Counters, Report> {
        self.inside(&blocks)?;
        let each = Block::bytes(&self.launch, self.grain);
        let mut run = self.start(each, trace, blocks.start)?;
        let mut block: Block = self.memory.spare.take();
        for number in blocks {
            let begun = self.bounds.go_on().and_then(|()| block.reset(&run, number, number));
            begun.map_err(|fault| self.before(number, *fault))?;
            loop {
                run.progress = false;
                if block.turn(&mut run, QUANTUM).map_err(|report| *report)? {
                    break;
                }
            }
            run.tally.blocks += 1;
        }
        self.save(block);
        Ok(run.tally.counters(self.launch.kernel))
    }

    /// Saves a block that has run, for later launches on the memory.
    fn save(&self, mut block: Block) {
        block.retire();
        let bytes = block.held();
        self.memory.spare.keep(block, bytes);
    }

    fn inside(&self, blocks: &Range<u64>) -> Result<(), Report> {
        let all = self.launch.blocks();
        if blocks.start <= blocks.end && blocks.end <= all {
            return Ok(());
        }
        let message = format!("has {all} blocks, not {blocks:?}");
        Err(Report::launch(self.launch.kernel, message))
    }

    /// Returns the report of a fault that is found before a block's first instruction.
    pub(crate) fn before(&self, block: u64, fault: Fault) -> Report {
        fault.before(self.launch.kernel, Block::index_of(&self.launch, block))
    }

    /// Begins a range of blocks that takes `bytes` bytes in addition to its counters.
    pub(crate) fn start<'r>(
        &'r self,
        bytes: u64,
        trace: Option<&'r mut Trace>,
        first: u64,
    ) -> Result<Run<'r>, Report> {
        let mut account = Account::new(&self.bounds);
        let bytes = bytes.saturating_add(Tally::bytes(self.launch.kernel));
        let taken =
            account.take(bytes, "the registers, local and shared memory of the blocks that run");
        taken.map_err(|fault| self.before(first, *fault))?;
        Ok(Run {
            launch: &self.launch,
            memory: self.memory,
            slots: &self.slots,
            globals: &self.globals,
            objects: &self.objects,
            workspace: 0,
            recent: None,
            first_tag: self.first_tag,
            wide: &self.wide,
            grain: self.grain,
            mbarriers: self.mbarriers,
            arrivals: self.arrivals,
            tally: Tally::new(self.launch.kernel),
            account,
            trace,
            order: None,
            progress: false,
            others: CoScheduled::ALONE,
        })
    }
}

/// Returns the report that all blocks wait for something that none of them does.
pub(crate) fn stuck(run: &Run<'_>, block: &Block, count: usize) -> Box<Report> {
    let wait = if count == 1 { "block waits" } else { "blocks wait" };
    let mut message = format!("makes no progress: {count} {wait} for what none of them does");
    if let Some(arrived) = variables::arrived(run.memory, run.workspace, run.launch.blocks()) {
        message += &arrived;
    }
    block.somewhere(run.launch.kernel, ReportKind::NoProgress, message)
}
