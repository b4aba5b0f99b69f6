//! The forward pass.

use super::plan::{MULTIPROCESSORS, rounds};
use super::shape::check;
use super::{Exponential, ScanInputs, ScanShape, SelectiveScan};
use crate::Error;
use crate::device::{Buffer, Function, Launched, Storage, Stream};

/// The options of [`SelectiveScan::forward_into`]. By default only the outputs are wanted, on the
/// device's default stream.
#[derive(Debug, Default)]
pub struct ScanForwardOptions<'a> {
    /// Where the states after the last step are written, `[batch, channels, states]`, if they are
    /// wanted. Without a step they are those to begin with.
    pub last: Option<&'a mut Buffer<f32>>,
    /// Where states are left for the backward pass, `[batch, ceil(seq_len / 8), channels, states]`:
    /// those before each eighth step ([`ScanShape::CHECKPOINT_STEPS`]).
    pub checkpoints: Option<&'a mut Buffer<f32>>,
    /// Into how many chunks of time sequences are cut, at most, so that few channels keep the whole
    /// device busy: all are of whole tiles of 32 steps. `None` means what is expected to be
    /// fastest, by the shape alone. Results for different numbers of chunks differ in their last
    /// bits.
    pub chunks: Option<usize>,
    /// The stream to work on, or that of a [recording](crate::device::Device::record); `None` means
    /// [`Device::stream`](crate::device::Device::stream).
    pub stream: Option<&'a Stream>,
}

/// Warps of a block that compute, at most, and as many that help them.
const WARPS: usize = 4;
/// Channels of each.
const WARP_CHANNELS: usize = 16;
/// Lanes that share a channel.
const LANES: usize = 4;
/// Steps of a tile.
const TILE: usize = 32;
/// Blocks of an SM, by the kernel's launch bounds.
const BLOCKS_PER_SM: usize = 2;
/// The time of a cut: a pass for the ends of chunks, as a part of one for outputs. This and what
/// follows was measured on an H200 (1 to 4 batches of 512 and 2048 channels, 1024 to 65,536 steps,
/// in 1 to 32 chunks).
const ENDS: f64 = 0.7;
/// The time of a block that has an SM for itself, as a part of that of two which share it.
const ALONE: f64 = 0.65;
/// Tiles that take as long as it takes to begin and end a pass.
const PASS_TILES: usize = 3;
/// Tiles of a chunk, at least.
const LEAST_TILES: usize = 4;
/// Of a block of `selective_scan_fwd_plain.cu` the warps that compute, at most; a multiprocessor
/// has one block.
const PLAIN_WARPS: usize = 8;
/// The states that these kernels take, and the longest row: steps are counted in 32 bits.
const PLAIN_STATES: [usize; 2] = [2 * LANES, 4 * LANES];
const PLAIN_LONGEST: usize = 1 << 30;
/// Threads of a block that combines the ends of chunks.
const CARRY_THREADS: usize = 256;

/// The kernel for a shape and the blocks of its launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Plan {
    /// States of a channel that a lane walks at once.
    lane_states: usize,
    /// How many times the states of all lanes are needed.
    passes: usize,
    /// Whether the kernel is one for more than one pass.
    many: bool,
    /// How sequences are cut.
    cut: Cut,
    warps: usize,
    /// Blocks of a chunk, and of all.
    chunk_blocks: usize,
    blocks: usize,
}

/// Chunks of time, of so many tiles each; the last one may have fewer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cut {
    chunk_tiles: usize,
    chunks: usize,
}

impl Cut {
    /// Chunks of whole tiles, `most` at most.
    fn into(shape: ScanShape, most: usize) -> Cut {
        let tiles = shape.seq_len.div_ceil(TILE);
        let chunk_tiles = tiles.div_ceil(most.max(1)).max(1);
        Cut { chunk_tiles, chunks: tiles.div_ceil(chunk_tiles).max(1) }
    }

    /// By the time that they take, in rounds of blocks of the largest size.
    fn fastest(shape: ScanShape) -> Cut {
        let tiles = shape.seq_len.div_ceil(TILE);
        let blocks = blocks_of(shape, WARPS);
        let rounds = |chunks: usize| rounds(blocks.saturating_mul(chunks), BLOCKS_PER_SM, ALONE);
        let time = |cut: Cut| {
            (ENDS * rounds(cut.chunks - 1) + rounds(cut.chunks))
                * (cut.chunk_tiles + PASS_TILES) as f64
        };
        let most = (tiles / LEAST_TILES).min(BLOCKS_PER_SM * MULTIPROCESSORS);
        let cuts = (2..=most).map(|chunks| Cut::into(shape, chunks));
        cuts.fold(Cut::into(shape, 1), |best, cut| if time(cut) < time(best) { cut } else { best })
    }
}

