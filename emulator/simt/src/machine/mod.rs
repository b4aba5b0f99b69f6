//! The machine: warps of 32 lanes that execute a kernel's instructions.
//!
//! - `registers`: what a warp's instructions read and write.
//! - `compute`: which instructions do nothing else, of the files that follow.
//! - `integer`, `ternary`, `simd`, `video`, `carry`, `float`, `float_order`, `half`, `directed`,
//!   `approximate`, `convert`: instructions on registers alone; `rounding`: what those of floats
//!   share.
//! - `lanes`: shuffles, votes and what else works across the lanes of a warp.
//! - `access`, `global_access`, `shared_access`, `local`, `parameter`: loads, stores, atomics, with
//!   all their checks; `global_fault`: what is said of those of global memory.
//! - `matrix`: products of matrices, whose sums are in `tensor`; `matrix_memory`: their loads and
//!   stores.
//! - `texture`: fetches from textures; `surface`: loads and stores of surfaces.
//! - `mbarrier`: barriers that are objects in shared memory; `copy`, `bulk`: copies to it that go
//!   on beside the program.
//! - `call`: functions; `system`, `print`: those behind `printf` and `assert`.
//! - `warp`: which lanes are where, and one instruction after the other.
//! - `block`: the warps of a block, and its barriers; `barrier`: those at which a part of it meets.
//! - `spare`: blocks that have run, for later launches.

mod access;
mod approximate;
mod atomic;
mod barrier;
pub(super) mod block;
mod bulk;
mod call;
mod carry;
mod compute;
mod convert;
mod copy;
mod directed;
pub(super) mod fault;
mod float;
mod float_order;
mod global_access;
mod global_fault;
mod half;
mod integer;
mod lanes;
mod local;
mod matrix;
mod matrix_memory;
mod mbarrier;
mod parameter;
mod print;
pub(super) mod registers;
mod rounding;
mod shared_access;
mod simd;
pub(super) mod spare;
pub(super) mod step;
mod surface;
mod system;
mod tensor;
mod ternary;
mod texture;
mod unwritten;
mod video;
pub(super) mod warp;

pub(crate) use convert::half_as_f32;

pub(crate) use access::{LOCAL_WINDOW, PARAMETER_WINDOW, SHARED_WINDOW, WINDOW_END};

use std::sync::Mutex;

use super::bounds::Account;
use super::counters::Tally;
use super::global_memory::{Buffer, Memory, Slot};
use super::launch::Launch;
use super::order::Order;
use super::texture::Table;
use super::trace::Trace;

/// What all blocks of a range of a launch share.
pub(super) struct Run<'a> {
    pub(super) launch: &'a Launch<'a>,
    pub(super) memory: &'a Memory,
    /// The memory's buffers, as they were when the launch began.
    pub(super) slots: &'a [Slot],
    /// Where the module's variables lie, if the kernel uses any.
    pub(super) globals: &'a [u64],
    /// The address of the grid's workspace, if its blocks run together and ask for it; else 0.
    pub(super) workspace: u64,
    /// The textures and surfaces that there were then, if the kernel uses any.
    pub(super) objects: &'a Table,
    /// The buffer that was accessed last, and its address.
    pub(super) recent: Option<(u64, &'a Buffer)>,
    /// The tag of the grid's first block: see `global_memory::Word`.
    pub(super) first_tag: u32,
    /// Held for atomic operations on two words.
    pub(super) wide: &'a Mutex<()>,
    pub(super) grain: u32,
    /// Whether the kernel has mbarriers, or barriers at which a part of the block meets.
    pub(super) mbarriers: bool,
    /// At which barriers, by their numbers, threads may arrive without waiting.
    pub(super) arrivals: u16,
    pub(super) tally: Tally,
    /// What the range may use.
    pub(super) account: Account<'a>,
    pub(super) trace: Option<&'a mut Trace>,
    /// Present if the blocks run together: then accesses of other blocks may be ordered.
    pub(super) order: Option<Order>,
    /// Something happened that other blocks or warps can see.
    pub(super) progress: bool,
    pub(super) beside: Beside,
}

/// Which launch it is of those that run side by side, each with so many warps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Beside {
    pub(super) number: usize,
    pub(super) count: usize,
    pub(super) warps: usize,
}

impl Beside {
    /// One that runs by itself.
    pub(super) const ALONE: Beside = Beside { number: 0, count: 1, warps: 0 };

    /// The number among all warps of that with a number in this launch.
    pub(super) fn unit(self, warp: usize) -> usize {
        self.number * self.warps + warp
    }

    /// The launch of one of all warps, and its number in that.
    pub(super) fn warp(self, unit: usize) -> (usize, usize) {
        if self.count == 1 { (0, unit) } else { (unit / self.warps, unit % self.warps) }
    }
}
