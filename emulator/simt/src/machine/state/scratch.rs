//! The surroundings of an instruction: its place, its lanes, and the memory of its block and warp.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::isa::{Bank, Clock, Order, Slot};
use crate::memory::global::Tags;
use crate::memory::shared::{Actor, FirstRead, Shared};
use crate::report::bytes_of;

/// The place of an instruction in a launch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) pc: u32,
    /// The number of the block in the grid.
    pub(crate) block: u64,
    /// The number of the first of the blocks that run together.
    pub(crate) first_block: u64,
    pub(crate) warp: u32,
    pub(crate) warps: u32,
    /// The number of the warp among all warps that run together.
    pub(crate) unit: usize,
    /// The tags by which the block marks its accesses to global memory.
    pub(crate) tags: Tags,
    /// The number of barriers that the block has passed.
    pub(crate) epoch: u32,
    /// The number of barriers and releases that the warp has passed by itself.
    pub(crate) warp_epoch: u32,
}

/// The lanes of a warp, as one instruction sees them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lanes {
    /// The lanes that execute it: the lanes of the path in which its guard holds.
    pub(crate) active: u32,
    /// All lanes of the path.
    pub(crate) path: u32,
    /// The lanes that have not left the kernel.
    pub(crate) alive: u32,
    /// The lanes that the warp began with.
    pub(crate) exists: u32,
}

/// The memory of a block and of one of its warps.
pub(crate) struct Scratch<'a> {
    pub(crate) shared: &'a mut Shared,
    pub(crate) shared_bytes: u32,
    /// The local memory of all lanes, word by word.
    pub(crate) local: &'a mut Vec<u32>,
    pub(crate) stack: &'a mut Stack,
    pub(crate) copies: &'a mut Copies,
    pub(crate) suspect: &'a mut Option<Box<Suspect>>,
    pub(crate) unwritten: &'a mut Option<Box<Unwritten>>,
}

/// An instruction that is allowed by itself, and is reported if a later one makes it a mistake.
#[derive(Debug, Clone)]
pub(crate) struct Suspect {
    pub(crate) pc: u32,
    pub(crate) lanes: u32,
    pub(crate) message: String,
}

/// Lanes of a warp that are at the same instruction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Path {
    pub(crate) pc: u32,
    pub(crate) lanes: u32,
    pub(crate) waiting: Option<Waiting>,
}

/// The threads or lanes that a path waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// The other threads of the block, at the barrier with this number.
    Barrier(u8),
    /// A part of the block, at this barrier, until it has opened more than `phase` times.
    Part { barrier: u8, phase: u32 },
    /// Lanes of the warp that the mask names. `alive` holds the lanes that had not left the kernel
    /// when the path began to wait.
    Lanes { alive: u32 },
}

/// Lanes that spin on an mbarrier whose phase is not over: the instruction, the lanes, and the
/// offset in shared memory of the first lane's mbarrier.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spin {
    pub(crate) pc: u32,
    pub(crate) lanes: u32,
    pub(crate) offset: u32,
}

/// The next step of the lanes after an instruction.
pub(crate) enum Next {
    /// They go to the next instruction.
    Step,
    /// They go to the instruction with this number.
    Branch(u32),
    /// Each lane goes to its own target.
    Scatter(Box<[u32; 32]>),
    /// They leave the kernel.
    Exit,
    /// They wait for the other threads of the block, at the barrier with this number.
    Barrier(u8),
    /// They wait at this barrier until it has opened more than `phase` times.
    Part { barrier: u8, phase: u32 },
    /// They wait here for lanes of their warp, and then execute the instruction again.
    Gather,
    /// They go to the next instruction, behind a barrier of the warp or a release: their later
    /// accesses count as later than their earlier ones.
    WarpBarrier,
    /// They go to the next instruction, with a part of the warp's clock in a register.
    Clock(Clock, Slot),
    /// They spin on an mbarrier, and go on when other warps have had their turn.
    Yield(Spin),
}

impl Next {
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
    /// The number of groups that each lane has committed.
    pub(crate) committed: [u64; 32],
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Pending {
    pub(crate) lane: usize,
    /// The lane's group, or `None` before it is committed.
    pub(crate) group: Option<u64>,
    pub(crate) offset: u32,
    pub(crate) bytes: u32,
    pub(crate) value: [u32; 4],
}

impl Copies {
    pub(crate) fn reset(&mut self) {
        // The allocation stays, since the range's account has paid for it.
        self.pending.clear();
        self.committed = [0; 32];
    }
}

/// The calls that each lane of a warp is in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stack {
    /// For each call the saved registers, if any, and then the number of the call. Empty if no lane
    /// ever called a function.
    pub(crate) lanes: Vec<Vec<u32>>,
}

impl Stack {
    pub(crate) fn reset(&mut self) {
        // The allocations stay, since the range's account has paid for them.
        self.lanes.iter_mut().for_each(Vec::clear);
    }

    /// Returns the bytes of host memory that the stack holds.
    pub(crate) fn held(&self) -> u64 {
        let lanes = self.lanes.iter().map(|lane| bytes_of::<u32>(lane.capacity() as u64));
        bytes_of::<Vec<u32>>(self.lanes.capacity() as u64) + lanes.sum::<u64>()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }
}

/// For each lane 0, or 1 more than the number of the read that its value comes from.
pub(crate) type Sources = [u32; 32];

pub(crate) const NONE: Sources = [0; 32];

/// The values of a warp that come from shared memory that nothing has written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unwritten {
    pub(crate) registers: BTreeMap<(Bank, Slot), Box<Sources>>,
    /// The sources of values in local memory, by word and lane.
    pub(crate) local: BTreeMap<(u64, usize), u32>,
    /// The reads, at most one for each instruction and lane, with the report that its use causes. A
    /// value that another thread passed on in shared memory has the read of that thread.
    pub(crate) reads: Vec<Arc<FirstRead>>,
    /// The number of the read of an instruction and lane.
    pub(crate) numbers: BTreeMap<(u32, usize), u32>,
    /// The sources of the factors of the next matrix product.
    pub(crate) factors: Sources,
    /// The reads of the instruction that is executed now.
    pub(crate) fresh: Vec<((Bank, Slot), usize, u32)>,
}