/// Blocks of a chunk that have so many warps that compute.
fn blocks_of(shape: ScanShape, warps: usize) -> usize {
    (shape.channels / shape.groups)
        .div_ceil(WARP_CHANNELS * warps)
        .saturating_mul(shape.groups)
        .saturating_mul(shape.batch)
}

impl Plan {
    fn new(shape: ScanShape, cut: Cut, exponential: Exponential, multiprocessors: usize) -> Plan {
        // Exact ones are shipped for 4 only.
        let few = shape.states <= 2 * LANES && exponential == Exponential::Fast;
        let lane_states = if few { 2 } else { 4 };
        let passes = shape.states.div_ceil(lane_states * LANES);
        let blocks = |warps| blocks_of(shape, warps).saturating_mul(cut.chunks);
        // The time that the busiest SM takes: of whole rounds of blocks, and of the blocks that are
        // left.
        let time = |warps: usize| {
            let round = BLOCKS_PER_SM * multiprocessors.max(1);
            let (rounds, rest) = (blocks(warps) / round, blocks(warps) % round);
            (rounds * BLOCKS_PER_SM + rest.div_ceil(multiprocessors.max(1))).saturating_mul(warps)
        };
        let warps = (1..=WARPS).rev().min_by_key(|&warps| time(warps)).unwrap_or(WARPS);
        let chunk_blocks = blocks_of(shape, warps);
        let (many, blocks) = (passes > 1, blocks(warps));
        Plan { lane_states, passes, many, cut, warps, chunk_blocks, blocks }
    }

    /// Dynamic shared memory of a block, which may have constant couplings.
    fn shared_bytes(self, stored: usize, varying: bool) -> usize {
        let (channels, couplings) = (WARPS * WARP_CHANNELS, 2 * LANES * self.lane_states);
        let rows = (5 * channels + couplings) * TILE * stored;
        let pairs = 2 * channels * TILE * 8;
        let steps = 2 * couplings * TILE * 4;
        let sizes = 2 * channels * 4;
        let restarts = 16;
        let kept = if self.many { self.warps * 32 * (self.passes * 32 + TILE / 2 * 4) } else { 0 };
        let constants = if varying { 0 } else { self.warps * 32 * 4 * self.lane_states * 4 };
        rows + pairs + steps + sizes + restarts + kept + constants
    }
}

/// The launch of `selective_scan_fwd_plain.cu` for a shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Plain {
    warps: usize,
    /// Blocks of a chunk.
    chunk_blocks: usize,
}

impl Plain {
    /// None for a shape that these kernels do not take.
    fn new(shape: ScanShape, cut: Cut, multiprocessors: usize) -> Option<Plain> {
        let takes = PLAIN_STATES.contains(&shape.states)
            && (shape.channels / shape.groups).is_multiple_of(WARP_CHANNELS)
            && shape.seq_len <= PLAIN_LONGEST;
        let rounds = |warps: usize| {
            let blocks = blocks_of(shape, warps).saturating_mul(cut.chunks);
            blocks.div_ceil(multiprocessors.max(1)).saturating_mul(warps)
        };
        let warps = (1..=PLAIN_WARPS).rev().min_by_key(|&warps| rounds(warps))?;
        takes.then_some(Plain { warps, chunk_blocks: blocks_of(shape, warps) })
    }

    /// Dynamic shared memory of a block, part by part as in the kernel's `Shared`. `held`: bytes of
    /// an element there.
    fn shared_bytes(lane_states: usize, held: usize) -> usize {
        let (channels, couplings) = (PLAIN_WARPS * WARP_CHANNELS, 2 * LANES * lane_states);
        let pairs = 2 * channels * TILE * 8;
        let steps = 2 * couplings * TILE * 4;
        let rows = (7 * channels + 2 * couplings) * TILE * held;
        let mbarriers = 8 * (4 + 2 * PLAIN_WARPS);
        pairs + steps + rows + mbarriers
    }
}

/// What a launch is for: a template argument of `selective_scan_fwd_plain`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Ends,
    Outputs,
    OutputsAndStates,
}

/// What is launched for the ends of chunks, or for the outputs.
struct Launch {
    function: Function,
    warps: usize,
    chunk_blocks: usize,
    shared_bytes: u32,
}

