//! How the backward pass cuts up a shape.

use super::{Exponential, ScanShape};

/// Multiprocessors: an H200's. They are not asked of the device, so that results are the same on
/// all.
pub(super) const MULTIPROCESSORS: usize = 132;
/// Steps of a tile, between two checkpoints.
const TILE: usize = ScanShape::CHECKPOINT_STEPS;
/// Lanes that share a channel.
pub(super) const LANES: usize = 8;
/// Channels that a warp takes at a time: a quad.
const QUAD: usize = 32 / LANES;
/// Warps of a block and quads of each: the first of these that shared memory has room for.
const BLOCKS: [(usize, usize); 6] = [(8, 4), (8, 2), (8, 1), (4, 1), (2, 1), (1, 1)];
/// What a block may have of shared memory: from compute capability 9.0 on.
const SHARED_BYTES: usize = 227 << 10;
/// The time of a cut: the first pass over the chunks, as a part of the second, and that of so many
/// tiles for each pass.
const FIRST_PASS: f64 = 0.3;
const PASS_TILES: usize = 16;
/// Tiles of a chunk, at least.
const LEAST_TILES: usize = 32;

/// What the kernels of `selective_scan_bwd_plain.cu` take: the states, warps of a block and quads
/// of each, and the longest row. Places in the rows of a block are counted in bytes, in 32 bits.
const PLAIN_STATES: [usize; 2] = [8, 16];
const PLAIN_BLOCKS: (usize, usize) = (4, 4);
const PLAIN_LONGEST: usize = 1 << 22;
/// The time of a block of theirs that is on a multiprocessor alone, as a part of that of as many as
/// fit.
const PLAIN_ALONE: f64 = 0.7;

/// How a shape is cut up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Plan {
    /// Whether the kernels of `selective_scan_bwd_plain.cu` take the shape, where options and
    /// arrays allow it. The others take it, too, and give the same bits.
    pub(super) plain: bool,
    /// States of a channel that a lane walks at once.
    pub(super) lane_states: usize,
    /// How many times the states of all lanes are needed.
    pub(super) passes: usize,
    pub(super) warps: usize,
    pub(super) quads: usize,
    /// Blocks side by side in the channels of a group.
    pub(super) parts: usize,
    /// Blocks of a chunk, over all groups and batches.
    pub(super) blocks: usize,
    pub(super) tiles: usize,
    pub(super) chunk_tiles: usize,
    pub(super) chunks: usize,
}

impl Plan {
    pub(super) fn new(shape: ScanShape, varying: bool, exponential: Exponential) -> Plan {
        // With exact exponentials, kernels are shipped for 2 only.
        let few = shape.states <= LANES && exponential == Exponential::Fast;
        let lane_states = if few { 1 } else { 2 };
        let passes = shape.states.div_ceil(LANES * lane_states);
        let channels = shape.channels / shape.groups;
        let tiles = shape.seq_len.div_ceil(TILE);
        let mut plan = Plan {
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

    /// Cut into so many chunks at most.
    pub(super) fn cut(self, most: usize) -> Plan {
        let chunk_tiles = self.tiles.div_ceil(most.max(1)).max(1);
        Plan { chunk_tiles, chunks: self.tiles.div_ceil(chunk_tiles).max(1), ..self }
    }

    /// In whole rounds of blocks, by the time that they take.
    fn time(self) -> f64 {
        let (at_once, alone) =
            if self.plain { (self.plain_at_once(), PLAIN_ALONE) } else { (1, 1.0) };
        let rounds = |chunks: usize| rounds(self.blocks.saturating_mul(chunks), at_once, alone);
        let rounds = FIRST_PASS * rounds(self.chunks - 1) + rounds(self.chunks);
        rounds * (self.chunk_tiles + PASS_TILES) as f64
    }

    /// Blocks of `selective_scan_bwd_plain` that are on a multiprocessor at once.
    fn plain_at_once(self) -> usize {
        if self.lane_states == 1 { 3 } else { 2 }
    }

    /// Dynamic shared memory of a block, part by part as in `Shared` of the kernel's source.
    pub(super) fn shared_bytes(self, varying: bool) -> usize {
        let Plan { lane_states, passes, warps, quads, .. } = self;
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

    /// Dynamic shared memory of a block of `selective_scan_bwd_plain.cu`, part by part as in its
    /// `Shared` and `AllShared`: for the first pass over chunks, and for the gradients.
    pub(super) fn plain_shared_bytes(self) -> [usize; 2] {
        let Plan { lane_states, warps, quads, .. } = self;
        let states = LANES * lane_states;
        let numbers = |count: usize| 4 * count;
        let block = numbers(4 * 2 * states * TILE) + numbers(2 * QUAD * quads * warps);
        let ends = quads * numbers(4 * 32) + numbers(2 * 3 * 32);
        let kept = quads * numbers(QUAD * states) + numbers(2 * 3 * QUAD * 72);
        let sums = 2 * QUAD * warps * numbers(2 * states * TILE);
        [block + warps * ends, block + warps * (ends + kept) + sums]
    }

    /// Numbers of the workspace: sums for `B` and `C`, sums for all else, and what each chunk
    /// passes back.
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
        // What a chunk passes back is read in pairs.
        Some([rows, product(&[slots, each])?.checked_next_multiple_of(4)?, ends])
    }
}

/// How many rounds so many blocks take, where each multiprocessor has `at_once` of them: a block
/// that has one for itself takes `alone` of a round.
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
    use super::{Exponential, Plan, ScanShape};

    fn plan(batch: usize, channels: usize, seq_len: usize) -> (Plan, ScanShape) {
        let shape = ScanShape { batch, channels, seq_len, states: 16, groups: 1 };
        (Plan::new(shape, true, Exponential::Fast), shape)
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
    fn plain_shapes_are_those_of_whole_blocks() {
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
            assert_eq!(Plan::new(shape, true, Exponential::Fast).plain, plain, "{shape:?}");
        }
    }
}
