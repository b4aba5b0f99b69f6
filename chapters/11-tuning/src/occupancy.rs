//! Computes the number of blocks that an SM holds at a time.

/// The resources of an SM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The number of warp slots, for 32 threads each.
    pub warps: u32,
    /// The number of block slots.
    pub blocks: u32,
    /// The number of 32-bit registers, in four equal parts; a warp uses one part.
    pub registers: u32,
    /// The shared memory for all blocks, in bytes.
    pub shared_bytes: u32,
    /// The shared memory that every block uses in addition to its own, in bytes.
    pub reserved_bytes: u32,
}

impl Limits {
    /// The limits of an H100 or H200 (compute capability 9.0).
    pub const H200: Limits = Limits {
        warps: 64,
        blocks: 32,
        registers: 65_536,
        shared_bytes: 228 << 10,
        reserved_bytes: 1 << 10,
    };
}

/// The unit in which a warp's registers are allocated.
const REGISTER_UNIT: u32 = 256;
/// The unit in which shared memory is allocated, in bytes.
const SHARED_UNIT: u32 = 128;
/// The number of parts of an SM, each with separate registers.
const PARTS: u32 = 4;

/// The resource that limits the number of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// All warp slots are used.
    Warps,
    /// All block slots are used.
    Blocks,
    /// All registers are used.
    Registers,
    /// All shared memory is used.
    Shared,
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Limit::Warps => "warps",
            Limit::Blocks => "blocks",
            Limit::Registers => "registers",
            Limit::Shared => "shared memory",
        })
    }
}

/// Returns the number of blocks that an SM holds, and the resource that prevents one more. A block
/// has `threads` threads with `registers` registers each, and `shared_bytes` bytes of shared
/// memory.
// ANCHOR: blocks
pub fn blocks(limits: &Limits, registers: u32, threads: u32, shared_bytes: u32) -> (u32, Limit) {
    let warps = threads.div_ceil(32).max(1);
    let of_a_warp = (32 * registers.max(1)).next_multiple_of(REGISTER_UNIT);
    let by_registers = PARTS * (limits.registers / PARTS / of_a_warp) / warps;
    let of_a_block = (shared_bytes + limits.reserved_bytes).next_multiple_of(SHARED_UNIT);
    [
        (limits.warps / warps, Limit::Warps),
        (limits.blocks, Limit::Blocks),
        (by_registers, Limit::Registers),
        (limits.shared_bytes / of_a_block, Limit::Shared),
    ]
    .into_iter()
    .min_by_key(|&(blocks, _)| blocks)
    .unwrap_or((0, Limit::Warps))
}
// ANCHOR_END: blocks

#[cfg(test)]
mod tests {
    use super::{Limit, Limits, blocks};

    #[test]
    fn each_limit_can_be_the_smallest() {
        let h200 = Limits::H200;
        assert_eq!(blocks(&h200, 32, 256, 0), (8, Limit::Warps));
        assert_eq!(blocks(&h200, 32, 32, 0), (32, Limit::Blocks));
        // 40 registers are 1280 for a warp: 12 warps in each of four parts.
        assert_eq!(blocks(&h200, 40, 128, 0), (12, Limit::Registers));
        // 33 registers are rounded up to 40.
        assert_eq!(blocks(&h200, 33, 128, 0), blocks(&h200, 40, 128, 0));
        assert_eq!(blocks(&h200, 255, 1024, 0), (0, Limit::Registers));
        // There are warp slots for two of these blocks, but not registers.
        assert_eq!(blocks(&h200, 64, 1024, 0), (1, Limit::Registers));
        // 64 KiB and the reserved bytes: three of these blocks fit.
        assert_eq!(blocks(&h200, 32, 256, 64 << 10), (3, Limit::Shared));
        assert_eq!(blocks(&h200, 32, 64, 227 << 10), (1, Limit::Shared));
        assert_eq!(blocks(&h200, 32, 64, 228 << 10), (0, Limit::Shared));
    }
}
