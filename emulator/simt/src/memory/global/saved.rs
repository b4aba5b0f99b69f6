//! What launches on a memory leave for later ones: blocks that have run, since to allocate
//! registers, shared memory and its shadow anew takes longer than many kernels run; the variables
//! of modules, and workspaces.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use crate::isa::Declared;

/// The most bytes of the host that are saved for later launches.
const MOST_BYTES: u64 = 64 << 20;

/// Blocks that have run and that no launch uses, with their bytes of the host. What a block is, the
/// machine knows.
#[derive(Debug, Default)]
pub(crate) struct Spare(Mutex<Saved>);

#[derive(Debug, Default)]
struct Saved {
    blocks: Vec<(Box<dyn Any + Send>, u64)>,
    bytes: u64,
}

impl Spare {
    /// A block that has run, or a new one.
    pub(crate) fn take<B: Any + Send + Default>(&self) -> B {
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((block, bytes)) = spare.blocks.pop() else { return B::default() };
        spare.bytes -= bytes;
        block.downcast().map_or_else(|_| B::default(), |block| *block)
    }

    /// Saves a block of `bytes` bytes, unless the saved blocks would be too large together.
    pub(crate) fn keep<B: Any + Send>(&self, block: B, bytes: u64) {
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.bytes.saturating_add(bytes) <= MOST_BYTES {
            spare.bytes += bytes;
            spare.blocks.push((Box::new(block), bytes));
        }
    }
}

/// Which modules have been placed in a memory.
#[derive(Debug, Default)]
pub(crate) struct Placed(pub(super) Mutex<Vec<Place>>);

#[derive(Debug)]
pub(super) struct Place {
    /// Kept, so that no other module's are ever found at the same address.
    pub(super) variables: Arc<[Declared]>,
    pub(super) addresses: Arc<[u64]>,
}

/// A launch's, for as long as it is prepared.
#[derive(Debug, Clone)]
pub(crate) struct Workspace(pub(super) Arc<u64>);

impl Workspace {
    pub(crate) fn address(&self) -> u64 {
        *self.0
    }
}

/// Those of a memory: some are in use, and others are for later launches.
#[derive(Debug, Default)]
pub(crate) struct Workspaces(pub(super) Mutex<Vec<Workspace>>);
