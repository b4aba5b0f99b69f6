//! What a launch may use of this machine, on the emulator.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use std::{io, thread};

use super::Launch;

/// What was said of a launch; the rest is as [`simt::Launch::new`](crate::simt::Launch::new) has
/// it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Bounds {
    pub(super) instructions: Option<u64>,
    pub(super) host_bytes: Option<u64>,
    pub(super) deadline: Option<Duration>,
}

impl Launch<'_> {
    /// Lets the warps of all its blocks execute at most so many instructions, instead of
    /// [`simt::Launch::INSTRUCTIONS`](crate::simt::Launch::INSTRUCTIONS). On the emulator only;
    /// passed, it is an [`Error::Kernel`](crate::Error::Kernel) that says where.
    pub fn instructions(mut self, most: u64) -> Self {
        self.bounds.instructions = Some(most);
        self
    }

    /// Lets the emulator take at most so many bytes of this machine for the launch, instead of
    /// [`simt::Launch::HOST_BYTES`](crate::simt::Launch::HOST_BYTES). On the emulator only; passed,
    /// it is an [`Error::Kernel`](crate::Error::Kernel) that says what they were needed for.
    pub fn host_bytes(mut self, most: u64) -> Self {
        self.bounds.host_bytes = Some(most);
        self
    }

    /// Ends the launch some milliseconds after this time, if it has not ended before: an
    /// [`Error::Kernel`](crate::Error::Kernel) of kind
    /// [`Cancelled`](crate::simt::ReportKind::Cancelled). On the emulator only. In a
    /// [`Graph`](super::Graph) every replay gives the launch this time anew.
    pub fn deadline(mut self, time: Duration) -> Self {
        self.bounds.deadline = Some(time);
        self
    }
}

/// Does `work`, which is given a flag that is set when the time is over.
///
/// # Errors
///
/// If there can be no thread that waits for it.
pub(super) fn within<T>(time: Duration, work: impl FnOnce(&AtomicBool) -> T) -> io::Result<T> {
    let over = AtomicBool::new(time.is_zero());
    thread::scope(|scope| {
        let (done, waiting) = mpsc::channel::<()>();
        let over = &over;
        thread::Builder::new().spawn_scoped(scope, move || {
            if waiting.recv_timeout(time) == Err(RecvTimeoutError::Timeout) {
                over.store(true, Relaxed);
            }
        })?;
        let result = work(over);
        drop(done);
        Ok(result)
    })
}
