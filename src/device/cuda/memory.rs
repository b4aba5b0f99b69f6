//! Device memory: allocated, filled, copied, and freed behind all work on it.
//!
//! Memory is allocated in a stream's order where the GPU can, and freed there. [`Keeper`] lists who
//! else may own it. An error of any earlier work can end the wait for a copy before the copy ends.
//! So the host's side of a copy stays allocated for good unless it is certain that the copy is over
//! or never began. The tests with a driver that copies late are in `tests/suite/driver`
//! (`memory_is_not_freed_under_a_copy_to_the_host` and its neighbours).

use std::ffi::c_void;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use super::Gpu;
use super::error::{self, Failure};
use super::handles::GpuStream;
use super::order::Uses;
use super::sys::{
    CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, CUDA_ERROR_OUT_OF_MEMORY, CUdeviceptr, CUipcMemHandle,
    CUstream,
};
use crate::Error;
use crate::device::backend::{DeviceMemory, HostArray};
use crate::device::lock::lock;

/// The required alignment of every allocation of the driver, in bytes.
const ALIGNMENT: u64 = 256;
/// The most bytes that are copied to the device at a time.
const CHUNK_BYTES: usize = 4 << 20;

/// A piece of a GPU's memory, of at least one byte.
#[derive(Debug)]
pub(super) struct GpuMemory {
    gpu: Arc<Gpu>,
    address: CUdeviceptr,
    bytes: u64,
    pub(super) uses: Mutex<Uses>,
    keeper: Keeper,
}

/// The owner that frees memory, with the order in which it does.
#[derive(Debug)]
pub(super) enum Keeper {
    /// This library, behind all work on it.
    Library,
    /// This library, when nothing runs any more: other GPUs reach it, and they cannot reach memory
    /// in a stream's order.
    Peers,
    /// This library, in the order of a lent stream, which alone uses it.
    Stream(Arc<GpuStream>),
    /// The library that lent it.
    Lender,
    /// Another process; this process has only mapped it.
    Process,
}

impl GpuMemory {
    /// Allocates `bytes` bytes, not zero, with any contents.
    pub(super) fn new(gpu: Arc<Gpu>, bytes: u64, keeper: Keeper) -> Result<GpuMemory, Error> {
        let stream = match &keeper {
            _ if !gpu.context.has_async_alloc => None,
            Keeper::Peers => None,
            Keeper::Stream(stream) => Some(stream),
            Keeper::Library | Keeper::Lender | Keeper::Process => Some(&gpu.home),
        };
        let address = match allocate(&gpu, stream.map(|stream| &**stream), bytes) {
            Ok(address) => address,
            Err(failure) if failure.is(CUDA_ERROR_OUT_OF_MEMORY) => {
                return Err(out_of_memory(&gpu, bytes));
            }
            Err(failure) => return gpu.check(&format!("allocating {bytes} bytes"), Err(failure)),
        };
        let memory = GpuMemory { gpu, address, bytes, uses: Mutex::default(), keeper };
        if matches!(memory.keeper, Keeper::Library) {
            // The allocation counts as a write: other streams must not come before it.
            memory.queue("allocating", true, |_| Ok(()))?;
        }
        Ok(memory)
    }

    /// Takes `bytes` bytes, not zero, that another library has allocated and frees.
    pub(super) fn lent(gpu: Arc<Gpu>, address: u64, bytes: u64) -> GpuMemory {
        GpuMemory { gpu, address, bytes, uses: Mutex::default(), keeper: Keeper::Lender }
    }

    /// Opens at least `bytes` bytes of another process, which published their name.
    pub(super) fn of_process(
        gpu: Arc<Gpu>,
        name: [u8; 64],
        bytes: u64,
    ) -> Result<GpuMemory, Error> {
        let opened = || {
            let functions = gpu.context.functions;
            let missing = || Failure::odd("it cannot open memory of another process");
            let open = functions.cuIpcOpenMemHandle_v2.ok_or_else(missing)?;
            let range = functions.cuMemGetAddressRange_v2.ok_or_else(missing)?;
            functions.cuIpcCloseMemHandle.ok_or_else(missing)?;
            gpu.context.bind()?;
            let (mut address, mut start, mut there) = (0, 0, 0);
            let flags = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS;
            // SAFETY: (1) the context is current; (2) `address` may be written; (3) for bytes that
            // name nothing the driver returns an error.
            unsafe { open(&mut address, CUipcMemHandle(name), flags) }.check()?;
            if address == 0 || address.checked_add(bytes).is_none() {
                return Err(Failure::odd(format!("the memory is at {address:#x}")));
            }
            let (gpu, uses, keeper) = (gpu.clone(), Mutex::default(), Keeper::Process);
            let memory = GpuMemory { gpu, address, bytes, uses, keeper };
            // SAFETY: (1) as above; (2) both numbers may be written; (3) the driver returned the
            // address.
            unsafe { range(&mut start, &mut there, address) }.check()?;
            let behind = there as u64 - (address.wrapping_sub(start)).min(there as u64);
            match behind >= bytes {
                true => Ok(memory),
                false => {
                    Err(Failure::odd(format!("it has {behind} bytes where {bytes} are needed")))
                }
            }
        };
        gpu.check("opening memory of another process", opened())
    }

