//! A launch: a kernel, a grid, arguments; and the ways to run its blocks.

use std::ops::Range;
use std::ptr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use super::bounds::{Account, Bounds, bytes_of, reserve};
use super::counters::{Counters, Tally};
use super::global_memory::{Memory, PAGE_WORDS, Slot, Word};
use super::machine::block::Block;
use super::machine::fault::{Fault, Result as Found};
use super::machine::{Beside, Run};
use super::order::Order as Ordering;
use super::program::{Kernel, Op, Order, Scope, Space};
use super::report::{Report, ReportKind};
use super::texture::Table;
use super::trace::Trace;
use super::variables;
use super::workspace::{self, Workspace};

/// Instructions that a warp executes before the next one's turn.
pub(super) const QUANTUM: u32 = 1 << 14;
/// Instructions that a warp executes before the next one's turn, if blocks run together.
pub(super) const SHORT_QUANTUM: u32 = 256;
/// Rounds in which no warp stores anything, passes a barrier or leaves, before blocks that run together are said to make no progress.
pub(super) const IDLE_ROUNDS: u32 = 4096;
/// The most shared memory of a block, in bytes: that of an H100 or H200.
const MAX_SHARED: u32 = 227 << 10;

/// A kernel with everything that a launch says.
///
/// What it may use is bounded for all its blocks together, in whatever ranges and on however many cores they
/// run. What passes a bound is a [`Report`] with the bound, what is used of it, and the place.
#[derive(Debug, Clone, Copy)]
pub struct Launch<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// The number of blocks along x, y, z.
    pub grid: [u32; 3],
    /// The number of threads of a block along x, y, z.
    pub block: [u32; 3],
    /// Bytes of shared memory beside those that the kernel declares with a size.
    pub dynamic_shared: u32,
    /// The arguments' bytes, laid out as [`Kernel::params`] says.
    pub arguments: &'a [u8],
    /// How many instructions its warps may execute in all, [`Launch::INSTRUCTIONS`] at first. Passed, it is a report of
    /// kind [`ReportKind::Instructions`]. If ranges run at the same time, one may end so while
    /// others have not executed all that they have drawn: each at most a 64th of the bound, and 16384.
    pub instructions: u64,
    /// How many bytes the emulator may take of the host for it, [`Launch::HOST_BYTES`] at first: for registers,
    /// local and shared memory of the blocks that run, for the shadow that finds races, for pages of
    /// global memory that it is the first to touch, for counters and traces. Passed, it is a report of
    /// kind [`ReportKind::HostBytes`].
    pub host_bytes: u64,
    /// Whoever sets this ends the launch at the next instructions, some milliseconds later, with a report of kind
    /// [`ReportKind::Cancelled`].
    pub cancel: Option<&'a AtomicBool>,
}

/// A launch that has been checked, on a memory. Ranges of its blocks may run on several cores at once.
#[derive(Debug)]
pub struct Prepared<'a> {
    launch: Launch<'a>,
    memory: &'a Memory,
    bounds: Bounds<'a>,
    slots: Vec<Slot>,
    globals: Arc<[u64]>,
    objects: Table,
    pub(super) workspace: Option<Workspace>,
    pub(super) first_tag: u32,
    wide: Mutex<()>,
    pub(super) grain: u32,
    mbarriers: bool,
    arrivals: u16,
}

impl<'a> Launch<'a> {
    /// The instructions that [`Launch::new`] gives: some five minutes on one core. It is four times what a single
    /// thread needs that goes once, with 12 instructions an element, over three arrays that fill 2 GiB; kernels
    /// that use their lanes need a thirtieth of it.
    pub const INSTRUCTIONS: u64 = 1 << 33;

    /// The bytes of the host that [`Launch::new`] gives: 4 GiB.
    pub const HOST_BYTES: u64 = 4 << 30;

    /// The most warps that [`Prepared::run_together`] runs: 8192. So many numbers fit into what it keeps of each access.
    pub const WARPS_TOGETHER: u64 = 1 << 13;

