//! A launch as the caller describes it, and the state that all blocks of a range share while they
//! run.
//!
//! [`Launch`] is the public description: a kernel, a grid, arguments, and bounds. It is data here,
//! below the machine, so that a block can ask for its sizes; the folder `launch` checks it and runs
//! its blocks. [`Run`] is made for each range of blocks, and every instruction that needs more than
//! registers is a method of it. This file also derives from a kernel's code how the kernel must
//! run, such as whether its blocks wait for each other. Tested by `launches.rs` and `bounds.rs` in
//! `tests/suite`, and by `launches.ptx` in `tests/cases`.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use super::scratch::Place;
use crate::isa::{BarrierId, Kernel, Op, Order, Preset, Reserved, Scope, Slot, Space};
use crate::memory::global::{self, Buffer, Memory};
use crate::memory::order;
use crate::memory::texture::Table;
use crate::report::{Account, Event, Result, Tally, Trace, What};

/// The state that all blocks of a range of a launch share.
pub(crate) struct Run<'a> {
    pub(crate) launch: &'a Launch<'a>,
    pub(crate) memory: &'a Memory,
    /// The memory's buffers, as they were when the launch began.
    pub(crate) slots: &'a [global::Slot],
    /// The addresses of the module's variables, if the kernel uses any.
    pub(crate) globals: &'a [u64],
    /// The address of the grid's workspace if its blocks run together and use it, or 0.
    pub(crate) workspace: u64,
    /// The textures and surfaces when the launch began, if the kernel uses any.
    pub(crate) objects: &'a Table,
    /// The address of the buffer that was accessed last, and the buffer.
    pub(crate) recent: Option<(u64, &'a Buffer)>,
    /// The tag of the grid's first block; see `global::Word`.
    pub(crate) first_tag: u32,
    /// The lock that atomic operations on two words hold.
    pub(crate) wide: &'a Mutex<()>,
    /// The logarithm of the bytes of the smallest access to shared memory, at most 2.
    pub(crate) grain: u32,
    /// True if the kernel has mbarriers, or barriers at which a part of the block meets.
    pub(crate) mbarriers: bool,
    /// The barriers at which threads may arrive without waiting, as bits by their numbers.
    pub(crate) arrivals: u16,
    pub(crate) tally: Tally,
    /// The account of the instructions and the host memory that the range may use.
    pub(crate) account: Account<'a>,
    pub(crate) trace: Option<&'a mut Trace>,
    /// The order of accesses between warps; present if the blocks run together.
    pub(crate) order: Option<order::Order>,
    /// True if something happened that other blocks or warps can see.
    pub(crate) progress: bool,
    pub(crate) others: CoScheduled,
}

/// The number of a launch among those that are co-scheduled, each with `warps` warps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CoScheduled {
    pub(crate) number: usize,
    pub(crate) count: usize,
    pub(crate) warps: usize,
}

impl CoScheduled {
    /// The value for a launch that runs alone.
    pub(crate) const ALONE: CoScheduled = CoScheduled { number: 0, count: 1, warps: 0 };

    /// Returns the number, among the warps of all launches, of a warp of this launch.
    pub(crate) fn unit(self, warp: usize) -> usize {
        self.number * self.warps + warp
    }

    /// Returns the launch of a warp among all warps, and the warp's number in that launch.
    pub(crate) fn warp(self, unit: usize) -> (usize, usize) {
        if self.count == 1 { (0, unit) } else { (unit / self.warps, unit % self.warps) }
    }
}

impl Run<'_> {
    /// Records an event that allocates `values` values for all lanes.
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

/// The number of rounds in which no warp stores anything, passes a barrier or leaves, before the
/// launch reports that it makes no progress.
pub(crate) const IDLE_ROUNDS: u32 = 4096;

