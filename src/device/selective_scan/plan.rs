//! The plan of the backward pass: how it cuts a shape into blocks, and sequences into chunks.

use super::{Exponential, ScanShape};

/// The number of multiprocessors of an H200. The device is not asked, so that results are the same
/// on every device.
pub(super) const MULTIPROCESSORS: usize = 132;
/// The steps of a tile, between two checkpoints.
const TILE: usize = ScanShape::CHECKPOINT_STEPS;
/// The lanes that share a channel.
pub(super) const LANES: usize = 8;
/// The channels that a warp takes at a time: a quad.
const QUAD: usize = 32 / LANES;
/// The warps of a block and the quads of each. The first pair that shared memory has space for is
/// taken.
const BLOCKS: [(usize, usize); 6] = [(8, 4), (8, 2), (8, 1), (4, 1), (2, 1), (1, 1)];
/// The most shared memory of a block, from compute capability 9.0 on.
const SHARED_BYTES: usize = 227 << 10;
/// The time of a cut: the first pass over the chunks takes this part of the second pass, and each
/// pass takes the time of this number of tiles more.
const FIRST_PASS: f64 = 0.3;
const PASS_TILES: usize = 16;
/// The fewest tiles of a chunk.
const LEAST_TILES: usize = 32;

/// The limits of the kernels of `selective_scan_bwd_plain.cu`: the states, the warps of a block and
/// the quads of each, and the longest row. Offsets in the rows of a block are 32-bit numbers of
/// bytes.
const PLAIN_STATES: [usize; 2] = [8, 16];
const PLAIN_BLOCKS: (usize, usize) = (4, 4);
const PLAIN_LONGEST: usize = 1 << 22;
/// The time of one of these blocks that has a multiprocessor to itself, as a part of the time of as
/// many as fit.
const PLAIN_ALONE: f64 = 0.7;

/// The plan for a shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BackwardPlan {
    /// True if the kernels of `selective_scan_bwd_plain.cu` take the shape, if options and arrays
    /// allow it. The other kernels take it, too, and give the same bits.
    pub(super) plain: bool,
    /// The states of a channel that a lane walks at once.
    pub(super) lane_states: usize,
    /// The number of passes over all lanes that the states take.
    pub(super) passes: usize,
    pub(super) warps: usize,
    pub(super) quads: usize,
    /// The number of blocks for the channels of a group.
    pub(super) parts: usize,
    /// The number of blocks of a chunk, over all groups and batches.
    pub(super) blocks: usize,
    pub(super) tiles: usize,
    pub(super) chunk_tiles: usize,
    pub(super) chunks: usize,
}

impl BackwardPlan {
    pub(super) fn new(shape: ScanShape, varying: bool, exponential: Exponential) -> BackwardPlan {
        // With exact exponentials, kernels are shipped for 2 only.
        let few = shape.states <= LANES && exponential == Exponential::Fast;
        let lane_states = if few { 1 } else { 2 };
        let passes = shape.states.div_ceil(LANES * lane_states);
        let channels = shape.channels / shape.groups;
        let tiles = shape.seq_len.div_ceil(TILE);
        let mut plan = BackwardPlan {
            plain: false,
            lane_states,
            passes,
            warps: 1,
            quads: 1,
            parts: 0,
            blocks: 0,
            tiles,
            chunk_tiles: tiles.max(1),
            chunks: 1,
        };
        plan.plain = PLAIN_STATES.contains(&shape.states)
            && channels.is_multiple_of(QUAD * PLAIN_BLOCKS.0 * PLAIN_BLOCKS.1)
            && shape.seq_len <= PLAIN_LONGEST;
        if plan.plain {
            (plan.warps, plan.quads) = PLAIN_BLOCKS;
        } else {
            for (warps, quads) in BLOCKS {
                plan.warps = warps.min(channels.div_ceil(QUAD * quads)).max(1);
                plan.quads = quads;
                if plan.shared_bytes(varying) <= SHARED_BYTES {
                    break;
                }
            }
        }
        plan.parts = channels.div_ceil(QUAD * plan.quads * plan.warps);
        plan.blocks = plan.parts.saturating_mul(shape.groups).saturating_mul(shape.batch);
        let most = (tiles / LEAST_TILES).clamp(1, MULTIPROCESSORS);
        let cuts = (2..=most).map(|chunks| plan.cut(chunks));
        cuts.fold(plan, |best, cut| if cut.time() < best.time() { cut } else { best })
    }

