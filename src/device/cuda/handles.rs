//! Streams and events, as the driver has them: given back when they are dropped.

use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::CUevent_flags::{CU_EVENT_DEFAULT, CU_EVENT_DISABLE_TIMING};
use cudarc::driver::sys::CUresult::CUDA_ERROR_NOT_READY;
use cudarc::driver::sys::CUstream_flags::CU_STREAM_NON_BLOCKING;
use cudarc::driver::sys::{CUevent, CUstream};

use super::code::Failure;
use super::context::Context;

/// A queue of work.
#[derive(Debug)]
pub(super) struct RawStream {
    context: Arc<Context>,
    /// Null for the one that is there from the beginning.
    raw: CUstream,
    /// Whether somebody else made it, who destroys it, too.
    is_lent: bool,
}

/// A point in a stream.
#[derive(Debug)]
pub(super) struct RawEvent {
    context: Arc<Context>,
    raw: CUevent,
}

// SAFETY: (1) the driver takes both handles on any thread on which their context is current, and
// every use makes it current; (2) what several threads do with one at a time, the driver orders.
#[allow(unsafe_code)]
unsafe impl Send for RawStream {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Sync for RawStream {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Send for RawEvent {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Sync for RawEvent {}

impl RawStream {
    /// The stream that is there from the beginning.
    pub(super) fn home(context: Arc<Context>) -> RawStream {
        RawStream { context, raw: ptr::null_mut(), is_lent: false }
    }

    /// One that somebody else has made, in the same context; it outlives this.
    pub(super) fn lent(context: Arc<Context>, raw: CUstream) -> RawStream {
        RawStream { context, raw, is_lent: true }
    }

    /// A further stream, which waits for no other by itself.
    #[allow(unsafe_code)]
    pub(super) fn new(context: &Arc<Context>) -> Result<RawStream, Failure> {
        context.bind()?;
        let mut raw = ptr::null_mut();
        // SAFETY: (1) the context is current; (2) `raw` may be written.
        unsafe { (context.functions.cuStreamCreate)(&mut raw, CU_STREAM_NON_BLOCKING as u32) }
            .check()?;
        if raw.is_null() {
            return Err(Failure::odd("the stream is null"));
        }
        Ok(RawStream { context: context.clone(), raw, is_lent: false })
    }

    pub(super) fn is_lent(&self) -> bool {
        self.is_lent
    }

    /// The handle; it lives as long as this.
    pub(super) fn raw(&self) -> CUstream {
        self.raw
    }

    /// Waits for all work queued so far.
    #[allow(unsafe_code)]
    pub(super) fn synchronize(&self) -> Result<(), Failure> {
        self.context.bind()?;
        // SAFETY: (1) the context is current; (2) the stream is live.
        unsafe { (self.context.functions.cuStreamSynchronize)(self.raw) }.check()
    }

    /// Lets what is queued from now on wait for an event, which is of the same context.
    #[allow(unsafe_code)]
    pub(super) fn wait(&self, event: &RawEvent) -> Result<(), Failure> {
        self.context.bind()?;
        // SAFETY: (1) the context is current; (2) stream and event are live; (3) no flags are asked
        // for.
        unsafe { (self.context.functions.cuStreamWaitEvent)(self.raw, event.raw, 0) }.check()
    }
}

impl RawEvent {
    /// An event; without `timed` it is for order alone, and cheaper.
    #[allow(unsafe_code)]
    pub(super) fn new(context: &Arc<Context>, timed: bool) -> Result<RawEvent, Failure> {
        context.bind()?;
        let flags = if timed { CU_EVENT_DEFAULT } else { CU_EVENT_DISABLE_TIMING };
        let mut raw = ptr::null_mut();
        // SAFETY: (1) the context is current; (2) `raw` may be written.
        unsafe { (context.functions.cuEventCreate)(&mut raw, flags as u32) }.check()?;
        if raw.is_null() {
            return Err(Failure::odd("the event is null"));
        }
        Ok(RawEvent { context: context.clone(), raw })
    }

    /// Puts it behind all work that a stream of the same context has so far.
    #[allow(unsafe_code)]
    pub(super) fn record(&self, stream: &RawStream) -> Result<(), Failure> {
        self.context.bind()?;
        // SAFETY: (1) the context is current; (2) stream and event are live.
        unsafe { (self.context.functions.cuEventRecord)(self.raw, stream.raw) }.check()
    }

    /// Whether everything that was ahead of it is done; nobody waits.
    #[allow(unsafe_code)]
    pub(super) fn is_reached(&self) -> Result<bool, Failure> {
        self.context.bind()?;
        let missing = || Failure::odd("it has no cuEventQuery");
        let query = self.context.functions.cuEventQuery.ok_or_else(missing)?;
        // SAFETY: (1) the context is current; (2) the event is live.
        match unsafe { query(self.raw) }.check() {
            Ok(()) => Ok(true),
            Err(failure) if failure.is(CUDA_ERROR_NOT_READY) => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// The milliseconds from this event to `end`, both timed and recorded; waits for both.
    #[allow(unsafe_code)]
    pub(super) fn elapsed_ms(&self, end: &RawEvent) -> Result<f64, Failure> {
        self.context.bind()?;
        let functions = self.context.functions;
        let mut ms = 0.0_f32;
        // SAFETY: (1) the context is current; (2) both events are live; (3) `ms` may be written.
        unsafe {
            (functions.cuEventSynchronize)(self.raw).check()?;
            (functions.cuEventSynchronize)(end.raw).check()?;
            (functions.cuEventElapsedTime)(&mut ms, self.raw, end.raw).check()?;
        }
        if !ms.is_finite() {
            return Err(Failure::odd(format!("the time between the events is {ms} ms")));
        }
        Ok(ms.into())
    }
}

impl Drop for RawStream {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        if !self.raw.is_null() && !self.is_lent {
            let _ = self.context.bind();
            // SAFETY: (1) the handle is live and not used again; (2) work that is still under way
            // is finished first. An error shows in what is done next.
            let _ = unsafe { (self.context.functions.cuStreamDestroy_v2)(self.raw) };
        }
    }
}

impl Drop for RawEvent {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        let _ = self.context.bind();
        // SAFETY: as for a stream.
        let _ = unsafe { (self.context.functions.cuEventDestroy_v2)(self.raw) };
    }
}
