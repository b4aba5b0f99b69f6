//! The forward pass.

use super::shape::check;
use super::{Exponential, ScanInputs, ScanShape, SelectiveScan};
use crate::Error;
use crate::device::{Buffer, Function, Launched, Storage, Stream};

/// The options of [`SelectiveScan::forward_into`]. By default only the outputs are wanted, on the device's default
/// stream.
#[derive(Debug, Default)]
pub struct ScanForwardOptions<'a> {
    /// Where the states after the last step are written, `[batch, channels, states]`, if they are wanted. Without a step
    /// they are those to begin with.
    pub last: Option<&'a mut Buffer<f32>>,
    /// Where states are left for the backward pass, `[batch, ceil(seq_len / 8), channels, states]`: those before
    /// each eighth step ([`ScanShape::CHECKPOINT_STEPS`]).
    pub checkpoints: Option<&'a mut Buffer<f32>>,
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

/// The kernel for a shape and the blocks of its launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Plan {
    /// States of a channel that a lane walks at once.
    lane_states: usize,
    /// How many times the states of all lanes are needed.
    passes: usize,
    /// Whether the kernel is one for more than one pass.
    many: bool,
    warps: usize,
    blocks: usize,
}

impl Plan {
    fn new(shape: ScanShape, exponential: Exponential, multiprocessors: usize) -> Plan {
        // Exact ones are shipped for 4 only.
        let few = shape.states <= 2 * LANES && exponential == Exponential::Fast;
        let lane_states = if few { 2 } else { 4 };
        let passes = shape.states.div_ceil(lane_states * LANES);
        let channels = shape.channels / shape.groups;
        let blocks = |warps| {
            channels
                .div_ceil(WARP_CHANNELS * warps)
                .saturating_mul(shape.groups)
                .saturating_mul(shape.batch)
        };
        // The time that the busiest SM takes: of whole rounds of blocks, and of the blocks that are left.
        let time = |warps: usize| {
            let round = BLOCKS_PER_SM * multiprocessors.max(1);
            let (rounds, rest) = (blocks(warps) / round, blocks(warps) % round);
            (rounds * BLOCKS_PER_SM + rest.div_ceil(multiprocessors.max(1))).saturating_mul(warps)
        };
        let warps = (1..=WARPS).rev().min_by_key(|&warps| time(warps)).unwrap_or(WARPS);
        Plan { lane_states, passes, many: passes > 1, warps, blocks: blocks(warps) }
    }

    /// Dynamic shared memory of a block.
    fn shared_bytes(self, stored: usize) -> usize {
        let (channels, couplings) = (WARPS * WARP_CHANNELS, 2 * LANES * self.lane_states);
        let rows = (5 * channels + couplings) * TILE * stored;
        let pairs = 2 * channels * TILE * 8;
        let steps = 2 * couplings * TILE * 4;
        let restarts = 16;
        let kept = if self.many { self.warps * 32 * (self.passes * 32 + TILE / 2 * 4) } else { 0 };
        rows + pairs + steps + restarts + kept
    }
}

impl<S: Storage<Accum = f32>> SelectiveScan<S> {
    /// Computes the outputs, asynchronously.
    ///
    /// # Errors
    ///
    /// [`Error::ShapeMismatch`] if a buffer does not have the elements of its shape; [`Error::Unsupported`] for no
    /// states or more than 256, or groups that do not divide the channels; [`Error::Device`] if a buffer is
    /// on another device, if there are more blocks than a grid takes, if a block takes more shared memory than the device
    /// has, if a kernel cannot be had, or if the device fails.
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
        let ScanForwardOptions { last, checkpoints, stream } = options;
        if let Some(last) = last.as_deref() {
            check(operation, "last", last, shape.states())?;
        }
        if let Some(checkpoints) = checkpoints.as_deref() {
            check(operation, "checkpoints", checkpoints, shape.checkpoints())?;
        }
        let plan =
            Plan::new(shape, self.exponential(), self.device.attributes().multiprocessors as usize);
        let function = self.forward_kernel(plan)?;
        if plan.blocks == 0 {
            return Ok(Launched::nothing(&function));
        }
        let (blocks, shared_bytes) = self.check_launch(operation, shape, plan)?;
        let launch = function
            .launch(blocks, 64 * plan.warps as u32)
            .shared(shared_bytes)
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
            .arg(out)
            .arg(last)
            .arg(checkpoints)
            .arg(shape.channels as i32)
            .arg(shape.groups as i32)
            .arg(shape.states as i32)
            .arg(shape.seq_len as i64)
            .arg(i32::from(inputs.softplus));
        match stream {
            Some(stream) => launch.run(stream),
            None => launch.run(&self.device.stream()),
        }
    }

    fn forward_kernel(&self, plan: Plan) -> Result<Function, Error> {
        let parameters = [plan.lane_states.to_string(), plan.many.to_string()];
        let (source, name) = ("selective_scan_fwd.cu", "selective_scan_fwd");
        self.kernels.function(&self.device, source, name, &parameters)
    }

    fn check_launch(
        &self,
        operation: &str,
        shape: ScanShape,
        plan: Plan,
    ) -> Result<(u32, u32), Error> {
        let limits = self.device.attributes();
        let [most, ..] = limits.max_grid;
        let Some(blocks) = u32::try_from(plan.blocks).ok().filter(|&blocks| blocks <= most) else {
            return Err(self.refused(format!(
                "{operation}: {} channels of {} batches take {} blocks, and a grid has {most} at most; compute them in \
                 parts",
                shape.channels, shape.batch, plan.blocks
            )));
        };
        let bytes = plan.shared_bytes(S::ELEMENT.bytes());
        match u32::try_from(bytes).ok().filter(|&bytes| bytes <= limits.shared_bytes_opt_in) {
            Some(bytes) => Ok((blocks, bytes)),
            None => Err(self.refused(format!(
                "{operation}: {} states take {bytes} bytes of shared memory, and a block has {} at most",
                shape.states, limits.shared_bytes_opt_in
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Exponential, Plan, ScanShape};

    #[test]
    fn kernels_follow_the_states_and_the_exponential() {
        let kernel = |states, exponential| {
            let shape = ScanShape { batch: 1, channels: 64, seq_len: 9, states, groups: 1 };
            let plan = Plan::new(shape, exponential, 132);
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
            let plan = Plan::new(shape, Exponential::Fast, multiprocessors);
            let what = format!("{shape:?} on {multiprocessors}");
            assert_eq!((plan.warps, plan.blocks), (warps, blocks), "{what}");
        }
    }

    /// What does not fit is an error, and no overflow.
    #[test]
    fn more_blocks_than_numbers_are_counted_as_the_most() {
        let shape =
            ScanShape { batch: usize::MAX, channels: 64, seq_len: 0, states: 16, groups: 1 };
        assert_eq!(Plan::new(shape, Exponential::Fast, 132).blocks, usize::MAX);
    }
}
