//! The forward pass of the selective scan: its options, its plan, and the launches of a call.
//!
//! One kernel computes the outputs. Where few channels would leave much of a device idle, sequences
//! are cut into chunks of time; then a first pass computes the state at the end of each chunk, a
//! small kernel combines these, and the last pass starts every chunk with the right state. Shapes
//! without special cases have faster kernels ([`Plain`]). The plan is tested here, the numbers in
//! `tests/suite/selective_scan`.

use super::plan::{MULTIPROCESSORS, rounds};
use super::shape::{check, check_optional};
use super::{Exponential, ScanInputs, ScanShape, SelectiveScan};
use crate::Error;
use crate::device::{Buffer, Function, Launched, Storage, Stream};

/// The options of [`SelectiveScan::forward_into`]. By default only the outputs are computed, on the
/// device's default stream.
#[derive(Debug, Default)]
pub struct ScanForwardOptions<'a> {
    /// The array for the states after the last step, `[batch, channels, states]`; `None` if they
    /// are not wanted. Without any step they are the initial states.
    pub last: Option<&'a mut Buffer<f32>>,
    /// The array for the states that the backward pass reads,
    /// `[batch, ceil(seq_len / 8), channels, states]`: the states before each eighth step
    /// ([`ScanShape::CHECKPOINT_STEPS`]).
    pub checkpoints: Option<&'a mut Buffer<f32>>,
    /// The most chunks of time that sequences are cut into, so that few channels keep the whole
    /// device busy. Chunks consist of whole tiles of 32 steps. `None` means the number that is
    /// expected to be fastest, by the shape alone. Results for different numbers of chunks differ
    /// in their last bits.
    pub chunks: Option<usize>,
    /// The stream to work on, or the stream of a [recording](crate::device::Device::record); `None`
    /// means [`Device::stream`](crate::device::Device::stream).
    pub stream: Option<&'a Stream>,
}

/// The most warps of a block that compute; it has as many more that load and store.
const WARPS: usize = 4;
/// The channels of each warp.
const WARP_CHANNELS: usize = 16;
/// The lanes that share a channel.
const LANES: usize = 4;
/// The steps of a tile.
const TILE: usize = 32;
/// The blocks of an SM, by the kernel's launch bounds.
const BLOCKS_PER_SM: usize = 2;
/// The time of a pass for the ends of chunks, as a part of the time of a pass for outputs. This and
/// the following numbers were measured on an H200 (1 to 4 batches of 512 and 2048 channels, 1024 to
/// 65,536 steps, in 1 to 32 chunks).
const ENDS: f64 = 0.7;
/// The time of a block that has an SM to itself, as a part of the time of two that share it.
const ALONE: f64 = 0.65;
/// The tiles that take as long as the begin and the end of a pass.
const PASS_TILES: usize = 3;
/// The fewest tiles of a chunk.
const LEAST_TILES: usize = 4;
/// The most warps of a block of `selective_scan_fwd_plain.cu` that compute; a multiprocessor holds
/// one block.
const PLAIN_WARPS: usize = 8;
/// The states that these kernels take, and the longest row: steps are counted in 32 bits.
const PLAIN_STATES: [usize; 2] = [2 * LANES, 4 * LANES];
const PLAIN_LONGEST: usize = 1 << 30;
/// The threads of a block that combines the ends of chunks.
const CARRY_THREADS: usize = 256;

/// The kernel for a shape and the blocks of its launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ForwardPlan {
    /// The states of a channel that a lane walks at once.
    lane_states: usize,
    /// The number of passes over all lanes that the states take.
    passes: usize,
    /// True if the kernel is for more than one pass.
    many: bool,
    /// The cut of sequences into chunks.
    cut: ScanCut,
    warps: usize,
    /// The blocks of a chunk, and of all chunks.
    chunk_blocks: usize,
    blocks: usize,
}

/// Chunks of time, of `chunk_tiles` tiles each; the last one may have fewer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ScanCut {
    chunk_tiles: usize,
    chunks: usize,
}

