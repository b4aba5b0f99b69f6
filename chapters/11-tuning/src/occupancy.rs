//! How many blocks an SM holds at a time.

/// What an SM has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Warps, of 32 threads each.
    pub warps: u32,
    /// Blocks.
    pub blocks: u32,
    /// 32-bit registers, in four equal parts: a warp lives in one of them.
    pub registers: u32,
    /// Bytes of shared memory, for all of its blocks.
    pub shared_bytes: u32,
    /// Bytes of shared memory that every block takes beside its own.
    pub reserved_bytes: u32,
}

impl Limits {
    /// Of an H100 or H200 (compute capability 9.0).
    pub const H200: Limits = Limits {
        warps: 64,
        blocks: 32,
        registers: 65_536,
        shared_bytes: 228 << 10,
        reserved_bytes: 1 << 10,
    };
}

/// A warp's registers are given out in units of so many.
const REGISTER_UNIT: u32 = 256;
/// Bytes of shared memory are given out in units of so many.
const SHARED_UNIT: u32 = 128;
/// An SM consists of so many parts with registers of their own.
const PARTS: u32 = 4;

/// What holds the number of blocks down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// There are no more warp slots.
    Warps,
    /// There are no more places for blocks.
    Blocks,
    /// There are no more registers.
    Registers,
    /// There is no more shared memory.
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

/// How many blocks of `threads` threads with so many registers each, and so many bytes of shared
/// memory for a block, an SM holds; and what keeps it from holding one more.
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
    fn each_limit_in_turn() {
        let h200 = Limits::H200;
        assert_eq!(blocks(&h200, 32, 256, 0), (8, Limit::Warps));
        assert_eq!(blocks(&h200, 32, 32, 0), (32, Limit::Blocks));
        // 40 registers are 1280 of a warp: 12 warps in each of four parts.
        assert_eq!(blocks(&h200, 40, 128, 0), (12, Limit::Registers));
        // 33 are given out as 40.
        assert_eq!(blocks(&h200, 33, 128, 0), blocks(&h200, 40, 128, 0));
        assert_eq!(blocks(&h200, 255, 1024, 0), (0, Limit::Registers));
        // There would be places for two of these, but the registers are full.
        assert_eq!(blocks(&h200, 64, 1024, 0), (1, Limit::Registers));
        // 64 KiB and what is reserved: three of them.
        assert_eq!(blocks(&h200, 32, 256, 64 << 10), (3, Limit::Shared));
        assert_eq!(blocks(&h200, 32, 64, 227 << 10), (1, Limit::Shared));
        assert_eq!(blocks(&h200, 32, 64, 228 << 10), (0, Limit::Shared));
    }
}
