//! A launch: a kernel, a grid, arguments. The ways to run its blocks are in `run`.

mod run;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use crate::bounds::{Bounds, bytes_of};
use crate::global_memory::{Memory, PAGE_WORDS, Slot, Word};
use crate::program::{Kernel, Op, Order, Reserved, Scope, Space};
use crate::report::Report;
use crate::texture::Table;
use crate::variables;
use crate::workspace::Workspace;

pub(crate) use run::{IDLE_ROUNDS, QUANTUM, SHORT_QUANTUM, stuck};

/// The most shared memory of a block, in bytes: that of an H100 or H200.
const MAX_SHARED: u32 = 227 << 10;

/// A kernel with everything that a launch says.
///
/// What it may use is bounded for all its blocks together, in whatever ranges and on however many
/// cores they run. What passes a bound is a [`Report`] with the bound, what is used of it, and the
/// place.
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
    /// How many instructions its warps may execute in all, [`Launch::INSTRUCTIONS`] at first.
    /// Passed, it is a report of kind [`ReportKind::Instructions`](crate::ReportKind). If ranges
    /// run at the same time, one may end so while others have not executed all that they have
    /// drawn: each at most a 64th of the bound, and 16384.
    pub instructions: u64,
    /// How many bytes the emulator may take of the host for it, [`Launch::HOST_BYTES`] at first:
    /// for registers, local and shared memory of the blocks that run, for the shadow that finds
    /// races, for pages of global memory that it is the first to touch, for counters and traces.
    /// Passed, it is a report of kind [`ReportKind::HostBytes`](crate::ReportKind).
    pub host_bytes: u64,
    /// Whoever sets this ends the launch at the next instructions, some milliseconds later, with a
    /// report of kind [`ReportKind::Cancelled`](crate::ReportKind).
    pub cancel: Option<&'a AtomicBool>,
}

/// A launch that has been checked, on a memory. Ranges of its blocks may run on several cores at
/// once.
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
    /// The instructions that [`Launch::new`] gives: some five minutes on one core. It is four times
    /// what a single thread needs that goes once, with 12 instructions an element, over three
    /// arrays that fill 2 GiB; kernels that use their lanes need a thirtieth of it.
    pub const INSTRUCTIONS: u64 = 1 << 33;

    /// The bytes of the host that [`Launch::new`] gives: 4 GiB.
    pub const HOST_BYTES: u64 = 4 << 30;

    /// The most warps that [`Prepared::run_together`] runs: 8192. So many numbers fit into what it
    /// keeps of each access.
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

    /// Where the shared memory lies that CUDA keeps for itself in a block; of a kernel that does
    /// not ask for it, nowhere.
    pub(super) fn reserved_shared(&self) -> std::ops::Range<u64> {
        if !self.kernel.uses_reserved_shared() {
            return 0..0;
        }
        let [begin, end] =
            [Reserved::Begin, Reserved::End].map(|which| which.value(self.shared_bytes()).into());
        begin..end
    }

    /// Bytes of shared memory that a block has in all, what CUDA keeps for itself included.
    pub(super) fn all_shared_bytes(&self) -> u32 {
        self.shared_bytes().max(self.reserved_shared().end as u32)
    }

    /// Checks the launch, and begins it: the variables that its module has are placed in the
    /// memory, unless a launch before has done so, and from here on no buffer may be allocated or
    /// freed until its blocks have run.
    ///
    /// # Errors
    ///
    /// A [`Report`] of kind [`ReportKind::Launch`](crate::ReportKind) that says what cannot be
    /// launched, or that the memory's list of buffers alone passes [`Launch::host_bytes`].
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

fn product(extents: [u32; 3]) -> u64 {
    extents.into_iter().map(u64::from).fold(1, u64::saturating_mul)
}

impl Kernel {
    /// Whether its blocks may wait for each other: it has volatile, relaxed or acquiring loads of
    /// global memory, or a fence of the whole device. Such a kernel needs
    /// [`Prepared::run_together`].
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
