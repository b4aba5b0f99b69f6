//! The order of work on a buffer across streams.
//!
//! Work on one stream runs in order, and a program that makes no further stream pays for nothing
//! here. Once there are several streams, every buffer remembers its last write and the reads since,
//! and every operation waits for those on other streams that it must not overtake. So two streams
//! can use one buffer in any order that the host queues, and memory is not freed while something
//! still runs on it.
//!
//! Lent streams take no part in this: their lender orders the work on them.

use std::sync::Arc;

use super::Gpu;
use super::error::Failure;
use super::handles::{GpuStream, RawEvent};
use crate::Error;
use crate::device::lock::lock;

/// The order of work on a device. Its lock is held while work is queued.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// The number of streams made so far, without the default stream.
    streams: u64,
    /// For messages: an error of a kernel shows only afterwards.
    pub(super) last_kernel: Option<Arc<str>>,
}

impl Order {
    /// True if work must be ordered across streams.
    pub(super) fn is_needed(&self) -> bool {
        self.streams > 0
    }
}

impl Gpu {
    /// Makes a further stream, behind all work so far. From now on work is ordered across streams.
    pub(super) fn further_stream(&self) -> Result<Arc<GpuStream>, Error> {
        let made = {
            let mut order = lock(&self.order);
            let idle = if order.is_needed() { Ok(()) } else { self.context.synchronize() };
            let number = order.streams + 1;
            idle.and_then(|()| GpuStream::new(&self.context, number))
                .inspect(|_| order.streams = number)
        };
        self.check("making a stream", made.map(Arc::new))
    }
}

/// A queued operation: the number of its stream, and the event behind it.
#[derive(Debug, Clone)]
struct Use {
    stream: u64,
    event: Arc<RawEvent>,
}

/// The operations on a buffer that a later one may have to wait for.
#[derive(Debug, Default)]
pub(super) struct Uses {
    write: Option<Use>,
    /// The last read since `write` on every stream.
    reads: Vec<Use>,
    /// True if an operation without an event may be under way.
    pub(super) unknown: bool,
}

impl Uses {
    /// Makes `stream` wait for the operations that a read, or with `write` a write, must not
    /// overtake.
    pub(super) fn wait(&self, stream: &GpuStream, write: bool) -> Result<(), Failure> {
        let reads = if write { &self.reads[..] } else { &[] };
        for earlier in self.write.iter().chain(reads) {
            if earlier.stream != stream.number {
                stream.wait(&earlier.event)?;
            }
        }
        Ok(())
    }

    /// Notes an operation that has been queued with `event` behind it.
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
