//! Graphs: launches that are written down once and repeated with one call.

use std::sync::Arc;

use super::backend::Handle;
use super::buffer::Allocation;
use super::launch::Recorded;
use super::recording::UnderWay;
use super::stream::Queue;
use super::{Device, Launched, Stream};
use crate::Error;
use crate::simt::Counters;

/// Launches that were recorded once, to be replayed with one call. Made by [`Device::record`].
///
/// Queueing a launch costs the host some microseconds, more than a small kernel takes; queueing a
/// graph of twenty costs about as much as one. A replay does exactly what the launches would: the
/// same kernels with the same numbers, at the same addresses, in the order of their recording, over
/// what the buffers hold by then.
///
/// A graph keeps all that it needs: its kernels stay loaded, and the memory of its buffers is freed
/// when both the last handle and the graph have been dropped. On the emulator a replay runs the
/// launches one after the other.
#[derive(Debug)]
pub struct Graph {
    /// The graph as its backend prepared it. Before what it needs, so that it is dropped first;
    /// `None` if the launches are queued one by one, or if there are none.
    prepared: Option<Handle>,
    device: Device,
    launches: Vec<Recorded>,
    /// Every memory once, and whether it is written.
    memories: Vec<(Arc<Allocation>, bool)>,
}

impl Device {
    /// Records the launches that `body` queues on the stream it is given; none of them runs.
    ///
    /// Inside of `body` everything that a graph does not repeat is an error: launches on other
    /// streams (set [`ForwardOptions::stream`](super::ForwardOptions) to the recording's), copies
    /// between host and device, filling buffers, waiting, events, replays and further recordings.
    /// Making buffers and loading kernels are allowed.
    ///
    /// ```
    /// use linrec::device::{Choice, Device, ForwardOptions, Recurrence};
    ///
    /// let device = Device::auto()?;
    /// let recurrence = Recurrence::<f32>::new(&device, Choice::Fastest)?;
    /// let mut inputs = device.upload(&[1.0_f32, 1.0, 1.0])?;
    /// let coeffs = device.upload(&[1.0_f32, 1.0, 1.0])?;
    /// let (mut sums, mut sums_of_sums) = (device.allocate(3)?, device.allocate(3)?);
    ///
    /// let graph = device.record(|stream| {
    ///     let options = || ForwardOptions { stream: Some(stream), ..ForwardOptions::default() };
    ///     recurrence.forward_into(&inputs, &coeffs, &mut sums, (1, 3), options())?;
    ///     recurrence.forward_into(&sums, &coeffs, &mut sums_of_sums, (1, 3), options())?;
    ///     Ok(())
    /// })?;
    ///
    /// graph.replay(&device.stream())?;
    /// assert_eq!(sums_of_sums.download()?, [1.0, 3.0, 6.0]);
    /// inputs.upload(&[0.0, 2.0, 0.0])?;
    /// graph.replay(&device.stream())?;
    /// assert_eq!(sums_of_sums.download()?, [0.0, 2.0, 4.0]);
    /// # Ok::<(), linrec::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of `body`; [`Error::Device`] inside of another recording, or if the device fails.
    pub fn record(&self, body: impl FnOnce(&Stream) -> Result<(), Error>) -> Result<Graph, Error> {
        let under_way = UnderWay::begin(self)?;
        let queue = Queue::Recording(under_way.recorder.clone());
        body(&Stream { device: self.clone(), queue })?;
        let launches = under_way.recorder.finish();
        Graph::new(self, launches)
    }
}

impl Graph {
    fn new(device: &Device, launches: Vec<Recorded>) -> Result<Graph, Error> {
        let mut memories: Vec<(Arc<Allocation>, bool)> = Vec::new();
        for (memory, write) in launches.iter().flat_map(Recorded::memories) {
            match memories.iter_mut().find(|(known, _)| Arc::ptr_eq(known, memory)) {
                Some((_, writes)) => *writes |= write,
                None => memories.push((memory.clone(), write)),
            }
        }
        let prepared = match launches.is_empty() {
            true => None,
            false => device.backend.clone().graph(&launches)?,
        };
        Ok(Graph { prepared, device: device.clone(), launches, memories })
    }

    /// The number of launches.
    pub fn len(&self) -> usize {
        self.launches.len()
    }

    /// True if there are no launches.
    pub fn is_empty(&self) -> bool {
        self.launches.is_empty()
    }

    /// The device that it runs on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Queues all launches on a stream, asynchronously; on the emulator they have run when this
    /// returns, and [`Launched::counters`] is their sum.
    ///
    /// Replays of one graph never overlap, whatever their streams.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the stream is of another device, if launches are being recorded, or if
    /// the device fails; [`Error::Kernel`] with what the emulator found, and then the launches
    /// behind that one have not run.
    pub fn replay(&self, stream: &Stream) -> Result<Launched, Error> {
        self.device.must_be(&stream.device, "replaying a graph", "the stream")?;
        stream.must_run("replaying a graph")?;
        if let Some(graph) = &self.prepared {
            self.device.backend.replay(graph, stream.queue.handle(), &self.memories)?;
        }
        if !self.device.is_simt() {
            return Ok(Launched::new(None));
        }
        let mut sum = Counters::default();
        for launch in &self.launches {
            if let Some(counters) = launch.launch().run(stream)?.counters() {
                sum += counters;
            }
        }
        Ok(Launched::new(Some(sum)))
    }
}
