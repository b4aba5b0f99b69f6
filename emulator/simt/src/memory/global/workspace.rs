//! The workspace of a cooperative launch: two words of device memory, behind whose address the
//! driver puts what `cooperative_groups` needs for a barrier of the grid.
//!
//! `grid.sync()` finds the address in `%envreg1` and `%envreg2`, and traps where it is null. The
//! second word is the barrier: one thread of each block adds 1, that of block 0 as much as makes
//! the sum of all 2^31, and all wait for the upper bit to change. The first word is the size, which
//! nothing reads.

use std::sync::{Arc, PoisonError};

use super::buffer::Contents;
use super::buffers::Memory;
use super::error::MemoryError;
use super::saved::Workspace;

const BYTES: u64 = 8;
/// Where the barrier is.
const BARRIER: u64 = 4;

/// What a kernel does wrong that traps without one.
pub(crate) const MISSING: &str = "executes trap: it is not launched together, and a barrier of the grid (`grid.sync()`) is for cooperative launches \
     (`cudaLaunchCooperativeKernel`), which `Prepared::run_together` is here";

impl Memory {
    /// A workspace that no other launch has, before the first block has come to its barrier.
    pub(crate) fn workspace(&self) -> Result<Workspace, MemoryError> {
        let mut all = self.workspaces.0.lock().unwrap_or_else(PoisonError::into_inner);
        let unused = all.iter().find(|workspace| Arc::strong_count(&workspace.0) == 1);
        let workspace = match unused {
            Some(workspace) => workspace.clone(),
            None => {
                let name = "workspace of the grid";
                let made = self.allocate_with(name, BYTES, Contents::Zeros)?;
                all.push(Workspace(Arc::new(made)));
                all[all.len() - 1].clone()
            }
        };
        self.write(workspace.address(), &BYTES.to_le_bytes())?;
        Ok(workspace)
    }
}

/// How many blocks wait at the barrier in a workspace, as the rest of a sentence, if some do.
pub(crate) fn arrived(memory: &Memory, workspace: u64, blocks: u64) -> Option<String> {
    let mut word = [0; 4];
    memory.read(workspace.checked_add(BARRIER)?, &mut word).ok()?;
    let count = u64::from(u32::from_le_bytes(word) & 0x7fff_ffff);
    // With block 0 it is less than 2^31 by those that lack.
    let lack = (1 << 31) - count;
    let come = if lack < blocks { blocks - lack } else { count };
    (workspace != 0 && come > 0 && come < blocks).then(|| {
        format!("; at the barrier of the grid (`grid.sync()`) are {come} of its {blocks} blocks")
    })
}
