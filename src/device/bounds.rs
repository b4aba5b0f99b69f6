//! Limits on what a launch may use of the host. Only the emulator has them.

use std::time::Duration;

use super::Launch;

/// The limits that a launch was given; the others are those of
/// [`simt::Launch::new`](crate::simt::Launch::new).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Bounds {
    pub(super) instructions: Option<u64>,
    pub(super) host_bytes: Option<u64>,
    pub(super) deadline: Option<Duration>,
}

impl Launch<'_> {
    /// Lets the warps of all its blocks execute at most `most` instructions, instead of
    /// [`simt::Launch::INSTRUCTIONS`](crate::simt::Launch::INSTRUCTIONS). On the emulator only. A
    /// launch that passes the limit is an [`Error::Kernel`](crate::Error::Kernel) that says where.
    pub fn instructions(mut self, most: u64) -> Self {
        self.spec.bounds.instructions = Some(most);
        self
    }

    /// Lets the emulator allocate at most `most` bytes of the host for the launch, instead of
    /// [`simt::Launch::HOST_BYTES`](crate::simt::Launch::HOST_BYTES). On the emulator only. A
    /// launch that passes the limit is an [`Error::Kernel`](crate::Error::Kernel) that says what
    /// the bytes were needed for.
    pub fn host_bytes(mut self, most: u64) -> Self {
        self.spec.bounds.host_bytes = Some(most);
        self
    }

    /// Ends the launch some milliseconds after this time, if it is not over by then: an
    /// [`Error::Kernel`](crate::Error::Kernel) of kind
    /// [`Cancelled`](crate::simt::ReportKind::Cancelled). On the emulator only. In a
    /// [`Graph`](super::Graph) the time starts anew with every replay.
    pub fn deadline(mut self, time: Duration) -> Self {
        self.spec.bounds.deadline = Some(time);
        self
    }
}
