//! Streams and events: the order of work, and its time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::Device;
use super::backend::Handle;
use super::recording::{self, Recorder};
use crate::Error;

/// A queue of work on a device, done in order and asynchronously to the host.
///
/// Most programs need the default stream only ([`Device::stream`]). Work on further streams
/// ([`Device::new_stream`]) may run at the same time as work on others; work on the same buffers
/// keeps the order in which the host queued it.
///
/// The emulator has done its work when the call that queues it returns.
#[derive(Debug, Clone)]
pub struct Stream {
    pub(super) device: Device,
    pub(super) queue: Queue,
}

#[derive(Debug, Clone)]
pub(super) enum Queue {
    /// The device's default stream.
    Default,
    Further(Handle),
    /// Another library's stream.
    Lent(Handle),
    /// Nothing runs: launches are recorded.
    Recording(Arc<Recorder>),
}

impl Queue {
    /// Returns the stream as its backend knows it; `None` for the default stream.
    pub(super) fn handle(&self) -> Option<&Handle> {
        match self {
            Queue::Further(handle) | Queue::Lent(handle) => Some(handle),
            Queue::Default | Queue::Recording(_) => None,
        }
    }
}

impl Stream {
    /// The device that does its work.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Waits until everything queued so far is done.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the device fails, or if a kernel queued before has failed.
    pub fn synchronize(&self) -> Result<(), Error> {
        self.must_run("waiting for a stream")?;
        self.device.backend.wait_for_stream(self.queue.handle())
    }

    /// Makes work that is queued from now on wait for an event of another stream.
    ///
    /// Needed only for an order that the buffers do not imply. The stream does not wait for an
    /// event that has not been recorded.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the event is of another device.
    pub fn wait(&self, event: &Event) -> Result<(), Error> {
        self.device.must_be(&event.device, "waiting for an event", "the event")?;
        self.must_run("waiting for an event")?;
        if !event.is_recorded.load(Relaxed) {
            return Ok(());
        }
        self.device.backend.wait_for_event(self.queue.handle(), &event.mark)
    }

    /// True for the stream of a recording, even of one that is over.
    pub(super) fn is_recording(&self) -> bool {
        matches!(self.queue, Queue::Recording(_))
    }

    /// True for another library's stream.
    pub(super) fn is_lent(&self) -> bool {
        matches!(self.queue, Queue::Lent(_))
    }

    /// Returns an error if this is the stream of a recording, or if this thread is recording.
    pub(super) fn must_run(&self, operation: &str) -> Result<(), Error> {
        match self.queue {
            Queue::Recording(_) => Err(recording::records_only(&self.device, operation)),
            _ => recording::refuse(&self.device, operation),
        }
    }
}

/// A point in a stream, with the time at which it was reached. Made by [`Device::event`].
///
/// ```
/// # use linrec::device::Device;
/// let device = Device::simt();
/// let (start, end) = (device.event()?, device.event()?);
/// let mut buffer = device.allocate::<f32>(1000)?;
/// start.record(&device.stream())?;
/// buffer.zero()?;
/// end.record(&device.stream())?;
/// assert!(start.elapsed_ms(&end)? >= 0.0);
/// # Ok::<(), linrec::Error>(())
/// ```
#[derive(Debug)]
pub struct Event {
    device: Device,
    mark: Handle,
    is_recorded: AtomicBool,
}

impl Event {
    pub(super) fn new(device: &Device) -> Result<Event, Error> {
        let mark = device.backend.event()?;
        Ok(Event { device: device.clone(), mark, is_recorded: AtomicBool::new(false) })
    }

    /// Queues the event behind all work that the stream has so far.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the stream is of another device.
    pub fn record(&self, stream: &Stream) -> Result<(), Error> {
        self.device.must_be(&stream.device, "recording an event", "the stream")?;
        stream.must_run("recording an event")?;
        self.device.backend.record(&self.mark, stream.queue.handle())?;
        self.is_recorded.store(true, Relaxed);
        Ok(())
    }

    /// Waits until the work before it is done. Work that was queued behind it may still run.
    /// Returns at once if the event has not been recorded.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the device fails, or if a kernel queued before has failed.
    pub fn synchronize(&self) -> Result<(), Error> {
        recording::refuse(&self.device, "waiting for an event")?;
        self.device.backend.synchronize_event(&self.mark)
    }

    /// Returns the milliseconds from this event to `end`, after waiting until both are reached.
    ///
    /// A GPU measures them with its own clock. On the emulator they are the time of the emulation.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if one of them has not been recorded or is of another device, or if a
    /// kernel queued before has failed.
    pub fn elapsed_ms(&self, end: &Event) -> Result<f64, Error> {
        self.device.must_be(&end.device, "timing", "the second event")?;
        recording::refuse(&self.device, "timing")?;
        for (event, which) in [(self, "first"), (end, "second")] {
            if !event.is_recorded.load(Relaxed) {
                let message = format!("timing: the {which} event has not been recorded");
                return Err(Error::device(self.device.label(), message));
            }
        }
        self.device.backend.elapsed_ms(&self.mark, &end.mark)
    }
}
