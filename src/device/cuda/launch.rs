//! Work is queued here, launches and all else.

use std::sync::Arc;

use cudarc::driver::{CudaStream, DriverError, LaunchConfig, PushKernelArg};

use super::{Gpu, GpuKernel, GpuMemory, GpuStream};
use crate::Error;
use crate::device::lock;

/// A parameter's value as a kernel sees it: up to 16 bytes, from the lowest on.
pub(crate) type Value = [u64; 2];

/// A launch that has been checked: grid, block and shared memory are within their limits, and there
/// are as many values as parameters, of their sizes.
pub(crate) struct GpuLaunch<'a> {
    pub(crate) kernel: &'a GpuKernel,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared_bytes: u32,
    pub(crate) values: Vec<Value>,
}

impl Gpu {
    /// Queues `work` on a stream behind everything that it must not overtake on the `memories`; the
    /// flag says of each whether it is written.
    pub(super) fn queue(
        &self,
        stream: &GpuStream,
        operation: &str,
        memories: &[(&GpuMemory, bool)],
        kernel: Option<&Arc<str>>,
        work: impl FnOnce(&GpuStream) -> Result<(), DriverError>,
    ) -> Result<(), Error> {
        let queued = {
            let mut order = lock(&self.order);
            if kernel.is_some() {
                order.last_kernel = kernel.cloned();
            }
            if order.is_needed() {
                self.queue_in_order(stream, memories, work)
            } else {
                self.context.bind_to_thread().and_then(|()| work(stream))
            }
        };
        self.check(operation, queued)
    }

    fn queue_in_order(
        &self,
        stream: &GpuStream,
        memories: &[(&GpuMemory, bool)],
        work: impl FnOnce(&GpuStream) -> Result<(), DriverError>,
    ) -> Result<(), DriverError> {
        self.context.bind_to_thread()?;
        for (memory, write) in memories {
            lock(&memory.uses).wait(stream, *write)?;
        }
        work(stream)?;
        match stream.stream.record_event(None) {
            Ok(event) => {
                let event = Arc::new(event);
                for (memory, write) in memories {
                    lock(&memory.uses).note(stream, *write, event.clone());
                }
                Ok(())
            }
            // Without an event to wait for later, wait now.
            Err(error) => stream.stream.synchronize().and(Err(error)),
        }
    }

    /// Queues a launch on a stream. The `memories` are what its values point to, and whether the
    /// kernel writes there.
    pub(crate) fn launch(
        &self,
        stream: &GpuStream,
        launch: &GpuLaunch,
        memories: &[(&GpuMemory, bool)],
    ) -> Result<(), Error> {
        let GpuLaunch { kernel, shared_bytes, .. } = launch;
        kernel.allow_shared(self, *shared_bytes)?;
        let operation = format!("launching `{}`", kernel.name);
        self.queue(stream, &operation, memories, Some(&kernel.name), |stream| {
            launch.start(&stream.stream)
        })
    }
}

impl GpuLaunch<'_> {
    /// Gives the launch to the driver. Whoever calls this sees to it that what the values point to lives
    /// until the kernel is done, and that the shared memory is allowed.
    #[allow(unsafe_code)]
    pub(super) fn start(&self, stream: &Arc<CudaStream>) -> Result<(), DriverError> {
        let config = LaunchConfig {
            grid_dim: self.grid.into(),
            block_dim: self.block.into(),
            shared_mem_bytes: self.shared_bytes,
        };
        let mut launch = stream.launch_builder(&self.kernel.function);
        for value in &self.values {
            launch.arg(value);
        }
        // SAFETY: (1) the function is of a module of this context that `kernel` keeps loaded; (2) the
        // driver reads as many values as the kernel has parameters, and of each no more bytes than it
        // has: both were checked against the PTX, and a value has 16; (3) the memories are of this
        // context and given back only behind this work: `queue` sees to it for a launch, and `GpuGraph`
        // for a replay; (4) they hold plain numbers, of which any bytes are valid, and the host has no
        // reference into them; (5) what a kernel does beyond them is in `device`'s section on safety.
        unsafe { launch.launch(config) }.map(drop)
    }
}
