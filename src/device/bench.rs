//! Timing of single launches, from cold caches.

use super::{Buffer, Device, Event, Stream};
use crate::Error;

/// A stopwatch for single launches.
///
/// Before every measurement it overwrites twice as many bytes as the device's last cache holds, so
/// that inputs come from memory. Then two events time the work on the device's own clock. To
/// compare several ways of doing the same, measure them in turns and take medians: clocks and
/// temperature drift.
///
/// ```
/// # use linrec::device::{Bench, Device};
/// let device = Device::simt();
/// let mut buffer = device.allocate::<f32>(1000)?;
/// let mut bench = Bench::new(&device)?;
/// let ms = bench.time_ms(|_stream| buffer.zero())?;
/// assert!(ms >= 0.0);
/// # Ok::<(), linrec::Error>(())
/// ```
#[derive(Debug)]
pub struct Bench {
    stream: Stream,
    scrub: Option<Buffer<u32>>,
    start: Event,
    end: Event,
}

impl Bench {
    /// Makes a stopwatch for a device's default stream.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if there is not enough memory for overwriting the caches.
    pub fn new(device: &Device) -> Result<Bench, Error> {
        let floats = device.attributes().l2_bytes.map(|bytes| bytes as usize / 2);
        let scrub = floats.map(|floats| device.allocate_named("scrub", floats)).transpose()?;
        let (start, end) = (device.event()?, device.event()?);
        Ok(Bench { stream: device.stream(), scrub, start, end })
    }

    /// Returns the milliseconds that work takes, which `queue` queues on the stream.
    ///
    /// # Errors
    ///
    /// The errors of `queue`, and [`Error::Device`] if the device fails.
    pub fn time_ms(
        &mut self,
        queue: impl FnOnce(&Stream) -> Result<(), Error>,
    ) -> Result<f64, Error> {
        if let Some(scrub) = &mut self.scrub {
            scrub.zero()?;
        }
        self.start.record(&self.stream)?;
        queue(&self.stream)?;
        self.end.record(&self.stream)?;
        self.start.elapsed_ms(&self.end)
    }
}