impl<S: Storage<Accum = f32>> SelectiveScan<S> {
    /// Computes the outputs, asynchronously.
    ///
    /// # Errors
    ///
    /// [`Error::ShapeMismatch`] if a buffer does not have the elements of its shape;
    /// [`Error::Unsupported`] for no states or more than 256, or groups that do not divide the
    /// channels; [`Error::Device`] if a buffer is on another device, if there are more blocks than
    /// a grid takes, if a block takes more shared memory than the device has, if a kernel cannot be
    /// had, or if the device fails.
    pub fn forward_into(
        &self,
        inputs: &ScanInputs<S>,
        out: &mut Buffer<S>,
        shape: ScanShape,
        options: ScanForwardOptions,
    ) -> Result<Launched, Error> {
        let operation = "forward_into";
        inputs.check(operation, shape)?;
        check(operation, "out", out, shape.rows())?;
        let ScanForwardOptions { mut last, mut checkpoints, chunks, stream } = options;
        if let Some(last) = last.as_deref() {
            check(operation, "last", last, shape.states())?;
        }
        if let Some(checkpoints) = checkpoints.as_deref() {
            check(operation, "checkpoints", checkpoints, shape.checkpoints())?;
        }
        let cut = chunks.map_or_else(|| Cut::fastest(shape), |chunks| Cut::into(shape, chunks));
        let multiprocessors = self.device.attributes().multiprocessors as usize;
        let plan = Plan::new(shape, cut, self.exponential(), multiprocessors);
        let shared_bytes = self.check_launch(operation, shape, plan, inputs)?;
        let plain = Plain::new(shape, cut, multiprocessors).filter(|_| {
            inputs.b.varies()
                && inputs.c.varies()
                && inputs.restarts.is_none()
                && self.exponential() == Exponential::Fast
                && checkpoints.as_deref().is_none_or(|states| states.is_aligned_to(16))
        });
        let whole = whole_rows(inputs, out, shape);
        let launch_for = |wanted: Wanted| -> Result<Launch, Error> {
            if let Some(plain) = plain
                && let Some(launch) = self.plain_launch(plain, plan, whole, wanted)?
            {
                return Ok(launch);
            }
            let Plan { warps, chunk_blocks, .. } = plan;
            let function = self.forward_kernel(plan)?;
            Ok(Launch { function, warps, chunk_blocks, shared_bytes })
        };
        let outputs = launch_for(match checkpoints {
            None => Wanted::Outputs,
            Some(_) => Wanted::OutputsAndStates,
        })?;
        if plan.blocks == 0 {
            return Ok(Launched::nothing(&outputs.function));
        }
        // As blocks fit into a grid, so do these into a number.
        let ends = cut.chunks - 1;
        let rows = shape.batch * shape.channels;
        let states = rows * shape.states;
        let room = match ends {
            0 => None,
            _ => Some(self.scratch(ends * (states + rows), stream)?),
        };
        let part = |from: usize, len: usize| {
            room.as_ref().map(|room| room.slice(from..from + len)).transpose()
        };
        let (mut carries, mut sizes) = (part(0, ends * states)?, part(ends * states, ends * rows)?);

        let home = self.device.stream();
        let stream = stream.unwrap_or(&home);
        let mut launched = Launched::nothing(&outputs.function);
        let first = if ends > 0 { Some(launch_for(Wanted::Ends)?) } else { None };
        for (kernel, chunks, only_ends) in
            first.iter().map(|first| (first, ends, true)).chain([(&outputs, cut.chunks, false)])
        {
            let launch = kernel
                .function
                .launch((kernel.chunk_blocks * chunks) as u32, 64 * kernel.warps as u32)
                .shared(kernel.shared_bytes)
                .arg(inputs.u)
                .arg(inputs.delta)
                .arg(inputs.a)
                .arg(inputs.b)
                .arg(inputs.c)
                .arg(inputs.d)
                .arg(inputs.z)
                .arg(inputs.delta_bias)
                .arg(inputs.initial)
                .arg(inputs.restarts)
                .arg(&mut *out)
                .arg(last.as_deref_mut())
                .arg(checkpoints.as_deref_mut())
                .arg(carries.as_mut())
                .arg(sizes.as_mut().filter(|_| only_ends))
                .arg(shape.batch as i32)
                .arg(shape.channels as i32)
                .arg(shape.groups as i32)
                .arg(shape.states as i32)
                .arg(shape.seq_len as i64)
                .arg((cut.chunk_tiles * TILE) as i64)
                .arg(Self::flags(inputs));
            launched = launched.and(&launch.run(stream)?);
            if only_ends && ends > 1 {
                let combine = self.carries_kernel()?;
                let launch = combine
                    .launch(states.div_ceil(CARRY_THREADS) as u32, CARRY_THREADS as u32)
                    .arg(inputs.a)
                    .arg(sizes.as_ref())
                    .arg(carries.as_mut())
                    .arg(shape.batch as i32)
                    .arg(shape.channels as i32)
                    .arg(shape.states as i32)
                    .arg(ends as i32);
                launched = launched.and(&launch.run(stream)?);
            }
        }
        Ok(launched)
    }

