//! Streams and events: the order of work, and its time.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::cuda::{GpuEvent, GpuStream};
use super::lock::lock;
use super::recording::{self, Recorder};
use super::{Backend, Device};
use crate::Error;

/// A queue of work on a device, done in order and asynchronously to the host.
///
/// Most programs need [`Device::stream`] only, the one that is always there. Work on further
/// streams ([`Device::new_stream`]) may run at the same time as that of others; where it touches
/// the same buffers, it keeps the order in which the host queued it.
///
/// The emulator has done its work when the call that queues it returns.
#[derive(Debug, Clone)]
pub struct Stream {
    pub(super) device: Device,
    pub(super) queue: Queue,
}

#[derive(Debug, Clone)]
pub(super) enum Queue {
    Cuda(GpuStream),
    Simt,
    /// Nothing runs: launches are taken down.
    Recording(Arc<Recorder>),
}

impl Stream {
    /// The device that it works for.
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
        match (&self.device.backend, &self.queue) {
            (Backend::Cuda(gpu), Queue::Cuda(stream)) => gpu.wait_for_stream(stream),
            _ => Ok(()),
        }
    }

    /// Lets what is queued from now on wait for an event of another stream.
    ///
    /// Needed only for an order that the buffers do not imply. An event that has not been recorded
    /// is not waited for.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the event is of another device.
    pub fn wait(&self, event: &Event) -> Result<(), Error> {
        self.device.must_be(&event.device, "waiting for an event", "the event")?;
        self.must_run("waiting for an event")?;
        match (&self.device.backend, &self.queue, &event.mark) {
            (Backend::Cuda(gpu), Queue::Cuda(stream), Mark::Cuda { event, recorded })
                if recorded.load(Relaxed) =>
            {
                gpu.wait_for_event(stream, event)
            }
            _ => Ok(()),
        }
    }

    /// Whether it is the stream of a recording, over or not.
    pub(super) fn is_recording(&self) -> bool {
        matches!(self.queue, Queue::Recording(_))
    }

    /// Whether it is somebody else's.
    pub(super) fn is_lent(&self) -> bool {
        matches!(&self.queue, Queue::Cuda(stream) if stream.is_lent())
    }

    /// An error if this is the stream of a recording, or if this thread is recording.
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
    mark: Mark,
}

#[derive(Debug)]
enum Mark {
    Cuda { event: GpuEvent, recorded: AtomicBool },
    Simt(Mutex<Option<Instant>>),
}

impl Event {
    pub(super) fn new(device: &Device) -> Result<Event, Error> {
        let mark = match &device.backend {
            Backend::Cuda(gpu) => {
                Mark::Cuda { event: gpu.event()?, recorded: AtomicBool::new(false) }
            }
            Backend::Simt(_) => Mark::Simt(Mutex::new(None)),
        };
        Ok(Event { device: device.clone(), mark })
    }

    /// Queues the event behind all work that the stream has so far.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the stream is of another device.
    pub fn record(&self, stream: &Stream) -> Result<(), Error> {
        self.device.must_be(&stream.device, "recording an event", "the stream")?;
        stream.must_run("recording an event")?;
        match (&self.mark, &self.device.backend, &stream.queue) {
            (Mark::Cuda { event, recorded }, Backend::Cuda(gpu), Queue::Cuda(stream)) => {
                gpu.record(event, stream)?;
                recorded.store(true, Relaxed);
            }
            (Mark::Simt(time), ..) => *lock(time) = Some(Instant::now()),
            _ => {}
        }
        Ok(())
    }

    /// The milliseconds from this event to `end`; waits until both have been reached.
    ///
    /// On a GPU this is the device's own clock, on the emulator the time that the emulation took.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if one of them has not been recorded or is of another device, or if a
    /// kernel queued before has failed.
    pub fn elapsed_ms(&self, end: &Event) -> Result<f64, Error> {
        self.device.must_be(&end.device, "timing", "the second event")?;
        recording::refuse(&self.device, "timing")?;
        let unrecorded = |which| {
            let message = format!("timing: the {which} event has not been recorded");
            Err(Error::device(self.device.label(), message))
        };
        match (&self.mark, &end.mark, &self.device.backend) {
            (
                Mark::Cuda { event: start, recorded: started },
                Mark::Cuda { event: end, recorded: ended },
                Backend::Cuda(gpu),
            ) => {
                if !started.load(Relaxed) {
                    return unrecorded("first");
                }
                if !ended.load(Relaxed) {
                    return unrecorded("second");
                }
                gpu.elapsed_ms(start, end)
            }
            (Mark::Simt(start), Mark::Simt(end), _) => match (*lock(start), *lock(end)) {
                (None, _) => unrecorded("first"),
                (_, None) => unrecorded("second"),
                (Some(start), Some(end)) if end >= start => Ok((end - start).as_secs_f64() * 1e3),
                (Some(start), Some(end)) => Ok(-(start - end).as_secs_f64() * 1e3),
            },
            _ => unrecorded("first"),
        }
    }
}