    /// A launch without dynamic shared memory.
    pub fn new(
        kernel: &'a Kernel,
        grid: [u32; 3],
        block: [u32; 3],
        arguments: &'a [u8],
    ) -> Launch<'a> {
        Launch {
            kernel,
            grid,
            block,
            dynamic_shared: 0,
            arguments,
            instructions: Launch::INSTRUCTIONS,
            host_bytes: Launch::HOST_BYTES,
            cancel: None,
        }
    }

    /// The number of blocks of the grid; of a grid that cannot be launched at most [`u64::MAX`].
    pub fn blocks(&self) -> u64 {
        product(self.grid)
    }

    /// Threads of a block; of a launch that has been checked, 1024 at most.
    pub(super) fn threads(&self) -> u32 {
        u32::try_from(product(self.block)).unwrap_or(u32::MAX)
    }

    /// Warps of a block.
    pub(super) fn warps(&self) -> u32 {
        self.threads().div_ceil(32)
    }

    /// Bytes of shared memory of a block.
    pub(super) fn shared_bytes(&self) -> u32 {
        if self.dynamic_shared == 0 {
            self.kernel.static_shared
        } else {
            self.kernel.dynamic_shared + self.dynamic_shared
        }
    }

    /// Checks the launch, and begins it: the variables that its module has are placed in the memory, unless a launch
    /// before has done so, and from here on no buffer may be allocated or freed until its
    /// blocks have run.
    ///
    /// # Errors
    ///
    /// A [`Report`] of kind [`ReportKind::Launch`] that says what cannot be launched, or that the memory's
    /// list of buffers alone passes [`Launch::host_bytes`].
    pub fn prepare(self, memory: &'a Memory) -> Result<Prepared<'a>, Report> {
        let kernel = self.kernel;
        let refuse = |message: String| Err(Report::launch(kernel, message));
        let ([x, y, z], threads) = (self.block, product(self.block));
        let most = kernel.max_threads_per_block() as u64;
        if threads == 0 || z > 64 || threads > most {
            return refuse(format!(
                "cannot run blocks of {x} x {y} x {z} threads: 1 to {most} in all, at most 64 along z"
            ));
        }
        if let Some(required) = kernel.required_threads
            && required != self.block
        {
            let [a, b, c] = required;
            return refuse(format!("needs blocks of {a} x {b} x {c} threads, not {x} x {y} x {z}"));
        }
        let [gx, gy, gz] = self.grid;
        let too_large = gx > i32::MAX as u32 || gy > 65_535 || gz > 65_535;
        if self.blocks() == 0 || too_large || self.blocks() >= u64::from(u32::MAX) {
            return refuse(format!(
                "cannot run a grid of {gx} x {gy} x {gz} blocks: at least 1, at most {} along x, 65535 along y and z, \
                 {} in all",
                i32::MAX,
                u32::MAX - 1
            ));
        }
        let shared = kernel.dynamic_shared.checked_add(self.dynamic_shared);
        if shared.is_none_or(|bytes| bytes > MAX_SHARED) {
            let (has, asked) = (kernel.static_shared, self.dynamic_shared);
            return refuse(format!(
                "has {has} bytes of shared memory and is given {asked} more: {MAX_SHARED} at most"
            ));
        }
        let (given, needed) = (self.arguments.len(), kernel.param_bytes);
        if given != needed as usize {
            return refuse(format!("takes {needed} bytes of arguments, not {given}"));
        }
        let bounds = Bounds::new(self.instructions, self.host_bytes, self.cancel);
        if kernel.uses_globals() && memory.placed(&kernel.globals).is_none() {
            // They stay when the launch is over, and count for as long as that lasts.
            let bytes = variables::host_bytes(&kernel.globals);
            let taken = bounds.take(bytes, "the variables of the module");
            taken.map_err(|fault| fault.before(kernel, [0; 3]))?;
            if let Err(error) = memory.place(&kernel.globals) {
                return refuse(format!("has no room for the variables of its module: {error}"));
            }
        }
        let listed = bounds.take(bytes_of::<Slot>(memory.slots() as u64), "the list of buffers");
        listed.map_err(|fault| fault.before(kernel, [0; 3]))?;
        let first_tag = memory.reserve_tags(self.blocks());
        let mut workspace = None;
        if kernel.uses_workspace() {
            let bytes = bytes_of::<Word>(PAGE_WORDS as u64);
            let taken = bounds.take(bytes, "the workspace of the grid");
            taken.map_err(|fault| fault.before(kernel, [0; 3]))?;
            match memory.workspace() {
                Ok(made) => workspace = Some(made),
                Err(error) => {
                    return refuse(format!("has no room for the workspace of its grid: {error}"));
                }
            }
        }
        Ok(self.resume(memory, bounds, first_tag, workspace))
    }

    /// A launch that has been checked and has begun, on the same memory.
    pub(super) fn resume(
        self,
        memory: &'a Memory,
        bounds: Bounds<'a>,
        first_tag: u32,
        workspace: Option<Workspace>,
    ) -> Prepared<'a> {
        let (slots, grain) = (memory.snapshot(), grain(self.kernel));
        let globals = memory.placed(&self.kernel.globals).unwrap_or_default();
        let uses_objects = self.kernel.code.iter().any(|code| code.op.is_of_objects());
        let objects = if uses_objects { memory.objects.snapshot() } else { Table::new() };
        let (wide, mbarriers) = (Mutex::new(()), self.has_parts());
        let arrivals = self.kernel.arrivals();
        Prepared {
            launch: self,
            memory,
            bounds,
            slots,
            globals,
            objects,
            workspace,
            first_tag,
            wide,
            grain,
            mbarriers,
            arrivals,
        }
    }
}

