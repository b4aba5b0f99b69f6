//! The order of work on a buffer across streams.
//!
//! Work on one stream runs in order, and a program that makes no further stream pays for nothing
//! here. Once there are several, every buffer remembers who last wrote it and who has read it
//! since, and every operation waits for those on other streams that it must not overtake. So two
//! streams can touch one buffer in any order that the host writes down, and memory is not given
//! back while something still runs on it.
//!
//! Streams that are lent take no part in this: whoever lends one orders what is done on it.

use std::ffi::c_void;
use std::sync::Arc;

use super::Gpu;
use super::code::Failure;
use super::handles::{RawEvent, RawStream};
use crate::Error;
use crate::device::lock::lock;

/// What is known of the order of work on a device. Its lock is held while work is queued.
#[derive(Debug, Default)]
pub(crate) struct Order {
    /// The number of streams made so far, besides the one that is always there.
    streams: u64,
    /// For messages: an error of a kernel shows only afterwards.
    pub(super) last_kernel: Option<Arc<str>>,
}

impl Order {
    /// Whether work must be ordered across streams.
    pub(super) fn is_needed(&self) -> bool {
        self.streams > 0
    }
}

/// A queue of work.
#[derive(Debug, Clone)]
pub(crate) struct GpuStream {
    pub(super) stream: Arc<RawStream>,
    /// 0 for the default stream.
    number: u64,
}

impl GpuStream {
    pub(super) fn home(stream: Arc<RawStream>) -> GpuStream {
        GpuStream { stream, number: 0 }
    }

    /// Whether it is somebody else's.
    pub(crate) fn is_lent(&self) -> bool {
        self.stream.is_lent()
    }
}

impl Gpu {
    /// A further stream. From now on work is ordered across streams; what was queued before is
    /// done.
    pub(crate) fn new_stream(&self) -> Result<GpuStream, Error> {
        let made = {
            let mut order = lock(&self.order);
            let idle = if order.is_needed() { Ok(()) } else { self.context.synchronize() };
            idle.and_then(|()| RawStream::new(&self.context)).map(|stream| {
                order.streams += 1;
                GpuStream { stream: Arc::new(stream), number: order.streams }
            })
        };
        self.check("making a stream", made)
    }

    /// A stream that somebody else has made in this GPU's primary context and that outlives this
    /// one.
    pub(crate) fn lent_stream(&self, raw: *mut c_void) -> GpuStream {
        let stream = Arc::new(RawStream::lent(self.context.clone(), raw.cast()));
        // No work of it is ever noted, so that the number is compared with no other.
        GpuStream { stream, number: u64::MAX }
    }
}

/// An operation that has been queued: on which stream, and the event behind it.
#[derive(Debug, Clone)]
struct Use {
    stream: u64,
    event: Arc<RawEvent>,
}

/// The operations on a buffer that a later one may have to wait for.
#[derive(Debug, Default)]
pub(super) struct Uses {
    write: Option<Use>,
    /// Since `write`, the last on every stream.
    reads: Vec<Use>,
    /// Whether some operation may be under way that no event stands for.
    pub(super) unknown: bool,
}

impl Uses {
    /// Makes `stream` wait for what a read, or with `write` a write, must not overtake.
    pub(super) fn wait(&self, stream: &GpuStream, write: bool) -> Result<(), Failure> {
        let reads = if write { &self.reads[..] } else { &[] };
        for earlier in self.write.iter().chain(reads) {
            if earlier.stream != stream.number {
                stream.stream.wait(&earlier.event)?;
            }
        }
        Ok(())
    }

    /// Remembers an operation that has been queued with `event` behind it.
    pub(super) fn note(&mut self, stream: &GpuStream, write: bool, event: Arc<RawEvent>) {
        let this = Use { stream: stream.number, event };
        if write {
            self.reads.clear();
            self.write = Some(this);
        } else {
            self.reads.retain(|earlier| earlier.stream != this.stream);
            self.reads.push(this);
        }
    }
}
