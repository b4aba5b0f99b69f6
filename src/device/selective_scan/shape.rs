//! Shapes, and the check that buffers have them.

use crate::Error;
use crate::device::{Buffer, Launch};

/// The sizes of a selective scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ScanShape {
    /// The number of batches.
    pub batch: usize,
    /// The number of channels of each batch.
    pub channels: usize,
    /// The number of steps of each channel.
    pub seq_len: usize,
    /// The number of states of each channel, 1 to 256.
    pub states: usize,
    /// The number of groups of neighbouring channels that share `B` and `C`; it divides the number
    /// of channels.
    pub groups: usize,
}

/// The most states that a channel has.
const MOST_STATES: usize = 256;

impl ScanShape {
    /// `[batch, channels, seq_len]`: `u`, `delta`, `z` and `out`.
    pub(super) fn rows(self) -> Vec<usize> {
        vec![self.batch, self.channels, self.seq_len]
    }

    /// `[channels, states]`: `A`.
    pub(super) fn rates(self) -> Vec<usize> {
        vec![self.channels, self.states]
    }

    /// `[batch, groups, states, seq_len]`: `B` and `C`.
    pub(super) fn couplings(self) -> Vec<usize> {
        vec![self.batch, self.groups, self.states, self.seq_len]
    }

    /// `[channels]`: `D` and `delta_bias`.
    pub(super) fn per_channel(self) -> Vec<usize> {
        vec![self.channels]
    }

    /// `[batch, channels, states]`: first and last states.
    pub(super) fn states(self) -> Vec<usize> {
        vec![self.batch, self.channels, self.states]
    }

    /// `[batch, seq_len]`: restarts.
    pub(super) fn steps(self) -> Vec<usize> {
        vec![self.batch, self.seq_len]
    }

    /// `[batch, ceil(seq_len / 8), channels, states]`: the states that a forward pass writes for
    /// the backward pass.
    pub(super) fn checkpoints(self) -> Vec<usize> {
        let chunks = self.seq_len.div_ceil(ScanShape::CHECKPOINT_STEPS);
        vec![self.batch, chunks, self.channels, self.states]
    }

    /// The number of steps between the states that a forward pass writes for the backward pass.
    pub const CHECKPOINT_STEPS: usize = 8;

    /// Returns the number of elements of
    /// [`ScanForwardOptions::checkpoints`](crate::device::ScanForwardOptions::checkpoints); `None`
    /// if it is too large for a `usize`.
    pub fn checkpoints_len(self) -> Option<usize> {
        product(&self.checkpoints())
    }

    /// Passes the sizes to a kernel.
    pub(super) fn pass_to(self, launch: Launch<'_>) -> Launch<'_> {
        let sizes = [self.batch, self.channels, self.groups, self.states];
        let launch = sizes.into_iter().fold(launch, |launch, size| launch.arg(size as i32));
        launch.arg(self.seq_len as i64)
    }

    /// Checks that kernels take these sizes.
    pub(super) fn check(self, operation: &'static str) -> Result<(), Error> {
        let refuse = |what: String| {
            Err(Error::Unsupported {
                engine: "selective scan".into(),
                what: format!("{what} in {operation}"),
            })
        };
        if self.states == 0 || self.states > MOST_STATES {
            return refuse(format!("{} states (1 to {MOST_STATES} are)", self.states));
        }
        if self.groups == 0 || !self.channels.is_multiple_of(self.groups) {
            return refuse(format!(
                "{} channels in {} groups, which do not divide them",
                self.channels, self.groups
            ));
        }
        Ok(())
    }
}

/// Checks that a buffer, if it is given, has the number of elements of its shape.
pub(super) fn check_optional<T>(
    operation: &'static str,
    name: &'static str,
    buffer: Option<&Buffer<T>>,
    shape: Vec<usize>,
) -> Result<(), Error> {
    buffer.map_or(Ok(()), |buffer| check(operation, name, buffer, shape))
}

/// Checks that a buffer has the number of elements of its shape.
pub(super) fn check<T>(
    operation: &'static str,
    name: &'static str,
    buffer: &Buffer<T>,
    shape: Vec<usize>,
) -> Result<(), Error> {
    if product(&shape) == Some(buffer.len()) {
        return Ok(());
    }
    Err(Error::ShapeMismatch {
        operation,
        arrays: vec![("expected", shape), (name, vec![buffer.len()])],
    })
}

fn product(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1_usize, |product, &size| product.checked_mul(size))
}
