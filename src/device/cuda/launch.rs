//! The queueing of work: launches and everything else.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use super::Gpu;
use super::error::Failure;
use super::handles::{GpuStream, RawEvent};
use super::memory::GpuMemory;
use super::module::GpuKernel;
use crate::Error;
use crate::device::launch::Spec;
use crate::device::lock::lock;
use crate::device::signature::Packed;
use crate::simt::Param;

/// A launch that has been checked: grid, block and shared memory are within their limits, and the
/// arguments have the number and the sizes of the parameters.
pub(super) struct GpuLaunch<'a> {
    pub(super) kernel: &'a GpuKernel,
    pub(super) spec: &'a Spec,
    packed: Packed,
}

impl<'a> GpuLaunch<'a> {
    pub(super) fn new(kernel: &'a GpuKernel, params: &[Param], spec: &'a Spec) -> GpuLaunch<'a> {
        let packed = Packed::new(params, &spec.values(), kernel.spare_bytes);
        GpuLaunch { kernel, spec, packed }
    }
}

impl Gpu {
    /// Queues `work` on a stream behind everything that it must not overtake on the `memories`; a
    /// flag is true if the memory is written. The lender of a lent stream orders the work on it.
    pub(super) fn queue(
        &self,
        stream: &GpuStream,
        operation: &str,
        memories: &[(&GpuMemory, bool)],
        kernel: Option<&Arc<str>>,
        work: impl FnOnce(&GpuStream) -> Result<(), Failure>,
    ) -> Result<(), Error> {
        let queued = {
            let mut order = lock(&self.order);
            if kernel.is_some() {
                order.last_kernel = kernel.cloned();
            }
            if order.is_needed() && !stream.is_lent {
                self.queue_in_order(stream, memories, work)
            } else {
                self.context.bind().and_then(|_| work(stream))
            }
        };
        self.check(operation, queued)
    }

    fn queue_in_order(
        &self,
        stream: &GpuStream,
        memories: &[(&GpuMemory, bool)],
        work: impl FnOnce(&GpuStream) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.context.bind()?;
        for (memory, write) in memories {
            lock(&memory.uses).wait(stream, *write)?;
        }
        // Made before the work is queued, so that only recording it can fail afterwards.
        let event = RawEvent::new(&self.context, false)?;
        let queued = work(stream);
        let noted = queued.and_then(|()| event.record(stream));
        if let Err(failure) = noted {
            // Work may be under way with no event to wait for later: wait now.
            if stream.synchronize().is_err() {
                for (memory, _) in memories {
                    lock(&memory.uses).unknown = true;
                }
            }
            return Err(failure);
        }
        let event = Arc::new(event);
        for (memory, write) in memories {
            lock(&memory.uses).note(stream, *write, event.clone());
        }
        Ok(())
    }

    /// Queues a launch on a stream. The `memories` are those that its parameters point to, and
    /// whether the kernel writes there.
    pub(super) fn queue_launch(
        &self,
        stream: &GpuStream,
        launch: &GpuLaunch,
        memories: &[(&GpuMemory, bool)],
    ) -> Result<(), Error> {
        let GpuLaunch { kernel, spec, .. } = launch;
        kernel.allow_shared(self, spec.shared_bytes)?;
        let operation = format!("launching `{}`", kernel.name);
        self.queue(stream, &operation, memories, Some(&kernel.name), |stream| {
            launch.start(self, stream)
        })
    }
}