impl Prepared<'_> {
    /// The launch.
    pub fn launch(&self) -> &Launch<'_> {
        &self.launch
    }

    /// What a range of blocks that run one after the other takes of [`Launch::host_bytes`] while it runs, beside
    /// the pages that it touches: who runs many ranges at a time sees how many can.
    pub fn range_bytes(&self) -> u64 {
        let block = Block::bytes(&self.launch, self.grain);
        block.saturating_add(Tally::bytes(self.launch.kernel))
    }

    /// Runs a range of the grid's blocks, one after the other. Blocks of other ranges may run on other
    /// cores at the same time.
    ///
    /// # Errors
    ///
    /// The first thing that a block does wrong; the blocks after it do not run.
    pub fn run(&self, blocks: Range<u64>) -> Result<Counters, Report> {
        self.one_by_one(blocks, None)
    }

    /// Runs a range of the grid's blocks, one after the other, and records in `trace` what the lanes held.
    ///
    /// # Errors
    ///
    /// The first thing that a block does wrong; the blocks after it do not run.
    pub fn run_traced(&self, blocks: Range<u64>, trace: &mut Trace) -> Result<Counters, Report> {
        self.one_by_one(blocks, Some(trace))
    }

    /// Runs a range of the grid's blocks together, taking turns on this core: for kernels whose blocks wait
    /// for each other ([`Kernel::communicates`]). Whatever order the kernel itself makes between its
    /// blocks is known, and an access that it does not order is reported.
    ///
    /// # Errors
    ///
    /// As [`Prepared::run`]; also if all blocks wait for what none of them does.
    pub fn run_together(
        &self,
        blocks: Range<u64>,
        trace: Option<&mut Trace>,
    ) -> Result<Counters, Report> {
        let warps = self.warps_together(&blocks)?;
        let kernel = self.launch.kernel;
        let count = blocks.end - blocks.start;
        // Each is in a list of those that ran, and in one of those that are left.
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

    /// Where the workspace of a cooperative launch is; 0 if the kernel does not ask for it.
    pub(super) fn workspace_address(&self) -> u64 {
        self.workspace.as_ref().map_or(0, |workspace| workspace.address())
    }

    /// How many warps blocks have that are to run together, if so many can.
    pub(super) fn warps_together(&self, blocks: &Range<u64>) -> Result<u64, Report> {
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

    /// Runs launches side by side, each with all of its blocks, taking turns on this core: as devices do that reach each
    /// other's memory, which here is one. They are of one kernel, in grids and blocks of the same extents. As in
    /// [`Prepared::run_together`], an access that nothing orders with one of another launch is reported; a report's
    /// kernel is followed by the launch that it is of, counted from 0.
    ///
    /// # Errors
    ///
    /// As [`Prepared::run_together`], with all warps of all launches; a [`Report`] of kind [`ReportKind::Launch`] if the
    /// launches differ in more than their arguments.
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
            let beside = Beside { number, count, warps: warps as usize };
            let begun = prepared.begin_beside(beside, all as usize, &mut order);
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

    /// All blocks of one of several launches; the order of accesses is made with the first.
    fn begin_beside(
        &self,
        beside: Beside,
        warps: usize,
        order: &mut Option<Ordering>,
    ) -> Result<(Run<'_>, Vec<Block>), Report> {
        let blocks = 0..self.launch.blocks();
        let each = Block::bytes(&self.launch, self.grain).saturating_add(bytes_of::<Block>(1));
        let mut run = self.start(each.saturating_mul(blocks.end), None, 0)?;
        run.beside = beside;
        run.workspace = self.workspace_address();
        let begun = self.begin(&mut run, &blocks, warps, order);
        let all = begun.map_err(|fault| self.before(0, *fault))?;
        Ok((run, all))
    }

    /// Gives each of the blocks a turn, and those back that have not left.
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
                self.memory.spare.keep(block);
            } else {
                left.push(block);
            }
        }
        Ok(left)
    }

    /// The blocks that run together, each before its first instruction, and the order of their accesses.
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
            let mut block = self.memory.spare.take();
            block.reset(run, number, blocks.start)?;
            all.push(block);
        }
        Ok(all)
    }

    fn one_by_one(
        &self,
        blocks: Range<u64>,
        trace: Option<&mut Trace>,
    ) -> Result<Counters, Report> {
        self.inside(&blocks)?;
        let each = Block::bytes(&self.launch, self.grain);
        let mut run = self.start(each, trace, blocks.start)?;
        let mut block = self.memory.spare.take();
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
        self.memory.spare.keep(block);
        Ok(run.tally.counters(self.launch.kernel))
    }

    fn inside(&self, blocks: &Range<u64>) -> Result<(), Report> {
        let all = self.launch.blocks();
        if blocks.start <= blocks.end && blocks.end <= all {
            return Ok(());
        }
        let message = format!("has {all} blocks, not {blocks:?}");
        Err(Report::launch(self.launch.kernel, message))
    }

    /// What is found before a block's first instruction.
    pub(super) fn before(&self, block: u64, fault: Fault) -> Report {
        fault.before(self.launch.kernel, Block::index_of(&self.launch, block))
    }

    /// Begins a range of blocks that takes so many bytes beside its counters.
    pub(super) fn start<'r>(
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
            beside: Beside::ALONE,
        })
    }
}