impl ScanCut {
    /// Cuts sequences into at most `most` chunks of whole tiles.
    fn into(shape: ScanShape, most: usize) -> ScanCut {
        let tiles = shape.seq_len.div_ceil(TILE);
        let chunk_tiles = tiles.div_ceil(most.max(1)).max(1);
        ScanCut { chunk_tiles, chunks: tiles.div_ceil(chunk_tiles).max(1) }
    }

    /// Cuts as [`ScanForwardOptions::chunks`] asks for.
    fn of(shape: ScanShape, chunks: Option<usize>) -> ScanCut {
        chunks.map_or_else(|| ScanCut::fastest(shape), |chunks| ScanCut::into(shape, chunks))
    }

    /// Returns the fastest cut, by an estimate of the time in rounds of blocks of the largest size.
    fn fastest(shape: ScanShape) -> ScanCut {
        let tiles = shape.seq_len.div_ceil(TILE);
        let blocks = blocks_of(shape, WARPS);
        let rounds = |chunks: usize| rounds(blocks.saturating_mul(chunks), BLOCKS_PER_SM, ALONE);
        let time = |cut: ScanCut| {
            (ENDS * rounds(cut.chunks - 1) + rounds(cut.chunks))
                * (cut.chunk_tiles + PASS_TILES) as f64
        };
        let most = (tiles / LEAST_TILES).min(BLOCKS_PER_SM * MULTIPROCESSORS);
        let cuts = (2..=most).map(|chunks| ScanCut::into(shape, chunks));
        cuts.fold(
            ScanCut::into(shape, 1),
            |best, cut| if time(cut) < time(best) { cut } else { best },
        )
    }
}

/// Returns the number of blocks of a chunk if each has `warps` warps that compute.
fn blocks_of(shape: ScanShape, warps: usize) -> usize {
    (shape.channels / shape.groups)
        .div_ceil(WARP_CHANNELS * warps)
        .saturating_mul(shape.groups)
        .saturating_mul(shape.batch)
}

impl ForwardPlan {
    fn new(
        shape: ScanShape,
        cut: ScanCut,
        exponential: Exponential,
        multiprocessors: usize,
    ) -> ForwardPlan {
        // Kernels with exact exponentials are shipped for 4 only.
        let few = shape.states <= 2 * LANES && exponential == Exponential::Fast;
        let lane_states = if few { 2 } else { 4 };
        let passes = shape.states.div_ceil(lane_states * LANES);
        let blocks = |warps| blocks_of(shape, warps).saturating_mul(cut.chunks);
        // The time of the busiest SM: whole rounds of blocks, and the remaining blocks.
        let time = |warps: usize| {
            let round = BLOCKS_PER_SM * multiprocessors.max(1);
            let (rounds, rest) = (blocks(warps) / round, blocks(warps) % round);
            (rounds * BLOCKS_PER_SM + rest.div_ceil(multiprocessors.max(1))).saturating_mul(warps)
        };
        let warps = (1..=WARPS).rev().min_by_key(|&warps| time(warps)).unwrap_or(WARPS);
        let chunk_blocks = blocks_of(shape, warps);
        let (many, blocks) = (passes > 1, blocks(warps));
        ForwardPlan { lane_states, passes, many, cut, warps, chunk_blocks, blocks }
    }

    /// Returns the dynamic shared memory of a block, which may have constant couplings.
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
    /// The blocks of a chunk.
    chunk_blocks: usize,
}

