//! Graphs of launches, as the driver keeps them.

use std::ffi::c_int;
use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
use cudarc::driver::sys::{CUgraph, CUgraphExec};

use super::code::Failure;
use super::handles::RawStream;
use super::{Gpu, GpuLaunch, GpuMemory, GpuStream};
use crate::Error;
use crate::device::lock::lock;

/// Launches that follow each other, ready to be queued with one call.
///
/// It keeps the GPU; kernels and memory are kept by its owner, until it has been dropped.
#[derive(Debug)]
pub(crate) struct GpuGraph {
    gpu: Arc<Gpu>,
    exec: CUgraphExec,
    /// For messages.
    last_kernel: Option<Arc<str>>,
}

// SAFETY: (1) the driver takes the handle on any thread on which its context is current, and every
// use makes it current; (2) uses must not overlap: a replay holds the lock of the GPU's order, and
// the only other use is `drop`, to which no other is left.
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

    /// Queues the graph on a stream; the `memories` are all that its launches use, and whether one
    /// writes there.
    #[allow(unsafe_code)]
    pub(crate) fn replay(
        &self,
        stream: &GpuStream,
        memories: &[(&GpuMemory, bool)],
    ) -> Result<(), Error> {
        let kernel = self.last_kernel.as_ref();
        self.gpu.queue(stream, "replaying a graph", memories, kernel, |stream| {
            let functions = self.gpu.context.functions;
            // SAFETY: (1) the handle is live, and no other thread uses it now: the order is locked;
            // (2) the context is current, and the stream is of it; (3) the graph's kernels are
            // loaded and its memory is there, as the graph's owner keeps both and gives them back
            // behind this work;
            // (4) for what the kernels do there holds what is said where a launch starts.
            unsafe { (functions.cuGraphLaunch)(self.exec, stream.stream.raw()) }.check()
        })
    }
}

impl Drop for GpuGraph {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        let _ = self.gpu.context.bind();
        // SAFETY: (1) the context is current, or the driver refuses; (2) the handle is live and not
        // used again; (3) a replay that is still under way is finished first: the driver frees the
        // graph behind it.
        let destroyed = unsafe { (self.gpu.context.functions.cuGraphExecDestroy)(self.exec) };
        if let Err(failure) = destroyed.check() {
            self.gpu.notice("giving a graph back", &failure);
        }
    }
}

/// Has the driver write down launches in place of running them.
///
/// The stream is made for this alone and takes no part in the order of work, as nothing ever runs
/// on it. No code of a user runs meanwhile, so that nothing can disturb the capture, and the driver
/// need not look out for what could: the mode is the relaxed one.
#[allow(unsafe_code)]
fn capture(gpu: &Gpu, launches: &[GpuLaunch]) -> Result<CUgraphExec, Failure> {
    let functions = gpu.context.functions;
    let stream = RawStream::new(&gpu.context)?;
    // SAFETY: the stream is live, and its context current on this thread.
    unsafe {
        (functions.cuStreamBeginCapture_v2)(stream.raw(), CU_STREAM_CAPTURE_MODE_RELAXED as c_int)
    }
    .check()?;
    let started = launches.iter().try_for_each(|launch| launch.start(gpu, &stream));
    let mut graph = ptr::null_mut();
    // SAFETY: (1) the stream is live, and this thread began the capture; (2) the capture is ended
    // whether or not all launches were taken; (3) `graph` may be written.
    let ended = unsafe { (functions.cuStreamEndCapture)(stream.raw(), &mut graph) }.check();
    // What it has written is a graph only where it says so.
    let is_graph = ended.is_ok() && !graph.is_null();
    let made = started.and(ended).and_then(|()| instantiate(gpu, graph));
    if is_graph {
        // SAFETY: the graph is live and not used again; what was made of it is independent of it.
        let _ = unsafe { (functions.cuGraphDestroy)(graph) };
    }
    made
}

#[allow(unsafe_code)]
fn instantiate(gpu: &Gpu, graph: CUgraph) -> Result<CUgraphExec, Failure> {
    if graph.is_null() {
        return Err(Failure::odd("the graph is null"));
    }
    let mut exec = ptr::null_mut();
    // SAFETY: (1) the graph is live, and no other thread knows it; (2) `exec` may be written; (3)
    // no flags are asked for.
    unsafe { (gpu.context.functions.cuGraphInstantiateWithFlags)(&mut exec, graph, 0) }.check()?;
    if exec.is_null() { Err(Failure::odd("the graph is null")) } else { Ok(exec) }
}
