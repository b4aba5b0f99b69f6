//! The shape and the options of a recurrence on a device.

use crate::Direction;
use crate::device::{Buffer, Stream};

/// The shape of a batch of sequences that follow one another in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    /// The number of sequences.
    pub num_seqs: usize,
    /// The length of each sequence.
    pub seq_len: usize,
}

impl From<(usize, usize)> for Shape {
    fn from((num_seqs, seq_len): (usize, usize)) -> Shape {
        Shape { num_seqs, seq_len }
    }
}

/// The options of [`Recurrence::forward_into`](super::Recurrence::forward_into). The default is
/// forward, from zero, with plain coefficients, on the device's default stream.
#[derive(Debug)]
pub struct ForwardOptions<'a, A> {
    /// The direction of the recurrence.
    pub direction: Direction,
    /// True if the coefficients are given as `ln c`. The device computes `c` by multiply-adds, so
    /// that a GPU and the emulator give the same bits, into an array that belongs to the
    /// recurrence: see [`Recurrence`](super::Recurrence#logarithms).
    pub log_coeffs: bool,
    /// The state before the first step, one per sequence; `None` means zero.
    pub initial: Option<&'a Buffer<A>>,
    /// The array for the last state of each sequence; `None` if it is not wanted.
    pub final_state: Option<&'a mut Buffer<A>>,
    /// The stream to work on, or the stream of a [recording](crate::device::Device::record); `None`
    /// means [`Device::stream`](crate::device::Device::stream).
    pub stream: Option<&'a Stream>,
}

impl<A> Default for ForwardOptions<'_, A> {
    fn default() -> Self {
        let direction = Direction::Forward;
        ForwardOptions {
            direction,
            log_coeffs: false,
            initial: None,
            final_state: None,
            stream: None,
        }
    }
}

/// The options of [`Recurrence::backward_into`](super::Recurrence::backward_into). Direction, kind
/// of coefficients and initial state are the same as in the forward pass.
#[derive(Debug)]
pub struct BackwardOptions<'a, A> {
    /// The direction of the recurrence in the forward pass.
    pub direction: Direction,
    /// True if the coefficients are given as `ln c`; `d_coeffs` is then the gradient with respect
    /// to `ln c`.
    pub log_coeffs: bool,
    /// The state before the first step, one per sequence; `None` means zero.
    pub initial: Option<&'a Buffer<A>>,
    /// The array for the gradient with respect to the initial state; `None` if it is not wanted.
    pub d_initial: Option<&'a mut Buffer<A>>,
    /// The stream to work on, or the stream of a [recording](crate::device::Device::record); `None`
    /// means [`Device::stream`](crate::device::Device::stream).
    pub stream: Option<&'a Stream>,
}

impl<A> Default for BackwardOptions<'_, A> {
    fn default() -> Self {
        let direction = Direction::Forward;
        BackwardOptions {
            direction,
            log_coeffs: false,
            initial: None,
            d_initial: None,
            stream: None,
        }
    }
}
