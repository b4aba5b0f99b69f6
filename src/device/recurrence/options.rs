//! What can be asked of a recurrence on a device.

use crate::Direction;
use crate::device::{Buffer, Stream};

/// The options of [`Recurrence::forward_into`](super::Recurrence::forward_into). The default is
/// forward, from zero, with plain coefficients, on the device's default stream.
#[derive(Debug)]
pub struct ForwardOptions<'a, A> {
    /// Which way the recurrence walks.
    pub direction: Direction,
    /// The coefficients are given as `ln c`. They are computed on the device, by multiply-adds, so
    /// that a GPU and the emulator give the same bits, into an array of the recurrence's own: see
    /// [`Recurrence`](super::Recurrence#logarithms).
    pub log_coeffs: bool,
    /// The state before the first step, one per sequence; `None` means zero.
    pub initial: Option<&'a Buffer<A>>,
    /// Where the last state of each sequence is written, if it is wanted.
    pub final_state: Option<&'a mut Buffer<A>>,
    /// The stream to work on, or that of a [recording](crate::device::Device::record); `None` means
    /// [`Device::stream`](crate::device::Device::stream).
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

/// The options of [`Recurrence::backward_into`](super::Recurrence::backward_into); direction, kind
/// of coefficients and initial state are those of the forward pass.
#[derive(Debug)]
pub struct BackwardOptions<'a, A> {
    /// Which way the recurrence walked.
    pub direction: Direction,
    /// The coefficients are given as `ln c`, and `d_coeffs` is the gradient with respect to `ln c`.
    pub log_coeffs: bool,
    /// The state before the first step, one per sequence; `None` means zero.
    pub initial: Option<&'a Buffer<A>>,
    /// Where the gradient with respect to the initial state is written, if it is wanted.
    pub d_initial: Option<&'a mut Buffer<A>>,
    /// The stream to work on, or that of a [recording](crate::device::Device::record); `None` means
    /// [`Device::stream`](crate::device::Device::stream).
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