impl Plain {
    /// Returns `None` for a shape that these kernels do not take.
    fn new(shape: ScanShape, cut: ScanCut, multiprocessors: usize) -> Option<Plain> {
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

    /// Returns the dynamic shared memory of a block, part by part as in the kernel's `Shared`,
    /// where an element has `held` bytes.
    fn shared_bytes(lane_states: usize, held: usize) -> usize {
        let (channels, couplings) = (PLAIN_WARPS * WARP_CHANNELS, 2 * LANES * lane_states);
        let pairs = 2 * channels * TILE * 8;
        let steps = 2 * couplings * TILE * 4;
        let rows = (7 * channels + 2 * couplings) * TILE * held;
        let mbarriers = 8 * (4 + 2 * PLAIN_WARPS);
        pairs + steps + rows + mbarriers
    }
}

/// The purpose of a launch: a template argument of `selective_scan_fwd_plain`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScanResults {
    Ends,
    Outputs,
    OutputsAndStates,
}

/// A launch for the ends of chunks, or for the outputs.
struct PassLaunch {
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
    /// loaded, or if the device fails.
    pub fn forward_into(
        &self,
        inputs: &ScanInputs<S>,
        out: &mut Buffer<S>,
        shape: ScanShape,
        options: ScanForwardOptions,
    ) -> Result<Launched, Error> {
        self.check_forward(inputs, out, shape, &options)?;
        self.forward_pass(inputs, Some(out), shape, options, None)
    }

    /// Checks that all arrays have this shape.
    pub(super) fn check_forward(
        &self,
        inputs: &ScanInputs<S>,
        out: &Buffer<S>,
        shape: ScanShape,
        options: &ScanForwardOptions,
    ) -> Result<(), Error> {
        let operation = "forward_into";
        inputs.check(operation, shape)?;
        check(operation, "out", out, shape.rows())?;
        check_optional(operation, "last", options.last.as_deref(), shape.states())?;
        let checkpoints = options.checkpoints.as_deref();
        check_optional(operation, "checkpoints", checkpoints, shape.checkpoints())
    }

    /// Computes the states at the ends of all chunks, `[chunks, batch, channels, states]`, from the
    /// states before the sequence, and the sums of the step sizes of each chunk, `[chunks, batch,
    /// channels]`, which are NaN if nothing comes through the chunk.
    pub(super) fn leaving(
        &self,
        inputs: &ScanInputs<S>,
        shape: ScanShape,
        chunks: Option<usize>,
        stream: Option<&Stream>,
    ) -> Result<[Buffer<f32>; 2], Error> {
        let chunks = ScanCut::of(shape, chunks).chunks;
        let rows = chunks.saturating_mul(shape.batch).saturating_mul(shape.channels);
        let mut carries = self.device.allocate(rows.saturating_mul(shape.states))?;
        let mut sizes = self.device.allocate(rows)?;
        let options = ScanForwardOptions { chunks: Some(chunks), stream, ..Default::default() };
        self.forward_pass(inputs, None, shape, options, Some([&mut carries, &mut sizes]))?;
        Ok([carries, sizes])
    }