impl GpuLaunch<'_> {
    /// Gives the launch to the driver. The caller ensures that what the parameters point to lives
    /// until the kernel is done, and that the shared memory is allowed.
    pub(super) fn start(&self, gpu: &Gpu, stream: &GpuStream) -> Result<(), Failure> {
        gpu.context.bind()?;
        let Spec { grid, block, shared_bytes, .. } = *self.spec;
        let ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]) = (grid, block);
        let pointer = |param: &[u8]| param.as_ptr().cast_mut().cast::<c_void>();
        let mut params: Vec<*mut c_void> = self.packed.params().map(pointer).collect();
        // SAFETY: (1) the context is current, and the function is of a module of it that `kernel`
        // keeps loaded; (2) there are as many pointers as the kernel has parameters, and each
        // is followed by enough bytes of the block that the driver reads nothing else
        // (`GpuKernel::spare_bytes`); it copies them before it returns, and writes to none; (3) the
        // memories are of this context and freed only behind this work: `queue` ensures it for a
        // launch, and `GpuGraph` for a replay, and the lender of memory or a stream has promised
        // it; (4) they hold plain numbers, of which any bytes are valid, and the host has no
        // reference into them; (5) the section on safety in `device` says what a kernel may do
        // beyond them; (6) both functions take the same, except for options, and none are passed.
        let launched = unsafe {
            let (cuda, function) = (gpu.context.functions, self.kernel.raw);
            let (stream, params) = (stream.raw, params.as_mut_ptr());
            if self.spec.cooperative {
                (cuda.cuLaunchCooperativeKernel)(
                    function,
                    grid_x,
                    grid_y,
                    grid_z,
                    block_x,
                    block_y,
                    block_z,
                    shared_bytes,
                    stream,
                    params,
                )
            } else {
                (cuda.cuLaunchKernel)(
                    function,
                    grid_x,
                    grid_y,
                    grid_z,
                    block_x,
                    block_y,
                    block_z,
                    shared_bytes,
                    stream,
                    params,
                    ptr::null_mut(),
                )
            }
        };
        launched.check()
    }
}

#[cfg(feature = "contract")]
#[cfg(test)]
mod tests {
    use std::any::Any;

    use super::*;
    use crate::device::backend::{Backend, read};
    use crate::device::{Buffer, Device, under_test};

    const SECRET: u64 = 0x5ec2_e75e_c2e7_5ec2;

    /// Whatever goes wrong before: behind a parameter whose size was mistaken are zeros, and
    /// nothing else.
    #[test]
    fn a_mistaken_size_reads_zeros() {
        for device in under_test() {
            let backend: &dyn Any = &*device.backend;
            if let Some(gpu) = backend.downcast_ref::<Gpu>() {
                for (bytes, spare) in [(4096, 4 << 10), (32_752, 32 << 10)] {
                    let mut out = device.allocate::<u64>(bytes / 8).unwrap();
                    let planted: Vec<_> = (0..4096).map(|number| vec![SECRET; number]).collect();
                    mistake(&device, gpu, &mut out, bytes, spare).unwrap();
                    let read = out.download().unwrap();
                    assert_eq!((read[0], planted.len()), (7, 4096));
                    assert!(
                        read[1..].iter().all(|&word| word == 0),
                        "{bytes} bytes, {spare} spare ones"
                    );
                }
            }
        }
    }

    /// Launches a kernel that copies its second parameter, which is taken for one byte.
    fn mistake(
        device: &Device,
        gpu: &Gpu,
        out: &mut Buffer<u64>,
        bytes: usize,
        spare: usize,
    ) -> Result<(), Error> {
        let copies: String = (0..bytes)
            .step_by(8)
            .map(|at| format!("ld.param.u64 %rd2, [p+{at}]; st.global.u64 [%rd1+{at}], %rd2;\n"))
            .collect();
        let ptx = format!(
            ".version 8.1\n.target sm_80\n.address_size 64\n.visible .entry copy(.param .u64 out, .param .align 8 \
             .b8 p[{bytes}])\n{{\n.reg .b64 %rd<3>;\nld.param.u64 %rd1, [out];\n{copies}ret;\n}}"
        );
        let copy = device.module(&ptx)?.function("copy")?;
        let mut params = copy.params().to_vec();
        params[1].bytes = 1;
        let kernel = read::<GpuKernel>(&copy.kernel.code, &gpu.label)?;
        let launch = copy.launch(1, 1).arg(out).arg(7_u8);
        let packed = Packed::new(&params, &launch.spec.values(), spare);
        let launch = GpuLaunch { kernel, spec: &launch.spec, packed };
        // One stream has all of the work, so that the memory need not be named.
        gpu.queue_launch(&gpu.home, &launch, &[])?;
        gpu.synchronize()
    }
}
