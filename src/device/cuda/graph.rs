//! Graphs of launches, as the driver keeps them.

use std::sync::Arc;

use cudarc::driver::sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
use cudarc::driver::sys::{self, CUgraphInstantiate_flags};
use cudarc::driver::{CudaStream, DriverError, result};

use super::{Gpu, GpuLaunch, GpuMemory, GpuStream};
use crate::Error;
use crate::device::lock;

/// Launches that follow each other, ready to be queued with one call.
///
/// It keeps the GPU; kernels and memory are kept by its owner, until it has been dropped.
#[derive(Debug)]
pub(crate) struct GpuGraph {
    gpu: Arc<Gpu>,
    exec: sys::CUgraphExec,
    /// For messages.
    last_kernel: Option<Arc<str>>,
}

// SAFETY: (1) the driver takes the handle on any thread on which its context is current, and every use
// makes it current; (2) uses must not overlap: a replay holds the lock of the GPU's order, and the only
// other use is `drop`, to which no other is left.
#[allow(unsafe_code)]
unsafe impl Send for GpuGraph {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Sync for GpuGraph {}

impl GpuGraph {
    /// A graph of these launches, one after the other. None of them runs.
    pub(crate) fn new(gpu: &Arc<Gpu>, launches: &[GpuLaunch]) -> Result<GpuGraph, Error> {
        // Whatever else the driver has to be asked for comes before the capture.
        for launch in launches {
            launch.kernel.allow_shared(gpu, launch.shared_bytes)?;
        }
        let exec = {
            let _order = lock(&gpu.order);
            capture(gpu, launches)
        };
        let exec = gpu.check("making a graph", exec)?;
        let last_kernel = launches.last().map(|launch| launch.kernel.name.clone());
        Ok(GpuGraph { gpu: gpu.clone(), exec, last_kernel })
    }

    /// Queues the graph on a stream; the `memories` are all that its launches use, and whether one writes
    /// there.
    #[allow(unsafe_code)]
    pub(crate) fn replay(
        &self,
        stream: &GpuStream,
        memories: &[(&GpuMemory, bool)],
    ) -> Result<(), Error> {
        let kernel = self.last_kernel.as_ref();
        self.gpu.queue(stream, "replaying a graph", memories, kernel, |stream| {
            // SAFETY: (1) the handle is live, and no other thread uses it now: the order is locked; (2) the
            // context is current, and the stream is of it; (3) the graph's kernels are loaded and its
            // memory is there, as the graph's owner keeps both and gives them back behind this work;
            // (4) for what the kernels do there holds what is said where a launch starts.
            unsafe { result::graph::launch(self.exec, stream.stream.cu_stream()) }
        })
    }
}

impl Drop for GpuGraph {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        let context = &self.gpu.context;
        // An old error that cudarc kept for the next caller must not keep this from being done.
        let bound = context.bind_to_thread().or_else(|_| context.bind_to_thread());
        // SAFETY: (1) the context is current; (2) the handle is live and not used again; (3) a replay that
        // is still under way is finished first: the driver frees the graph behind it.
        let destroyed = bound.and_then(|()| unsafe { result::graph::exec_destroy(self.exec) });
        if let Err(error) = destroyed {
            self.gpu.notice(error);
        }
    }
}

/// Has the driver write down launches in place of running them.
///
/// The stream is made for this alone and takes no part in the order of work, as nothing ever runs on it. No
/// code of a user runs meanwhile, so that nothing can disturb the capture, and the driver need not look out for
/// what could: the mode is the relaxed one.
#[allow(unsafe_code)]
fn capture(gpu: &Gpu, launches: &[GpuLaunch]) -> Result<sys::CUgraphExec, DriverError> {
    let stream: Arc<CudaStream> = gpu.context.new_stream()?;
    stream.begin_capture(CU_STREAM_CAPTURE_MODE_RELAXED)?;
    let started = launches.iter().try_for_each(|launch| launch.start(&stream));
    // SAFETY: (1) the stream is live, and its context current on this thread, which began the capture;
    // (2) the capture is ended whether or not all launches were taken.
    let graph = unsafe { result::stream::end_capture(stream.cu_stream()) };
    let graph = match (started, graph) {
        (Ok(()), graph) => graph?,
        (Err(error), Ok(graph)) if !graph.is_null() => {
            // SAFETY: the graph is live and not used again.
            let _ = unsafe { result::graph::destroy(graph) };
            return Err(error);
        }
        (Err(error), _) => return Err(error),
    };
    // SAFETY: (1) the graph is live, and no other thread knows it; (2) what is made of it is independent of it,
    // so that it is destroyed here, once.
    unsafe {
        let exec = result::graph::instantiate(graph, CUgraphInstantiate_flags(0));
        let _ = result::graph::destroy(graph);
        exec
    }
}