    /// Queues a copy from or to `host` and waits for it.
    ///
    /// Unless it is certain that the copy is over, or that it never began, `host` is never freed:
    /// the device might still read or write there.
    fn copy(
        &self,
        operation: &str,
        write: bool,
        host: &mut dyn HostArray,
        work: impl FnOnce(*mut c_void, usize, CUstream) -> Result<(), Failure>,
    ) -> Result<(), Error> {
        let mut is_begun = false;
        let queued = self.queue(operation, write, |stream| {
            is_begun = true;
            let bytes = host.bytes();
            work(bytes.as_mut_ptr().cast(), bytes.len(), stream.raw)
        });
        let done = self.gpu.check(operation, self.gpu.home.synchronize());
        if done.is_err() && is_begun {
            host.leak();
        }
        queued.and(done)
    }

    /// Returns the addresses of a range; an error if it leaves the memory.
    fn range(&self, offset: u64, bytes: u64) -> Result<Range<CUdeviceptr>, Error> {
        match offset.checked_add(bytes) {
            Some(end) if end <= self.bytes => Ok(self.address + offset..self.address + end),
            _ => Err(Error::device(
                &*self.gpu.label,
                format!("{bytes} bytes from byte {offset} on leave a buffer of {}", self.bytes),
            )),
        }
    }

    /// Queues an operation on this memory, in the order of its stream or of the default one.
    fn queue(
        &self,
        operation: &str,
        write: bool,
        work: impl FnOnce(&GpuStream) -> Result<(), Failure>,
    ) -> Result<(), Error> {
        let stream = match &self.keeper {
            Keeper::Stream(stream) => stream,
            Keeper::Library | Keeper::Peers | Keeper::Lender | Keeper::Process => &self.gpu.home,
        };
        self.gpu.queue(stream, operation, &[(self, write)], None, work)
    }

    /// Frees the memory behind all work on it.
    fn release(&mut self) -> Result<(), Failure> {
        let Gpu { context, home, .. } = &*self.gpu;
        let stream = match &self.keeper {
            Keeper::Lender => return Ok(()),
            Keeper::Stream(stream) => stream,
            Keeper::Library | Keeper::Peers | Keeper::Process => home,
        };
        context.bind()?;
        let uses = lock(&self.uses);
        let is_ordered = !uses.unknown && uses.wait(home, true).is_ok();
        let is_of_stream = !matches!(self.keeper, Keeper::Peers | Keeper::Process);
        if is_ordered && context.has_async_alloc && is_of_stream {
            // SAFETY: (1) the address is of an allocation of this context, freed only here; (2) the
            // context is current; (3) all work on the memory is over, or ahead on the same stream,
            // or this stream waits for it: launches borrow their memory until they are queued.
            return unsafe { (context.functions.cuMemFreeAsync)(self.address, stream.raw) }.check();
        }
        // If this fails, something may still run on the memory: then it stays.
        context.synchronize()?;
        if let (Keeper::Process, Some(close)) =
            (&self.keeper, context.functions.cuIpcCloseMemHandle)
        {
            // SAFETY: (1) the address is of memory that was opened, and is closed only here; (2)
            // and (3) as above.
            return unsafe { close(self.address) }.check();
        }
        // SAFETY: as above.
        unsafe { (context.functions.cuMemFree_v2)(self.address) }.check()
    }
}

impl DeviceMemory for GpuMemory {
    fn address(&self) -> u64 {
        self.address
    }

