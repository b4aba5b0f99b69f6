//! Graphs of launches, as the driver keeps them.

use std::sync::Arc;

use super::Gpu;
use super::error::Failure;
use super::handles::GpuStream;
use super::launch::GpuLaunch;
use super::memory::GpuMemory;
use super::sys::{CU_STREAM_CAPTURE_MODE_RELAXED, CUgraph, CUgraphExec};
use crate::Error;
use crate::device::lock::lock;

/// Launches that follow each other, ready to be queued with one call.
///
/// It keeps the GPU. Its owner keeps kernels and memory until it has been dropped.
#[derive(Debug)]
pub(super) struct GpuGraph {
    gpu: Arc<Gpu>,
    exec: CUgraphExec,
    /// For messages.
    last_kernel: Option<Arc<str>>,
}

impl GpuGraph {
    /// Makes a graph of these launches, one after the other. None of them runs.
    pub(super) fn new(gpu: &Arc<Gpu>, launches: &[GpuLaunch]) -> Result<GpuGraph, Error> {
        // All other calls of the driver come before the capture.
        for launch in launches {
            launch.kernel.allow_shared(gpu, launch.spec.shared_bytes)?;
        }
        let exec = {
            let _order = lock(&gpu.order);
            capture(gpu, launches)
        };
        let exec = gpu.check("making a graph", exec)?;
        let last_kernel = launches.last().map(|launch| launch.kernel.name.clone());
        Ok(GpuGraph { gpu: gpu.clone(), exec, last_kernel })
    }

    /// Queues the graph on a stream. The `memories` are all that its launches use, and whether one
    /// writes there.
    pub(super) fn replay(
        &self,
        stream: &GpuStream,
        memories: &[(&GpuMemory, bool)],
    ) -> Result<(), Error> {
        let kernel = self.last_kernel.as_ref();
        self.gpu.queue(stream, "replaying a graph", memories, kernel, |stream| {
            let functions = self.gpu.context.functions;
            // SAFETY: (1) the handle is live, and no other thread uses it now: the order is locked;
            // (2) the context is current, and the stream is of it; (3) the graph's kernels are
            // loaded and its memory is allocated, because the graph's owner keeps both and frees
            // them behind this work; (4) the kernels are as safe as where a launch starts.
            unsafe { (functions.cuGraphLaunch)(self.exec, stream.raw) }.check()
        })
    }
}

impl Drop for GpuGraph {
    fn drop(&mut self) {
        let _ = self.gpu.context.bind();
        // SAFETY: (1) the context is current, or the driver refuses; (2) the handle is live and not
        // used again; (3) the driver frees the graph behind a replay that is still under way.
        let destroyed = unsafe { (self.gpu.context.functions.cuGraphExecDestroy)(self.exec) };
        if let Err(failure) = destroyed.check() {
            self.gpu.notice("giving a graph back", &failure);
        }
    }
}

/// Has the driver record launches in place of running them.
///
/// The stream is made for this alone and takes no part in the order of work, since nothing ever
/// runs on it. No code of a user runs meanwhile, so that nothing can disturb the capture, and the
/// driver need not check for disturbances: the mode is the relaxed one.
fn capture(gpu: &Gpu, launches: &[GpuLaunch]) -> Result<CUgraphExec, Failure> {
    let functions = gpu.context.functions;
    let stream = GpuStream::new(&gpu.context, u64::MAX)?;
    // SAFETY: the stream is live, and its context current on this thread.
    unsafe { (functions.cuStreamBeginCapture_v2)(stream.raw, CU_STREAM_CAPTURE_MODE_RELAXED) }
        .check()?;
    let started = launches.iter().try_for_each(|launch| launch.start(gpu, &stream));
    let mut graph = CUgraph::NULL;
    // SAFETY: (1) the stream is live, and this thread began the capture; (2) the capture is ended
    // whether or not all launches were taken; (3) `graph` may be written.
    let ended = unsafe { (functions.cuStreamEndCapture)(stream.raw, &mut graph) }.check();
    // It has written a graph only if it returned success.
    let is_graph = ended.is_ok() && !graph.is_null();
    let made = started.and(ended).and_then(|()| instantiate(gpu, graph));
    if is_graph {
        // SAFETY: the graph is live and not used again; the executable graph does not depend on it.
        let _ = unsafe { (functions.cuGraphDestroy)(graph) };
    }
    made
}

fn instantiate(gpu: &Gpu, graph: CUgraph) -> Result<CUgraphExec, Failure> {
    if graph.is_null() {
        return Err(Failure::odd("the graph is null"));
    }
    let mut exec = CUgraphExec::NULL;
    // SAFETY: (1) the graph is live, and no other thread knows it; (2) `exec` may be written; (3)
    // no flags are passed.
    unsafe { (gpu.context.functions.cuGraphInstantiateWithFlags)(&mut exec, graph, 0) }.check()?;
    if exec.is_null() { Err(Failure::odd("the graph is null")) } else { Ok(exec) }
}