    fn forward_kernel(&self, plan: Plan) -> Result<Function, Error> {
        let parameters = [plan.lane_states.to_string(), plan.many.to_string()];
        let (source, name) = ("selective_scan_fwd.cu", "selective_scan_fwd");
        self.kernels.function(&self.device, source, name, &parameters)
    }

    /// None for what these kernels do not take: what the device has too little shared memory for,
    /// and of the ends of chunks all but rows of whole vectors with 16 states.
    fn plain_launch(
        &self,
        plain: Plain,
        plan: Plan,
        whole: bool,
        wanted: Wanted,
    ) -> Result<Option<Launch>, Error> {
        let separate = whole && plan.lane_states == 4;
        let held = if whole { S::ELEMENT.bytes() } else { 4 };
        let shared_bytes = Plain::shared_bytes(plan.lane_states, held) as u32;
        if (wanted == Wanted::Ends && !separate)
            || shared_bytes > self.device.attributes().shared_bytes_opt_in
        {
            return Ok(None);
        }
        // The kernel for outputs and states takes no place for states, too; where it costs, there
        // is one for outputs alone.
        let wanted = if separate { wanted } else { Wanted::OutputsAndStates };
        let (source, name) = ("selective_scan_fwd_plain.cu", "selective_scan_fwd_plain");
        let parameters =
            [plan.lane_states.to_string(), whole.to_string(), (wanted as usize).to_string()];
        let function = self.kernels.function(&self.device, source, name, &parameters)?;
        let Plain { warps, chunk_blocks } = plain;
        Ok(Some(Launch { function, warps, chunk_blocks, shared_bytes }))
    }

    fn carries_kernel(&self) -> Result<Function, Error> {
        let exact = self.exponential() == Exponential::Exact;
        let (source, entry) =
            ("selective_scan_fwd.cu", format!("selective_scan_fwd_carries<{exact}>"));
        self.kernels.entry(&self.device, source, entry)
    }

    fn check_launch(
        &self,
        operation: &str,
        shape: ScanShape,
        plan: Plan,
        inputs: &ScanInputs<S>,
    ) -> Result<u32, Error> {
        let limits = self.device.attributes();
        let [most, ..] = limits.max_grid;
        if plan.blocks > most as usize {
            return Err(self.refused(format!(
                "{operation}: {} channels of {} batches take {} blocks, and a grid has {most} at most; compute them in \
                 parts",
                shape.channels, shape.batch, plan.blocks
            )));
        }
        let bytes = plan.shared_bytes(S::ELEMENT.bytes(), inputs.b.varies() && inputs.c.varies());
        match u32::try_from(bytes).ok().filter(|&bytes| bytes <= limits.shared_bytes_opt_in) {
            Some(bytes) => Ok(bytes),
            None => Err(self.refused(format!(
                "{operation}: {} states take {bytes} bytes of shared memory, and a block has {} at most",
                shape.states, limits.shared_bytes_opt_in
            ))),
        }
    }
}

/// Whether each row of each array with an axis of time is made of vectors of 16 bytes.
fn whole_rows<S: Storage>(inputs: &ScanInputs<S>, out: &Buffer<S>, shape: ScanShape) -> bool {
    (shape.seq_len * S::ELEMENT.bytes()).is_multiple_of(16)
        && inputs.b.is_aligned_to(16)
        && inputs.c.is_aligned_to(16)
        && [inputs.u, inputs.delta, out]
            .into_iter()
            .chain(inputs.z)
            .all(|array| array.is_aligned_to(16))
}

#[cfg(test)]
mod tests {
    use super::{Cut, Exponential, Plain, Plan, ScanShape};