    /// Computes the outputs, or only what [`SelectiveScan::leaving`] returns.
    fn forward_pass(
        &self,
        inputs: &ScanInputs<S>,
        mut out: Option<&mut Buffer<S>>,
        shape: ScanShape,
        options: ScanForwardOptions,
        leaving: Option<[&mut Buffer<f32>; 2]>,
    ) -> Result<Launched, Error> {
        let ScanForwardOptions { mut last, mut checkpoints, chunks, stream } = options;
        let cut = ScanCut::of(shape, chunks);
        let multiprocessors = self.device.attributes().multiprocessors as usize;
        let plan = ForwardPlan::new(shape, cut, self.exponential(), multiprocessors);
        let varying = inputs.b.varies() && inputs.c.varies();
        let shared_bytes = plan.shared_bytes(S::ELEMENT.bytes(), varying);
        self.check_launch("forward_into", shape, plan.blocks, shared_bytes)?;
        // The plain kernel for the ends of chunks takes whole tiles only.
        let is_plain = leaving.is_none() || shape.seq_len.is_multiple_of(TILE);
        let plain = Plain::new(shape, cut, multiprocessors).filter(|_| {
            is_plain
                && varying
                && inputs.restarts.is_none()
                && self.exponential() == Exponential::Fast
                && checkpoints.as_deref().is_none_or(|states| states.is_aligned_to(16))
        });
        let whole = inputs.have_whole_rows(out.as_deref().unwrap_or(inputs.u), shape);
        let launch_for = |wanted: ScanResults| -> Result<PassLaunch, Error> {
            if let Some(plain) = plain
                && let Some(launch) = self.plain_launch(plain, plan, whole, wanted)?
            {
                return Ok(launch);
            }
            let ForwardPlan { warps, chunk_blocks, .. } = plan;
            let function = self.forward_kernel(plan)?;
            let shared_bytes = shared_bytes as u32;
            Ok(PassLaunch { function, warps, chunk_blocks, shared_bytes })
        };
        let outputs = launch_for(match checkpoints {
            None => ScanResults::Outputs,
            Some(_) => ScanResults::OutputsAndStates,
        })?;
        if plan.blocks == 0 {
            return Ok(Launched::nothing(&outputs.function));
        }
        // No overflow: the blocks fit into a grid.
        let ends = if leaving.is_some() { cut.chunks } else { cut.chunks - 1 };
        let rows = shape.batch * shape.channels;
        let states = rows * shape.states;
        let scratch = match ends {
            _ if leaving.is_some() => None,
            0 => None,
            _ => Some(self.scratch(ends * (states + rows), stream)?),
        };
        let part = |from: usize, len: usize| {
            scratch.as_ref().map(|scratch| scratch.slice(from..from + len)).transpose()
        };
        let (mut carries, mut sizes) = match leaving {
            Some([carries, sizes]) => (Some(carries.slice(..)?), Some(sizes.slice(..)?)),
            None => (part(0, ends * states)?, part(ends * states, ends * rows)?),
        };

        let home = self.device.stream();
        let stream = stream.unwrap_or(&home);
        let mut launched = Launched::nothing(&outputs.function);
        let first = if ends > 0 { Some(launch_for(ScanResults::Ends)?) } else { None };
        let first = first.iter().map(|first| (first, ends, true));
        let whole = out.is_some().then_some((&outputs, cut.chunks, false));
        for (kernel, chunks, only_ends) in first.chain(whole) {
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
                .arg(out.as_deref_mut())
                .arg(last.as_deref_mut())
                .arg(checkpoints.as_deref_mut())
                .arg(carries.as_mut())
                .arg(sizes.as_mut().filter(|_| only_ends));
            let launch = shape.pass_to(launch).arg((cut.chunk_tiles * TILE) as i64);
            launched = launched.and(&launch.arg(Self::flags(inputs)).run(stream)?);
            if only_ends
                && ends > 1
                && let (Some(carries), Some(sizes)) = (&mut carries, &sizes)
            {
                launched =
                    launched.and(&self.compose(inputs.a, sizes, carries, shape, ends, stream)?);
            }
        }
        Ok(launched)
    }

    /// Puts the right states behind each of `ends` chunks, from those that each has by itself.
    /// There is a state.
    pub(super) fn compose(
        &self,
        a: &Buffer<f32>,
        sizes: &Buffer<f32>,
        carries: &mut Buffer<f32>,
        shape: ScanShape,
        ends: usize,
        stream: &Stream,
    ) -> Result<Launched, Error> {
        let states = shape.batch * shape.channels * shape.states;
        let combine = self.carries_kernel()?;
        let launch = combine
            .launch(states.div_ceil(CARRY_THREADS) as u32, CARRY_THREADS as u32)
            .arg(a)
            .arg(sizes)
            .arg(carries)
            .arg(shape.batch as i32)
            .arg(shape.channels as i32)
            .arg(shape.states as i32)
            .arg(ends as i32);
        launch.run(stream)
    }

    fn forward_kernel(&self, plan: ForwardPlan) -> Result<Function, Error> {
        let parameters = [plan.lane_states.to_string(), plan.many.to_string()];
        let (source, name) = ("selective_scan_fwd.cu", "selective_scan_fwd");
        self.kernels.function(&self.device, source, name, &parameters)
    }

