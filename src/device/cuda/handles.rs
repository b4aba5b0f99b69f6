//! Streams and events as the driver has them. Dropping one destroys it.

use std::sync::Arc;

use super::context::Context;
use super::error::Failure;
use super::sys::{
    CU_EVENT_DEFAULT, CU_EVENT_DISABLE_TIMING, CU_STREAM_NON_BLOCKING, CUDA_ERROR_NOT_READY,
    CUevent, CUstream,
};

/// A queue of work.
#[derive(Debug)]
pub(super) struct GpuStream {
    context: Arc<Context>,
    /// The handle, which lives as long as this; null for the default stream.
    pub(super) raw: CUstream,
    /// The number by which [`super::order`] distinguishes streams; 0 for the default stream.
    pub(super) number: u64,
    /// True if another library made it, and destroys it.
    pub(super) is_lent: bool,
}

/// A point in a stream.
#[derive(Debug)]
pub(super) struct RawEvent {
    context: Arc<Context>,
    raw: CUevent,
}

impl GpuStream {
    /// The default stream.
    pub(super) fn home(context: Arc<Context>) -> GpuStream {
        GpuStream { context, raw: CUstream::NULL, number: 0, is_lent: false }
    }

    /// A stream of another library, in the same context; it outlives this. No work on it is ever
    /// noted, so that its number is compared with no other.
    pub(super) fn lent(context: Arc<Context>, raw: CUstream) -> GpuStream {
        GpuStream { context, raw, number: u64::MAX, is_lent: true }
    }

    /// Makes a further stream, which waits for no other by itself.
    pub(super) fn new(context: &Arc<Context>, number: u64) -> Result<GpuStream, Failure> {
        let cuda = context.bind()?;
        let mut raw = CUstream::NULL;
        // SAFETY: (1) the context is current; (2) `raw` may be written.
        unsafe { (cuda.cuStreamCreate)(&mut raw, CU_STREAM_NON_BLOCKING) }.check()?;
        if raw.is_null() {
            return Err(Failure::odd("the stream is null"));
        }
        Ok(GpuStream { context: context.clone(), raw, number, is_lent: false })
    }

    /// Waits for all work queued so far.
    pub(super) fn synchronize(&self) -> Result<(), Failure> {
        let cuda = self.context.bind()?;
        // SAFETY: (1) the context is current; (2) the stream is live.
        unsafe { (cuda.cuStreamSynchronize)(self.raw) }.check()
    }

    /// Makes work that is queued from now on wait for an event of the same context.
    pub(super) fn wait(&self, event: &RawEvent) -> Result<(), Failure> {
        let cuda = self.context.bind()?;
        // SAFETY: (1) the context is current; (2) stream and event are live; (3) no flags are
        // passed.
        unsafe { (cuda.cuStreamWaitEvent)(self.raw, event.raw, 0) }.check()
    }
}

impl RawEvent {
    /// Makes an event; without `timed` it is for order alone, and cheaper.
    pub(super) fn new(context: &Arc<Context>, timed: bool) -> Result<RawEvent, Failure> {
        let cuda = context.bind()?;
        let flags = if timed { CU_EVENT_DEFAULT } else { CU_EVENT_DISABLE_TIMING };
        let mut raw = CUevent::NULL;
        // SAFETY: (1) the context is current; (2) `raw` may be written.
        unsafe { (cuda.cuEventCreate)(&mut raw, flags) }.check()?;
        if raw.is_null() {
            return Err(Failure::odd("the event is null"));
        }
        Ok(RawEvent { context: context.clone(), raw })
    }

    /// Queues it behind all work that a stream of the same context has so far.
    pub(super) fn record(&self, stream: &GpuStream) -> Result<(), Failure> {
        let cuda = self.context.bind()?;
        // SAFETY: (1) the context is current; (2) stream and event are live.
        unsafe { (cuda.cuEventRecord)(self.raw, stream.raw) }.check()
    }

    /// Returns at once whether everything that was ahead of it is done.
    pub(super) fn is_reached(&self) -> Result<bool, Failure> {
        let cuda = self.context.bind()?;
        let missing = || Failure::odd("it has no cuEventQuery");
        let query = cuda.cuEventQuery.ok_or_else(missing)?;
        // SAFETY: (1) the context is current; (2) the event is live.
        match unsafe { query(self.raw) }.check() {
            Ok(()) => Ok(true),
            Err(failure) if failure.is(CUDA_ERROR_NOT_READY) => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// Waits until everything that was ahead of it is done.
    pub(super) fn synchronize(&self) -> Result<(), Failure> {
        let cuda = self.context.bind()?;
        // SAFETY: (1) the context is current; (2) the event is live.
        unsafe { (cuda.cuEventSynchronize)(self.raw) }.check()
    }

    /// Returns the milliseconds from this event to `end`, both timed and recorded; waits for both.
    pub(super) fn elapsed_ms(&self, end: &RawEvent) -> Result<f64, Failure> {
        self.synchronize()?;
        end.synchronize()?;
        let cuda = self.context.bind()?;
        let mut ms = 0.0_f32;
        // SAFETY: (1) the context is current; (2) both events are live; (3) `ms` may be written.
        unsafe { (cuda.cuEventElapsedTime)(&mut ms, self.raw, end.raw) }.check()?;
        if !ms.is_finite() {
            return Err(Failure::odd(format!("the time between the events is {ms} ms")));
        }
        Ok(ms.into())
    }
}

impl Drop for GpuStream {
    fn drop(&mut self) {
        if !self.raw.is_null() && !self.is_lent {
            let _ = self.context.bind();
            // SAFETY: (1) the handle is live and not used again; (2) the driver finishes its work
            // first. An error shows in the next operation.
            let _ = unsafe { (self.context.functions.cuStreamDestroy_v2)(self.raw) };
        }
    }
}

impl Drop for RawEvent {
    fn drop(&mut self) {
        let _ = self.context.bind();
        // SAFETY: as for a stream.
        let _ = unsafe { (self.context.functions.cuEventDestroy_v2)(self.raw) };
    }
}