    /// Returns the plan with sequences cut into at most `most` chunks.
    pub(super) fn cut(self, most: usize) -> BackwardPlan {
        let chunk_tiles = self.tiles.div_ceil(most.max(1)).max(1);
        BackwardPlan { chunk_tiles, chunks: self.tiles.div_ceil(chunk_tiles).max(1), ..self }
    }

    /// Returns an estimate of the time, in whole rounds of blocks.
    fn time(self) -> f64 {
        let (at_once, alone) =
            if self.plain { (self.plain_at_once(), PLAIN_ALONE) } else { (1, 1.0) };
        let rounds = |chunks: usize| rounds(self.blocks.saturating_mul(chunks), at_once, alone);
        let rounds = FIRST_PASS * rounds(self.chunks - 1) + rounds(self.chunks);
        rounds * (self.chunk_tiles + PASS_TILES) as f64
    }

    /// Returns the blocks of `selective_scan_bwd_plain` that a multiprocessor holds at once.
    fn plain_at_once(self) -> usize {
        if self.lane_states == 1 { 3 } else { 2 }
    }

    /// Returns the dynamic shared memory of a block, part by part as in the kernel's `Shared`.
    pub(super) fn shared_bytes(self, varying: bool) -> usize {
        let BackwardPlan { lane_states, passes, warps, quads, .. } = self;
        let (states, threads) = (LANES * lane_states, 32 * warps);
        let numbers = |count: usize| 4 * count;
        let rows = numbers(4 * 2 * states * TILE);
        let stages = numbers(4 * (4 * 32 + QUAD * states));
        let warp = stages + numbers(3 * 32) + numbers(3 * QUAD * 72);
        let turns = if passes <= 2 { 2 } else { 1 };
        let sums = turns * numbers(warps * QUAD * 2 * states * TILE);
        let channels = numbers(2 * QUAD * quads * warps);
        let kinds = if varying { 1 } else { 3 };
        let kept = numbers(2 + passes * lane_states * (2 + kinds)) * quads * threads;
        let across_blocks = if passes > 1 { numbers(4) * quads * threads } else { 0 };
        rows + warps * warp + sums + channels + kept + across_blocks
    }

    /// Returns the dynamic shared memory of a block of `selective_scan_bwd_plain.cu`, part by part
    /// as in its `Shared` and `AllShared`: for the first pass over chunks, and for the gradients.
    pub(super) fn plain_shared_bytes(self) -> [usize; 2] {
        let BackwardPlan { lane_states, warps, quads, .. } = self;
        let states = LANES * lane_states;
        let numbers = |count: usize| 4 * count;
        let block = numbers(4 * 2 * states * TILE) + numbers(2 * QUAD * quads * warps);
        let ends = quads * numbers(4 * 32) + numbers(2 * 3 * 32);
        let kept = quads * numbers(QUAD * states) + numbers(2 * 3 * QUAD * 72);
        let sums = 2 * QUAD * warps * numbers(2 * states * TILE);
        [block + warps * ends, block + warps * (ends + kept) + sums]
    }