    /// Returns `None` if these kernels cannot be used: if the device has too little shared memory,
    /// or for the ends of chunks unless rows are whole vectors and channels have 16 states.
    fn plain_launch(
        &self,
        plain: Plain,
        plan: ForwardPlan,
        whole: bool,
        wanted: ScanResults,
    ) -> Result<Option<PassLaunch>, Error> {
        let separate = whole && plan.lane_states == 4;
        let held = if whole { S::ELEMENT.bytes() } else { 4 };
        let shared_bytes = Plain::shared_bytes(plan.lane_states, held) as u32;
        if (wanted == ScanResults::Ends && !separate)
            || shared_bytes > self.device.attributes().shared_bytes_opt_in
        {
            return Ok(None);
        }
        // The kernel for outputs and states also takes a null pointer for the states. Where that
        // costs time, there is a kernel for outputs alone.
        let wanted = if separate { wanted } else { ScanResults::OutputsAndStates };
        let (source, name) = ("selective_scan_fwd_plain.cu", "selective_scan_fwd_plain");
        let parameters =
            [plan.lane_states.to_string(), whole.to_string(), (wanted as usize).to_string()];
        let function = self.kernels.function(&self.device, source, name, &parameters)?;
        let Plain { warps, chunk_blocks } = plain;
        Ok(Some(PassLaunch { function, warps, chunk_blocks, shared_bytes }))
    }

    fn carries_kernel(&self) -> Result<Function, Error> {
        let exact = self.exponential() == Exponential::Exact;
        let (source, entry) =
            ("selective_scan_fwd.cu", format!("selective_scan_fwd_carries<{exact}>"));
        self.kernels.entry(&self.device, source, entry)
    }
}

#[cfg(test)]
mod tests {
    use super::{Exponential, ForwardPlan, Plain, ScanCut, ScanShape};

    #[test]
    fn plain_kernels_take_shapes_of_whole_warps() {
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
            let found = Plain::new(shape, ScanCut::into(shape, 1), multiprocessors);
            let found = found.map(|plain| (plain.warps, plain.chunk_blocks));
            assert_eq!(found, plain, "{shape:?} on {multiprocessors}");
        }
        let long = ScanShape { batch: 1, channels: 16, seq_len: 1 << 31, states: 16, groups: 1 };
        assert_eq!(Plain::new(long, ScanCut::into(long, 1), 132), None);
    }

    #[test]
    fn kernels_follow_the_states_and_the_exponential() {
        let kernel = |states, exponential| {
            let shape = ScanShape { batch: 1, channels: 64, seq_len: 9, states, groups: 1 };
            let plan = ForwardPlan::new(shape, ScanCut::into(shape, 1), exponential, 132);
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
            let plan = ForwardPlan::new(
                shape,
                ScanCut::into(shape, 1),
                Exponential::Fast,
                multiprocessors,
            );
            let what = format!("{shape:?} on {multiprocessors}");
            assert_eq!((plan.warps, plan.blocks), (warps, blocks), "{what}");
        }
    }

    /// Sizes that are too large become an error, and never overflow.
    #[test]
    fn more_blocks_than_numbers_are_counted_as_the_most() {
        let shape =
            ScanShape { batch: usize::MAX, channels: 64, seq_len: 0, states: 16, groups: 1 };
        let plan = ForwardPlan::new(shape, ScanCut::fastest(shape), Exponential::Fast, 132);
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
            let cut = ScanCut::fastest(shape);
            assert_eq!(cut.chunks, chunks, "{shape:?}");
            assert!(cut.chunks == 1 || (cut.chunks - 1) * cut.chunk_tiles * 32 < seq_len);
            assert!(cut.chunks * cut.chunk_tiles * 32 >= seq_len, "{shape:?}");
            let plan = ForwardPlan::new(shape, cut, Exponential::Fast, 132);
            assert_eq!(plan.blocks, plan.chunk_blocks * chunks, "{shape:?}");
        }
    }
}