    /// Copies from staged memory, and not from the caller's, which may be freed as soon as this
    /// returns.
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        self.range(offset, bytes.len() as u64)?;
        let mut staged = Vec::new();
        let most = bytes.len().min(CHUNK_BYTES);
        staged
            .try_reserve_exact(most)
            .map_err(|_| Error::OutOfMemory { operation: "upload", bytes: most })?;
        let mut address = self.address + offset;
        for chunk in bytes.chunks(CHUNK_BYTES) {
            staged.clear();
            staged.extend_from_slice(chunk);
            self.copy("copying to the device", true, &mut staged, |source, len, home| {
                let copy = self.gpu.context.functions.cuMemcpyHtoDAsync_v2;
                // SAFETY: (1) the addresses are in this memory, which lives as long as `self`; (2)
                // the context is current, and the stream is of it; (3) the host's bytes are neither
                // touched nor freed before the copy is over: `copy` ensures it.
                unsafe { copy(address, source, len, home) }.check()
            })?;
            address += chunk.len() as u64;
        }
        Ok(())
    }

    fn read(&self, offset: u64, host: &mut dyn HostArray) -> Result<(), Error> {
        let address = self.range(offset, host.bytes().len() as u64)?.start;
        self.copy("copying to the host", false, host, |target, len, home| {
            let copy = self.gpu.context.functions.cuMemcpyDtoHAsync_v2;
            // SAFETY: as in `write`; (4) the numbers of a `HostArray` may have any bytes.
            unsafe { copy(target, address, len, home) }.check()
        })
    }

    fn fill(&self, offset: u64, bytes: u64, byte: u8) -> Result<(), Error> {
        let range = self.range(offset, bytes)?;
        let bytes = (range.end - range.start) as usize;
        let fill = self.gpu.context.functions.cuMemsetD8Async;
        self.queue("filling memory", true, |stream| {
            // SAFETY: (1) the range is in this memory, which is freed only behind the work queued
            // on it; (2) the context is current, and the stream is of it.
            unsafe { fill(range.start, byte, bytes, stream.raw) }.check()
        })
    }

    fn publish(&self) -> Result<Option<[u8; 64]>, Error> {
        let named = || {
            let functions = self.gpu.context.functions;
            let missing = || Failure::odd("it has no cuIpcGetMemHandle");
            let name_of = functions.cuIpcGetMemHandle.ok_or_else(missing)?;
            self.gpu.context.bind()?;
            let mut name = CUipcMemHandle([0; 64]);
            // SAFETY: (1) the context is current; (2) `name` may be written; (3) the address is of
            // an allocation.
            unsafe { name_of(&mut name, self.address) }.check()?;
            Ok(Some(name.0))
        };
        self.gpu.check("naming memory to another process", named())
    }
}

impl Drop for GpuMemory {
    fn drop(&mut self) {
        if let Err(failure) = self.release() {
            self.gpu.notice("giving memory back", &failure);
        }
    }
}

/// Returns the address of `bytes` bytes of new memory, allocated in the order of a stream, or at
/// once.
fn allocate(gpu: &Gpu, stream: Option<&GpuStream>, bytes: u64) -> Result<CUdeviceptr, Failure> {
    // For some such numbers the driver returns another error.
    let len = isize::try_from(bytes).map_err(|_| CUDA_ERROR_OUT_OF_MEMORY)?;
    gpu.context.bind()?;
    let functions = gpu.context.functions;
    let mut address = 0;
    // SAFETY: (1) the context is current, and the stream is of it; (2) `address` may be written;
    // (3) the memory may hold anything: it is read only as numbers of which every bit pattern is
    // valid, and by the host only in copies.
    let allocated = unsafe {
        match stream {
            Some(stream) => {
                (functions.cuMemAllocAsync)(&mut address, len.unsigned_abs(), stream.raw)
            }
            None => (functions.cuMemAlloc_v2)(&mut address, len.unsigned_abs()),
        }
    };
    allocated.check()?;
    if address == 0 || !address.is_multiple_of(ALIGNMENT) || address.checked_add(bytes).is_none() {
        return Err(Failure::odd(format!("the memory is at {address:#x}")));
    }
    Ok(address)
}

fn out_of_memory(gpu: &Gpu, bytes: u64) -> Error {
    let free = match gpu.context.memory() {
        Ok((free, total)) => format!("{free} of {total} are free"),
        Err(failure) => {
            let operation = "asking for the free memory";
            gpu.notice(operation, &failure);
            format!("and {operation} failed: {}", error::describe(&failure))
        }
    };
    Error::device(&*gpu.label, format!("out of memory: asked for {bytes} bytes, {free}"))
}
