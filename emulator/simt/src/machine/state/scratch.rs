//! What an instruction is executed with: where it stands, its lanes, and the memory of its block
//! and warp.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::isa::{Bank, Clock, Order, Slot};
use crate::memory::global::Tags;
use crate::memory::shared::{Actor, FirstRead, Shared};
use crate::report::bytes_of;

/// Where an instruction is executed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) pc: u32,
    /// The number of the block in the grid, and of the first block that runs together with it.
    pub(crate) block: u64,
    pub(crate) first_block: u64,
    pub(crate) warp: u32,
    pub(crate) warps: u32,
    /// The number of the warp among all warps that run together.
    pub(crate) unit: usize,
    /// How the block signs in global memory.
    pub(crate) tags: Tags,
    /// Barriers passed: by the block, and by the warp alone.
    pub(crate) epoch: u32,
    pub(crate) warp_epoch: u32,
}

/// Which lanes an instruction concerns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lanes {
    /// The lanes that execute it: those of the path in which its guard holds.
    pub(crate) active: u32,
    pub(crate) path: u32,
    /// The lanes that have not left the kernel, and all lanes that the warp began with.
    pub(crate) alive: u32,
    pub(crate) exists: u32,
}

/// The memory that belongs to the block and to the warp.
pub(crate) struct Scratch<'a> {
    pub(crate) shared: &'a mut Shared,
    pub(crate) shared_bytes: u32,
    /// Local memory, word by word, of all lanes.
    pub(crate) local: &'a mut Vec<u32>,
    pub(crate) stack: &'a mut Stack,
    pub(crate) copies: &'a mut Copies,
    pub(crate) suspect: &'a mut Option<Box<Suspect>>,
    pub(crate) unwritten: &'a mut Option<Box<Unwritten>>,
}

/// Something that is allowed by itself, and is reported if a second thing makes it a mistake.
#[derive(Debug, Clone)]
pub(crate) struct Suspect {
    pub(crate) pc: u32,
    pub(crate) lanes: u32,
    pub(crate) message: String,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Path {
    pub(crate) pc: u32,
    pub(crate) lanes: u32,
    pub(crate) waiting: Option<Waiting>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// For the other threads of the block, at the barrier with this number.
    Barrier(u8),
    /// For a part of the block, at this barrier, until it has opened more often than `phase` times.
    Part { barrier: u8, phase: u32 },
    /// For lanes of the warp that the mask names. `alive` are the lanes that had not left the
    /// kernel when the path began to wait.
    Lanes { alive: u32 },
}

/// Lanes that spin on an mbarrier whose phase is not over: the instruction, and the offset in
/// shared memory of the first lane's mbarrier.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Vain {
    pub(crate) pc: u32,
    pub(crate) lanes: u32,
    pub(crate) offset: u32,
}

/// Where the lanes go after an instruction.
pub(crate) enum Next {
    /// To the next one.
    Step,
    /// To the instruction with this number.
    Branch(u32),
    /// Each lane to an instruction of its own.
    Scatter(Box<[u32; 32]>),
    /// Out of the kernel.
    Exit,
    /// They wait for the other threads of the block.
    Barrier(u8),
    /// They wait at this barrier until it has opened more often than `phase` times.
    Part { barrier: u8, phase: u32 },
    /// They wait here for lanes of their warp, and then execute it again.
    Gather,
    /// To the next one, behind a barrier of the warp, or behind a release: later accesses of the
    /// lanes count as later than those before.
    WarpBarrier,
    /// To the next one, with a part of the warp's clock in a register.
    Clock(Clock, Slot),
    /// To the next one, when other warps have had their turn: the lanes spin on an mbarrier.
    Yield(Vain),
}

impl Next {
    /// The lanes leave the kernel.
    pub(crate) fn exit() -> Next {
        Next::Exit
    }
}

pub(crate) fn actor(place: &Place, lane: usize, order: Order) -> Actor {
    Actor {
        thread: (32 * place.warp) as u16 + lane as u16,
        epoch: place.epoch,
        warp_epoch: place.warp_epoch,
        pc: place.pc,
        sync: order != Order::Weak,
        in_step: false,
    }
}

/// The copies of a warp that have begun and have not been waited for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Copies {
    pub(crate) pending: Vec<Pending>,
    /// Groups that each lane has committed.
    pub(crate) committed: [u64; 32],
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Pending {
    pub(crate) lane: usize,
    /// The lane's group; `None` before it is committed.
    pub(crate) group: Option<u64>,
    pub(crate) offset: u32,
    pub(crate) bytes: u32,
    pub(crate) value: [u32; 4],
}

impl Copies {
    pub(crate) fn reset(&mut self) {
        // What they have allocated has been taken from the range's account, and is kept.
        self.pending.clear();
        self.committed = [0; 32];
    }
}

/// The calls that each lane of a warp is in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stack {
    /// For each call the registers that are kept, if any, and the number of the call. Empty if
    /// nothing was ever called.
    pub(crate) lanes: Vec<Vec<u32>>,
}

impl Stack {
    pub(crate) fn reset(&mut self) {
        // What they have allocated has been taken from the range's account, and is kept.
        self.lanes.iter_mut().for_each(Vec::clear);
    }

    /// The bytes of the host that it has allocated.
    pub(crate) fn held(&self) -> u64 {
        let lanes = self.lanes.iter().map(|lane| bytes_of::<u32>(lane.capacity() as u64));
        bytes_of::<Vec<u32>>(self.lanes.capacity() as u64) + lanes.sum::<u64>()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }
}

/// For each lane 0, or 1 more than the number of the read that it comes from.
pub(crate) type Sources = [u32; 32];

pub(crate) const NONE: Sources = [0; 32];

/// The values of a warp that come from shared memory that nothing has written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unwritten {
    pub(crate) registers: BTreeMap<(Bank, Slot), Box<Sources>>,
    /// By word and lane.
    pub(crate) local: BTreeMap<(u64, usize), u32>,
    /// Reads, one at most of each instruction and lane: what would be reported of them, which is
    /// another thread's read if that has handed on in shared memory what it gave.
    pub(crate) reads: Vec<Arc<FirstRead>>,
    pub(crate) numbers: BTreeMap<(u32, usize), u32>,
    /// The sources of the factors of the next product of matrices.
    pub(crate) factors: Sources,
    /// The reads of the instruction that is being executed.
    pub(crate) fresh: Vec<((Bank, Slot), usize, u32)>,
}
