//! The data that launches on a memory save for later ones: blocks that have run, module variables
//! and workspaces. Blocks are saved because a new allocation of registers, shared memory and its
//! shadow takes longer than many kernels run.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use crate::isa::Declared;

/// The limit in bytes of the host for what is saved.
const MOST_BYTES: u64 = 64 << 20;

/// Blocks that have run and are not in use, with their bytes of the host. Only the machine knows
/// the type of a block.
#[derive(Debug, Default)]
pub(crate) struct Spare(Mutex<Saved>);

#[derive(Debug, Default)]
struct Saved {
    blocks: Vec<(Box<dyn Any + Send>, u64)>,
    bytes: u64,
}

impl Spare {
    /// Returns a block that has run, or a new one.
    pub(crate) fn take<B: Any + Send + Default>(&self) -> B {
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((block, bytes)) = spare.blocks.pop() else { return B::default() };
        spare.bytes -= bytes;
        block.downcast().map_or_else(|_| B::default(), |block| *block)
    }

    /// Saves a block of `bytes` bytes, unless this exceeds the limit of all saved blocks.
    pub(crate) fn keep<B: Any + Send>(&self, block: B, bytes: u64) {
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.bytes.saturating_add(bytes) <= MOST_BYTES {
            spare.bytes += bytes;
            spare.blocks.push((Box::new(block), bytes));
        }
    }
}

/// The modules whose variables have been placed in a memory.
#[derive(Debug, Default)]
pub(crate) struct Placed(pub(super) Mutex<Vec<Place>>);

#[derive(Debug)]
pub(super) struct Place {
    /// Saved here so that no other module gets the same address for its variables.
    pub(super) variables: Arc<[Declared]>,
    pub(super) addresses: Arc<[u64]>,
}

/// The workspace of a launch, in use for as long as the launch is prepared.
#[derive(Debug, Clone)]
pub(crate) struct Workspace(pub(super) Arc<u64>);

impl Workspace {
    pub(crate) fn address(&self) -> u64 {
        *self.0
    }
}

/// The workspaces of a memory: those in use, and those free for later launches.
#[derive(Debug, Default)]
pub(crate) struct Workspaces(pub(super) Mutex<Vec<Workspace>>);