/// A kernel, and everything that describes one launch of it.
///
/// The bounds hold for all blocks together, in whatever ranges and on however many cores they run.
/// A launch that passes a bound ends with a [`Report`](crate::Report) of the bound, the amount that
/// is used, and the place.
#[derive(Debug, Clone, Copy)]
pub struct Launch<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// The number of blocks along x, y, z.
    pub grid: [u32; 3],
    /// The number of threads of a block along x, y, z.
    pub block: [u32; 3],
    /// The bytes of shared memory in addition to those that the kernel declares with a size.
    pub dynamic_shared: u32,
    /// The bytes of the arguments, laid out as [`Kernel::params`] describes.
    pub arguments: &'a [u8],
    /// The most instructions that its warps may execute in all; [`Launch::INSTRUCTIONS`] by
    /// default. Passing it is a report of kind [`ReportKind::Instructions`](crate::ReportKind). If
    /// ranges run at the same time, one may end so while others have not executed all instructions
    /// that they have drawn: each at most a 64th of the bound, and 16384.
    pub instructions: u64,
    /// The most bytes of host memory that the emulator may take for it; [`Launch::HOST_BYTES`] by
    /// default: for registers, local and shared memory of the blocks that run, for the shadow that
    /// finds races, for pages of global memory that it is the first to touch, for counters and
    /// traces. Passing it is a report of kind [`ReportKind::HostBytes`](crate::ReportKind).
    pub host_bytes: u64,
    /// A flag that ends the launch: some milliseconds after it is set, the launch ends with a
    /// report of kind [`ReportKind::Cancelled`](crate::ReportKind).
    pub cancel: Option<&'a AtomicBool>,
}

impl<'a> Launch<'a> {
    /// The bound on instructions that [`Launch::new`] sets: some five minutes on one core. A single
    /// thread that goes once over three arrays of 2 GiB in all, with 12 instructions an element,
    /// needs a quarter of it. Kernels that use all lanes need a thirtieth of it.
    pub const INSTRUCTIONS: u64 = 1 << 33;

    /// The bound on bytes of host memory that [`Launch::new`] sets: 4 GiB.
    pub const HOST_BYTES: u64 = 4 << 30;

    /// The most warps that [`Prepared::run_together`](crate::Prepared::run_together) runs: 8192.
    /// The record of an access has no place for larger numbers of warps.
    pub const WARPS_TOGETHER: u64 = 1 << 13;

    /// Creates a launch without dynamic shared memory and with the default bounds.
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

    /// Returns the number of blocks of the grid, at most [`u64::MAX`] if it cannot be launched.
    pub fn blocks(&self) -> u64 {
        product(self.grid)
    }

    /// Returns the number of threads of a block, at most 1024 if the launch has been checked.
    pub(crate) fn threads(&self) -> u32 {
        u32::try_from(product(self.block)).unwrap_or(u32::MAX)
    }

    /// Returns the number of warps of a block.
    pub(crate) fn warps(&self) -> u32 {
        self.threads().div_ceil(32)
    }

    /// Returns the bytes of shared memory of a block.
    pub(crate) fn shared_bytes(&self) -> u32 {
        if self.dynamic_shared == 0 {
            self.kernel.static_shared
        } else {
            self.kernel.dynamic_shared + self.dynamic_shared
        }
    }

    /// Returns the range of shared memory that CUDA reserves in a block, which is empty if the
    /// kernel does not use it.
    pub(crate) fn reserved_shared(&self) -> std::ops::Range<u64> {
        if !self.kernel.uses_reserved_shared() {
            return 0..0;
        }
        let [begin, end] =
            [Reserved::Begin, Reserved::End].map(|which| which.value(self.shared_bytes()).into());
        begin..end
    }

    /// Returns the bytes of shared memory of a block, including those that CUDA reserves.
    pub(crate) fn all_shared_bytes(&self) -> u32 {
        self.shared_bytes().max(self.reserved_shared().end as u32)
    }
}

pub(crate) fn product(extents: [u32; 3]) -> u64 {
    extents.into_iter().map(u64::from).fold(1, u64::saturating_mul)
}

impl Launch<'_> {
    /// Returns whether anything but a barrier for all threads may order threads of a block:
    /// mbarriers, barriers for a part of the block, or synchronising accesses of shared memory.
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

impl Kernel {
    /// Returns the barriers at which threads may arrive without waiting, as bits by their numbers.
    pub(crate) fn arrivals(&self) -> u16 {
        self.code.iter().fold(0, |all, code| match code.op {
            Op::BarrierArrive { id: BarrierId::Number(number), .. } => all | 1 << (number % 16),
            Op::BarrierArrive { .. } => u16::MAX,
            _ => all,
        })
    }

    /// Returns whether accesses or fences may acquire or release in shared memory.
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
    /// Returns whether the kernel's blocks may wait for each other. They may if it has volatile,
    /// relaxed or acquiring loads of global memory, or a fence of the whole device. Such a kernel
    /// needs [`Prepared::run_together`](crate::Prepared::run_together).
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
