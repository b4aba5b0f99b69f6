//! What a launch says, and what all blocks of a range of it share while they run.
//!
//! [`Launch`] is the public description: a kernel, a grid, arguments, and bounds. It is data here,
//! below the machine, so that a block can ask for its sizes; `launch` checks it and runs its
//! blocks. [`Run`] is made for each range of blocks, and every instruction that needs more than
//! registers is a method of it. What a kernel's code tells about a launch, such as whether its
//! blocks wait for each other, is found here as well. Tested by `launches.rs` of the suite.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use super::scratch::Place;
use crate::isa::{BarrierId, Kernel, Op, Order, Preset, Reserved, Scope, Slot, Space};
use crate::memory::global::{self, Buffer, Memory};
use crate::memory::order;
use crate::memory::texture::Table;
use crate::report::{Account, Event, Result, Tally, Trace, What};

/// What all blocks of a range of a launch share.
pub(crate) struct Run<'a> {
    pub(crate) launch: &'a Launch<'a>,
    pub(crate) memory: &'a Memory,
    /// The memory's buffers, as they were when the launch began.
    pub(crate) slots: &'a [global::Slot],
    /// Where the module's variables lie, if the kernel uses any.
    pub(crate) globals: &'a [u64],
    /// The address of the grid's workspace, if its blocks run together and ask for it; else 0.
    pub(crate) workspace: u64,
    /// The textures and surfaces that there were then, if the kernel uses any.
    pub(crate) objects: &'a Table,
    /// The buffer that was accessed last, and its address.
    pub(crate) recent: Option<(u64, &'a Buffer)>,
    /// The tag of the grid's first block: see `global::Word`.
    pub(crate) first_tag: u32,
    /// Held for atomic operations on two words.
    pub(crate) wide: &'a Mutex<()>,
    pub(crate) grain: u32,
    /// True if the kernel has mbarriers, or barriers at which a part of the block meets.
    pub(crate) mbarriers: bool,
    /// At which barriers, by their numbers, threads may arrive without waiting.
    pub(crate) arrivals: u16,
    pub(crate) tally: Tally,
    /// What the range may use.
    pub(crate) account: Account<'a>,
    pub(crate) trace: Option<&'a mut Trace>,
    /// Present if the blocks run together: then accesses of other blocks may be ordered.
    pub(crate) order: Option<order::Order>,
    /// Something happened that other blocks or warps can see.
    pub(crate) progress: bool,
    pub(crate) beside: Beside,
}

/// The number of a launch among those that are co-scheduled, each with `warps` warps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Beside {
    pub(crate) number: usize,
    pub(crate) count: usize,
    pub(crate) warps: usize,
}

impl Beside {
    /// One that runs by itself.
    pub(crate) const ALONE: Beside = Beside { number: 0, count: 1, warps: 0 };

    /// The number among all warps of that with a number in this launch.
    pub(crate) fn unit(self, warp: usize) -> usize {
        self.number * self.warps + warp
    }

    /// The launch of one of all warps, and its number in that.
    pub(crate) fn warp(self, unit: usize) -> (usize, usize) {
        if self.count == 1 { (0, unit) } else { (unit / self.warps, unit % self.warps) }
    }
}

impl Run<'_> {
    /// Records an event that allocates `values` values of all lanes.
    pub(crate) fn trace_lanes(
        &mut self,
        place: &Place,
        lanes: u32,
        values: u8,
        what: impl FnOnce() -> What,
    ) -> Result<()> {
        let kernel = self.launch.kernel;
        let Some(trace) = &mut self.trace else { return Ok(()) };
        trace.push(&mut self.account, values, || Event {
            block: place.block,
            warp: place.warp,
            lanes,
            line: kernel.places[place.pc as usize].line,
            source: kernel.source_of(place.pc as usize),
            what: what(),
        })
    }
}

/// Rounds in which no warp stores anything, passes a barrier or leaves, before blocks that run
/// together are said to make no progress.
pub(crate) const IDLE_ROUNDS: u32 = 4096;

/// A kernel with everything that a launch says.
///
/// What it may use is bounded for all its blocks together, in whatever ranges and on however many
/// cores they run. What passes a bound is a [`Report`](crate::Report) with the bound, what is used
/// of it, and the place.
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

impl<'a> Launch<'a> {
    /// The instructions that [`Launch::new`] gives: some five minutes on one core. It is four times
    /// what a single thread needs that goes once, with 12 instructions an element, over three
    /// arrays that fill 2 GiB; kernels that use their lanes need a thirtieth of it.
    pub const INSTRUCTIONS: u64 = 1 << 33;

