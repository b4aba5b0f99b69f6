//! Blocks that have run, for those of later launches: to allocate registers, shared memory and its
//! shadow anew takes longer than many kernels run.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::block::Block;

/// The most bytes of the host that are kept for later launches.
const MOST_BYTES: u64 = 64 << 20;

/// Blocks that none of the launches which run has.
#[derive(Debug, Default)]
pub(crate) struct Spare(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    blocks: Vec<Block>,
    bytes: u64,
}

impl Spare {
    /// One to begin with.
    pub(crate) fn take(&self) -> Block {
        let mut kept = self.kept();
        let Some(block) = kept.blocks.pop() else { return Block::default() };
        kept.bytes -= block.held();
        block
    }

    /// Keeps a block that has run, if there is room.
    pub(crate) fn keep(&self, mut block: Block) {
        block.retire();
        let bytes = block.held();
        let mut kept = self.kept();
        if kept.bytes.saturating_add(bytes) <= MOST_BYTES {
            kept.bytes += bytes;
            kept.blocks.push(block);
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