    #[test]
    fn plain_shapes_are_those_of_whole_warps() {
        for (batch, channels, groups, states, multiprocessors, plain) in [
            (8, 2048, 1, 16, 132, Some((8, 128))),
            (8, 1536, 1, 8, 132, Some((6, 128))),
            (1, 2048, 1, 16, 132, Some((1, 128))),
            (2, 128, 2, 16, 1, Some((4, 4))),
            (2, 128, 2, 16, 16, Some((1, 16))),
            (1, 16, 1, 16, 132, Some((1, 1))),
            (8, 2048, 1, 12, 132, None),
            (8, 2040, 1, 16, 132, None),
            (8, 2048, 256, 16, 132, None),
        ] {
            let shape = ScanShape { batch, channels, seq_len: 999, states, groups };
            let found = Plain::new(shape, Cut::into(shape, 1), multiprocessors);
            let found = found.map(|plain| (plain.warps, plain.chunk_blocks));
            assert_eq!(found, plain, "{shape:?} on {multiprocessors}");
        }
        let long = ScanShape { batch: 1, channels: 16, seq_len: 1 << 31, states: 16, groups: 1 };
        assert_eq!(Plain::new(long, Cut::into(long, 1), 132), None);
    }

    #[test]
    fn kernels_follow_the_states_and_the_exponential() {
        let kernel = |states, exponential| {
            let shape = ScanShape { batch: 1, channels: 64, seq_len: 9, states, groups: 1 };
            let plan = Plan::new(shape, Cut::into(shape, 1), exponential, 132);
            (plan.lane_states, plan.passes, plan.many)
        };
        for (states, fast, exact) in [
            (1, (2, 1, false), (4, 1, false)),
            (8, (2, 1, false), (4, 1, false)),
            (9, (4, 1, false), (4, 1, false)),
            (16, (4, 1, false), (4, 1, false)),
            (17, (4, 2, true), (4, 2, true)),
            (256, (4, 16, true), (4, 16, true)),
        ] {
            assert_eq!(kernel(states, Exponential::Fast), fast, "{states} states");
            assert_eq!(kernel(states, Exponential::Exact), exact, "{states} states");
        }
    }

    /// The suite runs the launches of the first three.
    #[test]
    fn blocks_keep_all_multiprocessors_busy() {
        for (batch, channels, groups, multiprocessors, warps, blocks) in [
            (2, 128, 2, 1, 4, 4),
            (2, 128, 2, 3, 2, 8),
            (2, 128, 2, 16, 1, 16),
            (8, 2048, 1, 132, 4, 256),
            (1, 2048, 1, 132, 1, 128),
            (1, 1, 1, 132, 1, 1),
            (1, 65, 1, 1, 1, 5),
            (0, 5, 1, 132, 4, 0),
            (3, 0, 1, 132, 4, 0),
        ] {
            let shape = ScanShape { batch, channels, seq_len: 9, states: 16, groups };
            let plan = Plan::new(shape, Cut::into(shape, 1), Exponential::Fast, multiprocessors);
            let what = format!("{shape:?} on {multiprocessors}");
            assert_eq!((plan.warps, plan.blocks), (warps, blocks), "{what}");
        }
    }

    /// What does not fit is an error, and no overflow.
    #[test]
    fn more_blocks_than_numbers_are_counted_as_the_most() {
        let shape =
            ScanShape { batch: usize::MAX, channels: 64, seq_len: 0, states: 16, groups: 1 };
        let plan = Plan::new(shape, Cut::fastest(shape), Exponential::Fast, 132);
        assert_eq!(plan.blocks, usize::MAX);
    }

    #[test]
    fn long_sequences_of_few_channels_are_cut() {
        for (batch, channels, seq_len, chunks) in [
            (1, 2048, 65536, 8),
            (1, 2048, 4096, 8),
            (1, 1024, 65536, 16),
            (2, 2048, 65536, 4),
            (8, 2048, 65536, 1),
            (1, 2048, 256, 1),
            (1, 1, 1 << 20, 263),
            (1, 4, 1100, 7),
            (1, 4, 0, 1),
        ] {
            let shape = ScanShape { batch, channels, seq_len, states: 16, groups: 1 };
            let cut = Cut::fastest(shape);
            assert_eq!(cut.chunks, chunks, "{shape:?}");
            assert!(cut.chunks == 1 || (cut.chunks - 1) * cut.chunk_tiles * 32 < seq_len);
            assert!(cut.chunks * cut.chunk_tiles * 32 >= seq_len, "{shape:?}");
            let plan = Plan::new(shape, cut, Exponential::Fast, 132);
            assert_eq!(plan.blocks, plan.chunk_blocks * chunks, "{shape:?}");
        }
    }
}