/// Nobody does anything that another one could wait for.
pub(super) fn stuck(run: &Run<'_>, block: &Block, count: usize) -> Box<Report> {
    let wait = if count == 1 { "block waits" } else { "blocks wait" };
    let mut message = format!("makes no progress: {count} {wait} for what none of them does");
    if let Some(arrived) = workspace::arrived(run.memory, run.workspace, run.launch.blocks()) {
        message += &arrived;
    }
    block.somewhere(run.launch.kernel, ReportKind::NoProgress, message)
}

fn product(extents: [u32; 3]) -> u64 {
    extents.into_iter().map(u64::from).fold(1, u64::saturating_mul)
}

impl Kernel {
    /// Whether its blocks may wait for each other: it has volatile, relaxed or acquiring loads of global
    /// memory, or a fence of the whole device. Such a kernel needs [`Prepared::run_together`].
    pub fn communicates(&self) -> bool {
        self.code.iter().any(|instruction| match instruction.op {
            Op::Load { space: Space::Global | Space::Generic, order, .. } => order != Order::Weak,
            Op::Fence { scope } => scope == Scope::Device,
            _ => false,
        })
    }
}

impl Kernel {
    pub(super) fn has_mbarriers(&self) -> bool {
        self.code.iter().any(|instruction| matches!(instruction.op, Op::MbarrierInit { .. }))
    }
}

/// The smallest access to shared memory, up to a word, as the logarithm of its bytes.
fn grain(kernel: &Kernel) -> u32 {
    let widths = kernel.code.iter().filter_map(|instruction| match instruction.op {
        Op::Load { space: Space::Shared | Space::Generic, ty, count, .. }
        | Op::Store { space: Space::Shared | Space::Generic, ty, count, .. } => {
            Some(ty.bytes() * u32::from(count))
        }
        Op::Atomic { space: Space::Shared | Space::Generic, ty, .. } => Some(ty.bytes()),
        Op::MatrixLoad { space: Space::Shared | Space::Generic, fragment, .. }
        | Op::MatrixStore { space: Space::Shared | Space::Generic, fragment, .. } => {
            Some(fragment.least_bytes())
        }
        Op::RowsStore { transposed: true, .. } => Some(2),
        _ => None,
    });
    widths.min().unwrap_or(4).min(4).ilog2()
}