    /// The bytes of the host that [`Launch::new`] gives: 4 GiB.
    pub const HOST_BYTES: u64 = 4 << 30;

    /// The most warps that [`Prepared::run_together`](crate::Prepared::run_together) runs: 8192. So
    /// many numbers fit into what it keeps of each access.
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
    pub(crate) fn threads(&self) -> u32 {
        u32::try_from(product(self.block)).unwrap_or(u32::MAX)
    }

    /// Warps of a block.
    pub(crate) fn warps(&self) -> u32 {
        self.threads().div_ceil(32)
    }

    /// Bytes of shared memory of a block.
    pub(crate) fn shared_bytes(&self) -> u32 {
        if self.dynamic_shared == 0 {
            self.kernel.static_shared
        } else {
            self.kernel.dynamic_shared + self.dynamic_shared
        }
    }

    /// Where the shared memory lies that CUDA keeps for itself in a block; of a kernel that does
    /// not ask for it, nowhere.
    pub(crate) fn reserved_shared(&self) -> std::ops::Range<u64> {
        if !self.kernel.uses_reserved_shared() {
            return 0..0;
        }
        let [begin, end] =
            [Reserved::Begin, Reserved::End].map(|which| which.value(self.shared_bytes()).into());
        begin..end
    }

    /// Bytes of shared memory that a block has in all, what CUDA keeps for itself included.
    pub(crate) fn all_shared_bytes(&self) -> u32 {
        self.shared_bytes().max(self.reserved_shared().end as u32)
    }
}

pub(crate) fn product(extents: [u32; 3]) -> u64 {
    extents.into_iter().map(u64::from).fold(1, u64::saturating_mul)
}

impl Launch<'_> {
    /// Returns whether something may order threads of a block that is no barrier for all of them:
    /// mbarriers, barriers at which a part of the block meets, or synchronising accesses of shared
    /// memory.
    pub(crate) fn has_parts(&self) -> bool {
        let kernel = self.kernel;
        let counted = |slot: Slot| {
            let preset = kernel.presets.iter().find_map(|preset| match *preset {
                Preset::Word { slot: of, value } if of == slot => Some(value),
                _ => None,
            });
            preset != Some(self.threads())
        };
        kernel.has_mbarriers()
            || self.all_shared_bytes() > 0 && kernel.hands_in_shared()
            || kernel.code.iter().any(|code| match code.op {
                Op::BarrierArrive { .. } => true,
                Op::Barrier { threads: Some(slot), .. }
                | Op::BarrierReduce { threads: Some(slot), .. } => counted(slot),
                _ => false,
            })
    }
}

/// What barriers of parts of a block are in a kernel.
impl Kernel {
    /// At which barriers, by their numbers, threads may arrive without waiting.
    pub(crate) fn arrivals(&self) -> u16 {
        self.code.iter().fold(0, |all, code| match code.op {
            Op::BarrierArrive { id: BarrierId::Number(number), .. } => all | 1 << (number % 16),
            Op::BarrierArrive { .. } => u16::MAX,
            _ => all,
        })
    }

    /// Returns whether it may acquire or release in shared memory, by itself or by fences.
    fn hands_in_shared(&self) -> bool {
        let orders = || {
            self.code.iter().filter_map(|code| match code.op {
                Op::Load { space: Space::Shared | Space::Generic, order, .. }
                | Op::Store { space: Space::Shared | Space::Generic, order, .. }
                | Op::Atomic { space: Space::Shared | Space::Generic, order, .. } => Some(order),
                _ => None,
            })
        };
        let fences = || self.code.iter().any(|code| matches!(code.op, Op::Fence { .. }));
        orders().any(|order| !matches!(order, Order::Weak | Order::Relaxed))
            || orders().any(|order| order == Order::Relaxed) && fences()
    }
}

impl Kernel {
    /// Returns whether its blocks may wait for each other: it has volatile, relaxed or acquiring
    /// loads of global memory, or a fence of the whole device. Such a kernel needs
    /// [`Prepared::run_together`](crate::Prepared::run_together).
    pub fn communicates(&self) -> bool {
        self.code.iter().any(|instruction| match instruction.op {
            Op::Load { space: Space::Global | Space::Generic, order, .. } => order != Order::Weak,
            Op::Fence { scope } => scope == Scope::Device,
            _ => false,
        })
    }
}

impl Kernel {
    pub(crate) fn has_mbarriers(&self) -> bool {
        self.code.iter().any(|instruction| matches!(instruction.op, Op::MbarrierInit { .. }))
    }
}
