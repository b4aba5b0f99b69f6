//! Shapes, and the check that buffers have them.

use crate::Error;
use crate::device::Buffer;

/// The sizes of a selective scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ScanShape {
    /// How many batches there are.
    pub batch: usize,
    /// Channels of each.
    pub channels: usize,
    /// Steps of each channel.
    pub seq_len: usize,
    /// States of each channel, 1 to 256.
    pub states: usize,
    /// Groups of neighbouring channels that share `B` and `C`; they divide the channels.
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

    /// `[batch, ceil(seq_len / 8), channels, states]`: what a forward pass leaves for the backward
    /// pass.
    pub(super) fn checkpoints(self) -> Vec<usize> {
        let chunks = self.seq_len.div_ceil(ScanShape::CHECKPOINT_STEPS);
        vec![self.batch, chunks, self.channels, self.states]
    }

    /// How many steps there are between the states that a forward pass leaves for the backward
    /// pass.
    pub const CHECKPOINT_STEPS: usize = 8;

    /// How many elements the buffer for
    /// [`ScanForwardOptions::checkpoints`](super::ScanForwardOptions::checkpoints) has; `None` if
    /// no number holds it.
    pub fn checkpoints_len(self) -> Option<usize> {
        product(&self.checkpoints())
    }

    /// An error unless kernels take these sizes.
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

/// An error unless a buffer has as many elements as its shape.
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
