//! Device memory: had, filled, copied, and given back behind all work on it.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use cudarc::driver::{DriverError, result, sys};

use super::Gpu;
use super::order::{GpuStream, Uses};
use crate::Error;
use crate::device::lock;

/// A piece of a GPU's memory, of at least one byte.
#[derive(Debug)]
pub(crate) struct GpuMemory {
    gpu: Arc<Gpu>,
    address: sys::CUdeviceptr,
    bytes: u64,
    pub(super) uses: Mutex<Uses>,
}

impl GpuMemory {
    /// Memory of `bytes` bytes with anything in it; `bytes` is not zero.
    #[allow(unsafe_code)]
    pub(crate) fn new(gpu: &Arc<Gpu>, bytes: u64) -> Result<GpuMemory, Error> {
        // The driver calls some such numbers invalid instead.
        let allocated = isize::try_from(bytes)
            .map_err(|_| DriverError(sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY))
            .and_then(|_| {
                let bytes = bytes as usize;
                gpu.context.bind_to_thread()?;
                // SAFETY: (1) the context is current, and the stream is its default one; (2) what
                // the memory holds does not matter: it is read only as numbers of which every bit
                // pattern is one, and never by the host but in a copy.
                unsafe {
                    if gpu.context.has_async_alloc() {
                        result::malloc_async(gpu.home.cu_stream(), bytes)
                    } else {
                        result::malloc_sync(bytes)
                    }
                }
            });
        let address = match allocated {
            Ok(address) => address,
            Err(DriverError(sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => {
                return Err(out_of_memory(gpu, bytes));
            }
            Err(error) => return gpu.check(&format!("allocating {bytes} bytes"), Err(error)),
        };
        let memory = GpuMemory { gpu: gpu.clone(), address, bytes, uses: Mutex::default() };
        // The allocation counts as a write: other streams must not come before it.
        memory.queue("allocating", true, |_| Ok(()))?;
        Ok(memory)
    }

    /// The address of the byte at `offset`.
    pub(crate) fn address(&self, offset: u64) -> sys::CUdeviceptr {
        self.address + offset
    }

    /// Copies to the device; the copy is over when this returns.
    #[allow(unsafe_code)]
    pub(crate) fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let address = self.range(offset, bytes.len() as u64)?.start;
        let home = self.gpu.home.cu_stream();
        // SAFETY: (1) the range lies in this memory, which lives as long as `self`; (2) the context is
        // current, and the stream is its default one; (3) the host's bytes stay borrowed until the
        // stream has been waited for, below.
        let copy = |_: &GpuStream| unsafe { result::memcpy_htod_async(address, bytes, home) };
        let queued = self.queue("copying to the device", true, copy);
        let done = self.gpu.check("copying to the device", self.gpu.home.synchronize());
        queued.and(done)
    }

    /// Copies to the host; the copy is over when this returns.
    #[allow(unsafe_code)]
    pub(crate) fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), Error> {
        let address = self.range(offset, bytes.len() as u64)?.start;
        let home = self.gpu.home.cu_stream();
        // SAFETY: as in `write`; (4) the host's bytes are borrowed for writing.
        let copy = |_: &GpuStream| unsafe { result::memcpy_dtoh_async(bytes, address, home) };
        let queued = self.queue("copying to the host", false, copy);
        let done = self.gpu.check("copying to the host", self.gpu.home.synchronize());
        queued.and(done)
    }

    /// Writes the same byte everywhere in a range, some time later.
    #[allow(unsafe_code)]
    pub(crate) fn fill(&self, offset: u64, bytes: u64, byte: u8) -> Result<(), Error> {
        let range = self.range(offset, bytes)?;
        let (home, bytes) = (self.gpu.home.cu_stream(), (range.end - range.start) as usize);
        // SAFETY: (1) the range lies in this memory, which is given back only behind the work queued
        // on it; (2) the context is current, and the stream is its default one.
        let fill =
            |_: &GpuStream| unsafe { result::memset_d8_async(range.start, byte, bytes, home) };
        self.queue("filling memory", true, fill)
    }

    /// The addresses of a range, which must lie inside.
    fn range(&self, offset: u64, bytes: u64) -> Result<Range<sys::CUdeviceptr>, Error> {
        match offset.checked_add(bytes) {
            Some(end) if end <= self.bytes => Ok(self.address + offset..self.address + end),
            _ => Err(Error::device(
                self.gpu.label(),
                format!("{bytes} bytes from byte {offset} on leave a buffer of {}", self.bytes),
            )),
        }
    }

    /// Queues an operation on this memory on the default stream, in its order.
    fn queue(
        &self,
        operation: &str,
        write: bool,
        work: impl FnOnce(&GpuStream) -> Result<(), DriverError>,
    ) -> Result<(), Error> {
        self.gpu.queue(&self.gpu.default_stream(), operation, &[(self, write)], None, work)
    }

    /// Gives the memory back behind all work on it.
    #[allow(unsafe_code)]
    fn release(&mut self) -> Result<(), DriverError> {
        let context = &self.gpu.context;
        // An old error that cudarc kept for the next caller must not keep this from being done.
        context.bind_to_thread().or_else(|_| context.bind_to_thread())?;
        let waited = lock(&self.uses).wait(&self.gpu.default_stream(), true);
        // SAFETY: (1) the address is that of an allocation of this context, freed only here; (2) the
        // context is current; (3) all work on the memory is over, or ahead on the same stream, or
        // waited for by it: launches borrow what they take until they are queued.
        unsafe {
            if waited.is_ok() && context.has_async_alloc() {
                result::free_async(self.address, self.gpu.home.cu_stream())
            } else {
                context.synchronize()?;
                result::free_sync(self.address)
            }
        }
    }
}

impl Drop for GpuMemory {
    fn drop(&mut self) {
        if let Err(error) = self.release() {
            self.gpu.notice(error);
        }
    }
}

fn out_of_memory(gpu: &Gpu, bytes: u64) -> Error {
    let free = match gpu.memory() {
        Ok((free, total)) => format!("{free} of {total} are free"),
        Err(_) => String::from("less is free"),
    };
    Error::device(gpu.label(), format!("out of memory: asked for {bytes} bytes, {free}"))
}
