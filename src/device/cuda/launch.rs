//! Work is queued here, launches and all else.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use super::code::Failure;
use super::handles::{RawEvent, RawStream};
use super::{Gpu, GpuKernel, GpuMemory, GpuStream};
use crate::Error;
use crate::device::lock::lock;
use crate::device::signature::Packed;

/// A launch that has been checked: grid, block and shared memory are within their limits, and there
/// were as many arguments as parameters, of their sizes.
pub(crate) struct GpuLaunch<'a> {
    pub(crate) kernel: &'a GpuKernel,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared_bytes: u32,
    /// Whether all blocks are to be on the device at once. The driver sees to it, or refuses the
    /// launch.
    pub(crate) cooperative: bool,
    pub(crate) params: Packed,
}

impl Gpu {
    /// Queues `work` on a stream behind everything that it must not overtake on the `memories`; the
    /// flag says of each whether it is written. A stream that is lent is ordered by whoever lends
    /// it.
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
            if order.is_needed() && !stream.is_lent() {
                self.queue_in_order(stream, memories, work)
            } else {
                self.context.bind().and_then(|()| work(stream))
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
        // Made before the work is queued: then only recording it can fail afterwards.
        let event = RawEvent::new(&self.context, false)?;
        let queued = work(stream);
        let noted = queued.and_then(|()| event.record(&stream.stream));
        if let Err(failure) = noted {
            // Something may be under way with no event to wait for later: wait now.
            if stream.stream.synchronize().is_err() {
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

    /// Queues a launch on a stream. The `memories` are what its parameters point to, and whether
    /// the kernel writes there.
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
            launch.start(self, &stream.stream)
        })
    }
}

impl GpuLaunch<'_> {
    /// Gives the launch to the driver. Whoever calls this sees to it that what the parameters point
    /// to lives until the kernel is done, and that the shared memory is allowed.
    #[allow(unsafe_code)]
    pub(super) fn start(&self, gpu: &Gpu, stream: &RawStream) -> Result<(), Failure> {
        gpu.context.bind()?;
        let ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]) = (self.grid, self.block);
        let pointer = |param: &[u8]| param.as_ptr().cast_mut().cast::<c_void>();
        let mut params: Vec<*mut c_void> = self.params.params().map(pointer).collect();
        // SAFETY: (1) the context is current, and the function is of a module of it that `kernel`
        // keeps loaded; (2) there are as many pointers as the kernel has parameters, and from each
        // so many bytes to the end of the block that the driver reads nothing else
        // (`GpuKernel::room` says why); it copies them before it returns, and writes to none; (3)
        // the memories are of this context and given back only behind this work: `queue` sees to it
        // for a launch, and `GpuGraph` for a replay, and whoever lends memory or a stream has
        // promised it; (4) they hold plain numbers, of which any bytes are valid, and the host has
        // no reference into them; (5) what a kernel does beyond them is in `device`'s section on
        // safety; (6) both functions take the same, but for options, of which there are none.
        let launched = unsafe {
            let (functions, function) = (gpu.context.functions, self.kernel.function.raw());
            let (stream, params) = (stream.raw(), params.as_mut_ptr());
            if self.cooperative {
                (functions.cuLaunchCooperativeKernel)(
                    function,
                    grid_x,
                    grid_y,
                    grid_z,
                    block_x,
                    block_y,
                    block_z,
                    self.shared_bytes,
                    stream,
                    params,
                )
            } else {
                (functions.cuLaunchKernel)(
                    function,
                    grid_x,
                    grid_y,
                    grid_z,
                    block_x,
                    block_y,
                    block_z,
                    self.shared_bytes,
                    stream,
                    params,
                    ptr::null_mut(),
                )
            }
        };
        launched.check()
    }
}

#[cfg(all(test, feature = "contract"))]
mod tests {
    use std::sync::Arc;

    use super::{Gpu, GpuLaunch};
    use crate::Error;
    use crate::device::argument::Slot;
    use crate::device::buffer::Place;
    use crate::device::cuda::GpuModule;
    use crate::device::signature::{Packed, Value};
    use crate::device::{Backend, Buffer, under_test};

    const SECRET: u64 = 0x5ec2_e75e_c2e7_5ec2;

    /// Whatever goes wrong before: a parameter whose size was mistaken takes zeros along, and
    /// nothing else.
    #[test]
    fn a_mistaken_size_reads_zeros() {
        for device in under_test() {
            if let Backend::Cuda(gpu) = &device.backend {
                for (bytes, room) in [(4096, 4 << 10), (32_752, 32 << 10)] {
                    let mut out = device.allocate::<u64>(bytes / 8).unwrap();
                    let planted: Vec<_> = (0..4096).map(|number| vec![SECRET; number]).collect();
                    mistake(gpu, &mut out, bytes, room).unwrap();
                    let read = out.download().unwrap();
                    assert_eq!((read[0], planted.len()), (7, 4096));
                    assert!(
                        read[1..].iter().all(|&word| word == 0),
                        "{bytes} bytes, {room} of room"
                    );
                }
            }
        }
    }

    /// Launches a kernel that copies its second parameter, which is taken for one byte.
    fn mistake(gpu: &Gpu, out: &mut Buffer<u64>, bytes: usize, room: usize) -> Result<(), Error> {
        let copies: String = (0..bytes)
            .step_by(8)
            .map(|at| format!("ld.param.u64 %rd2, [p+{at}]; st.global.u64 [%rd1+{at}], %rd2;\n"))
            .collect();
        let ptx = format!(
            ".version 8.1\n.target sm_80\n.address_size 64\n.visible .entry copy(.param .u64 out, .param .align 8 \
             .b8 p[{bytes}])\n{{\n.reg .b64 %rd<3>;\nld.param.u64 %rd1, [out];\n{copies}ret;\n}}"
        );
        let mut kernels = GpuModule::load(gpu, &ptx)?.kernels;
        let kernel = kernels.pop().and_then(Arc::into_inner).unwrap();
        let mut params = kernel.params.clone();
        params[1].bytes = 1;
        let Slot::Pointer { memory, .. } = out.slot(true) else { panic!("no pointer") };
        let Place::Cuda(memory) = &memory.place else { panic!("not on a GPU") };
        let values = [[memory.address(0), 0], [7, 0]].map(Value::Words);
        let params = Packed::new(&params, &values, room);
        let launch = GpuLaunch {
            kernel: &kernel,
            grid: [1; 3],
            block: [1; 3],
            shared_bytes: 0,
            cooperative: false,
            params,
        };
        gpu.launch(&gpu.default_stream(), &launch, &[(memory, true)])?;
        gpu.synchronize()
    }
}