    /// Returns the lengths of the parts of the workspace: sums for `B` and `C`, sums for everything
    /// else, and the gradients that each chunk passes back.
    pub(super) fn workspace(self, shape: ScanShape, varying: bool) -> Option<[usize; 3]> {
        let product = |factors: &[usize]| {
            factors.iter().try_fold(1_usize, |product, &size| product.checked_mul(size))
        };
        let states = product(&[shape.channels, shape.states])?;
        let units = product(&[shape.batch, shape.groups, self.tiles, self.passes, self.parts])?;
        let rows =
            if varying { product(&[units, 2 * LANES * self.lane_states * TILE])? } else { 0 };
        let slots = product(&[shape.batch, self.chunks])?;
        let each = states.checked_mul(3)?.checked_add(shape.channels.checked_mul(2)?)?;
        let ends = if self.chunks > 1 { product(&[2, slots, states])? } else { 0 };
        // The kernels read these gradients in pairs.
        Some([rows, product(&[slots, each])?.checked_next_multiple_of(4)?, ends])
    }
}

/// Returns the number of rounds that blocks take if each multiprocessor holds `at_once` of them. A
/// block that has a multiprocessor to itself takes `alone` of a round.
pub(super) fn rounds(blocks: usize, at_once: usize, alone: f64) -> f64 {
    let round = at_once * MULTIPROCESSORS;
    let rest = match blocks % round {
        0 => 0.0,
        rest if rest <= MULTIPROCESSORS => alone,
        _ => 1.0,
    };
    (blocks / round) as f64 + rest
}

#[cfg(test)]
mod tests {
    use super::{BackwardPlan, Exponential, ScanShape};

    fn plan(batch: usize, channels: usize, seq_len: usize) -> (BackwardPlan, ScanShape) {
        let shape = ScanShape { batch, channels, seq_len, states: 16, groups: 1 };
        (BackwardPlan::new(shape, true, Exponential::Fast), shape)
    }

    #[test]
    fn blocks_and_chunks_keep_all_multiprocessors_busy() {
        for (batch, channels, seq_len, warps, blocks, chunks) in [
            (8, 2048, 4096, 4, 256, 1),
            (8, 2048, 65536, 4, 256, 1),
            (8, 1536, 1024, 4, 192, 1),
            (4, 2048, 2048, 4, 128, 2),
            (1, 2048, 65536, 4, 32, 8),
            (1, 1024, 65536, 4, 16, 16),
            (2, 2048, 65536, 4, 64, 4),
            (1, 2048, 256, 4, 32, 1),
            (1, 64, 1040, 4, 1, 4),
            (8, 1536, 4093, 4, 192, 1),
            (8, 2040, 4096, 8, 128, 1),
            (1, 2040, 65536, 8, 16, 8),
            (1, 32, 1040, 2, 1, 4),
            (1, 3, 9, 1, 1, 1),
            (0, 5, 9, 1, 0, 1),
            (3, 0, 0, 4, 0, 1),
        ] {
            let (plan, shape) = plan(batch, channels, seq_len);
            let found = (plan.warps, plan.blocks, plan.chunks);
            assert_eq!(found, (warps, blocks, chunks), "{shape:?}");
            assert!(plan.chunks * plan.chunk_tiles >= plan.tiles, "{shape:?}");
            assert!(plan.chunks == 1 || (plan.chunks - 1) * plan.chunk_tiles < plan.tiles);
        }
    }

    #[test]
    fn plain_kernels_take_shapes_of_whole_blocks() {
        for (channels, seq_len, plain) in [
            (2048, 4096, true),
            (1536, 4096, true),
            (64, 8, true),
            (2048, 4093, true),
            (2040, 4096, false),
            (64, 1 << 23, false),
        ] {
            let (plan, shape) = plan(1, channels, seq_len);
            assert_eq!(plan.plain, plain, "{shape:?}");
        }
        let (_, shape) = plan(1, 2048, 64);
        for (states, groups, plain) in
            [(8, 32, true), (16, 32, true), (16, 64, false), (15, 1, false)]
        {
            let shape = ScanShape { states, groups, ..shape };
            assert_eq!(BackwardPlan::new(shape, true, Exponential::Fast).plain, plain, "{shape:?}");
        }
    }
}
