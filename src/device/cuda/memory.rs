//! Device memory: had, filled, copied, and given back behind all work on it.

use std::ffi::{c_uint, c_void};
use std::mem;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use bytemuck::Pod;
use cudarc::driver::sys::{CUdeviceptr, CUresult::CUDA_ERROR_OUT_OF_MEMORY, CUstream};

use super::code::Failure;
use super::handles::RawStream;
use super::library::MemoryHandle;
use super::order::{GpuStream, Uses};
use super::{Gpu, error};
use crate::Error;
use crate::device::lock::lock;

/// Every allocation of the driver's begins at a multiple of this.
const ALIGNMENT: u64 = 256;
/// How much is copied to the device at a time.
const CHUNK_BYTES: usize = 4 << 20;

/// A piece of a GPU's memory, of at least one byte.
#[derive(Debug)]
pub(crate) struct GpuMemory {
    gpu: Arc<Gpu>,
    address: CUdeviceptr,
    bytes: u64,
    pub(super) uses: Mutex<Uses>,
    keeper: Keeper,
}

/// Who gives memory back, and in which order.
#[derive(Debug)]
enum Keeper {
    /// This library, behind all work on it.
    Library,
    /// This library, when nothing runs any more: other GPUs reach it, which memory in a stream's
    /// order does not allow.
    Peers,
    /// This library, in the order of a stream that is lent, which alone uses it.
    Stream(GpuStream),
    /// Whoever has lent it.
    Lender,
    /// Another process; here it is only mapped.
    Process,
}

impl GpuMemory {
    /// Memory of `bytes` bytes with anything in it; `bytes` is not zero.
    pub(crate) fn new(gpu: &Arc<Gpu>, bytes: u64) -> Result<GpuMemory, Error> {
        let memory = GpuMemory::allocated(gpu, &gpu.home, bytes, Keeper::Library)?;
        // The allocation counts as a write: other streams must not come before it.
        memory.queue("allocating", true, |_| Ok(()))?;
        Ok(memory)
    }

    /// Memory of `bytes` bytes with anything in it, for work on a stream that is lent and on no
    /// other; `bytes` is not zero. It is had and given back in the stream's order.
    pub(crate) fn of_stream(
        gpu: &Arc<Gpu>,
        stream: &GpuStream,
        bytes: u64,
    ) -> Result<GpuMemory, Error> {
        GpuMemory::allocated(gpu, &stream.stream, bytes, Keeper::Stream(stream.clone()))
    }

    /// Memory of `bytes` bytes, not zero, that other GPUs may reach ([`Gpu::reach`]).
    pub(crate) fn for_peers(gpu: &Arc<Gpu>, bytes: u64) -> Result<GpuMemory, Error> {
        GpuMemory::allocated(gpu, &gpu.home, bytes, Keeper::Peers)
    }

    /// Memory of `bytes` bytes, not zero, that somebody else has and gives back.
    pub(crate) fn lent(gpu: &Arc<Gpu>, address: u64, bytes: u64) -> GpuMemory {
        let (gpu, uses) = (gpu.clone(), Mutex::default());
        GpuMemory { gpu, address, bytes, uses, keeper: Keeper::Lender }
    }

    /// By what another process of this host finds this memory, which was had
    /// [for peers](GpuMemory::for_peers). It has to stay until no other process has it open.
    #[allow(unsafe_code)]
    pub(crate) fn handle(&self) -> Result<[u8; 64], Error> {
        let asked = || {
            let functions = self.gpu.context.functions;
            let missing = || Failure::odd("it has no cuIpcGetMemHandle");
            let handle_of = functions.cuIpcGetMemHandle.ok_or_else(missing)?;
            self.gpu.context.bind()?;
            let mut handle = MemoryHandle([0; 64]);
            // SAFETY: (1) the context is current; (2) `handle` may be written; (3) the address is
            // that of an allocation.
            unsafe { handle_of(&mut handle, self.address) }.check()?;
            Ok(handle.0)
        };
        self.gpu.check("naming memory to another process", asked())
    }

    /// Memory of another process, of at least so many bytes, that it has told the
    /// [handle](GpuMemory::handle) of.
    #[allow(unsafe_code)]
    pub(crate) fn of_process(
        gpu: &Arc<Gpu>,
        handle: [u8; 64],
        bytes: u64,
    ) -> Result<GpuMemory, Error> {
        /// `CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS`, the only flag that may be given: it may be another
        /// GPU's memory.
        const LAZY: c_uint = 1;
        let opened = || {
            let functions = gpu.context.functions;
            let missing = || Failure::odd("it cannot open memory of another process");
            let open = functions.cuIpcOpenMemHandle_v2.ok_or_else(missing)?;
            let range = functions.cuMemGetAddressRange_v2.ok_or_else(missing)?;
            functions.cuIpcCloseMemHandle.ok_or_else(missing)?;
            gpu.context.bind()?;
            let (mut address, mut start, mut there) = (0, 0, 0);
            // SAFETY: (1) the context is current; (2) `address` may be written; (3) of a handle
            // that is none the driver returns an error.
            unsafe { open(&mut address, MemoryHandle(handle), LAZY) }.check()?;
            if address == 0 || address.checked_add(bytes).is_none() {
                return Err(Failure::odd(format!("the memory is at {address:#x}")));
            }
            let keeper = Keeper::Process;
            let memory =
                GpuMemory { gpu: gpu.clone(), address, bytes, uses: Mutex::default(), keeper };
            // SAFETY: (1) as above; (2) what is written is there; (3) the address is one that the
            // driver gave out.
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

    fn allocated(
        gpu: &Arc<Gpu>,
        stream: &RawStream,
        bytes: u64,
        keeper: Keeper,
    ) -> Result<GpuMemory, Error> {
        let in_order = gpu.context.has_async_alloc && !matches!(keeper, Keeper::Peers);
        let address = match allocate(gpu, in_order.then_some(stream), bytes) {
            Ok(address) => address,
            Err(failure) if failure.is(CUDA_ERROR_OUT_OF_MEMORY) => {
                return Err(out_of_memory(gpu, bytes));
            }
            Err(failure) => return gpu.check(&format!("allocating {bytes} bytes"), Err(failure)),
        };
        Ok(GpuMemory { gpu: gpu.clone(), address, bytes, uses: Mutex::default(), keeper })
    }

    /// The address of the byte at `offset`.
    pub(crate) fn address(&self, offset: u64) -> CUdeviceptr {
        self.address + offset
    }

    /// Copies to the device; the copy is over when this returns `Ok`.
    ///
    /// An error of any earlier work can end the wait for a copy before the copy ends. So what the
    /// driver is given is not the caller's memory, which may go as soon as this returns, but memory
    /// that is kept for good after an error.
    #[allow(unsafe_code)]
    pub(crate) fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        self.range(offset, bytes.len() as u64)?;
        let mut staged = Vec::new();
        let room = bytes.len().min(CHUNK_BYTES);
        staged
            .try_reserve_exact(room)
            .map_err(|_| Error::OutOfMemory { operation: "upload", bytes: room })?;
        let mut address = self.address + offset;
        for chunk in bytes.chunks(CHUNK_BYTES) {
            staged.clear();
            staged.extend_from_slice(chunk);
            staged = self.copy("copying to the device", true, staged, |staged, home| {
                let source = staged.as_ptr().cast::<c_void>();
                let copy = self.gpu.context.functions.cuMemcpyHtoDAsync_v2;
                // SAFETY: (1) the addresses lie in this memory, which lives as long as `self`; (2)
                // the context is current, and the stream is its default one; (3) the host's bytes
                // are not touched before the copy is over: `copy` sees to it.
                unsafe { copy(address, source, staged.len(), home) }.check()
            })?;
            address += chunk.len() as u64;
        }
        Ok(())
    }

    /// Copies to the host, over `values`, which it gives back; the copy is over when this returns
    /// `Ok`.
    #[allow(unsafe_code)]
    pub(crate) fn read<T: Pod>(&self, offset: u64, values: Vec<T>) -> Result<Vec<T>, Error> {
        let address = self.range(offset, mem::size_of_val(&*values) as u64)?.start;
        self.copy("copying to the host", false, values, |values, home| {
            let target = values.as_mut_ptr().cast::<c_void>();
            let copy = self.gpu.context.functions.cuMemcpyDtoHAsync_v2;
            // SAFETY: as in `write`; (4) any bytes are numbers.
            unsafe { copy(target, address, mem::size_of_val(&**values), home) }.check()
        })
    }

    /// Queues a copy from or to `host` and waits for it.
    ///
    /// Where it is not certain that the copy is over, or that it never began, `host` is never
    /// freed: the device might still read or write there.
    fn copy<T: Pod>(
        &self,
        operation: &str,
        write: bool,
        mut host: Vec<T>,
        work: impl FnOnce(&mut Vec<T>, CUstream) -> Result<(), Failure>,
    ) -> Result<Vec<T>, Error> {
        let mut is_begun = false;
        let queued = self.queue(operation, write, |stream| {
            is_begun = true;
            work(&mut host, stream.stream.raw())
        });
        let done = self.gpu.check(operation, self.gpu.home.synchronize());
        match done {
            Err(error) if is_begun => {
                mem::forget(host);
                Err(queued.err().unwrap_or(error))
            }
            done => queued.and(done).map(|()| host),
        }
    }

    /// Writes the same byte everywhere in a range, some time later.
    #[allow(unsafe_code)]
    pub(crate) fn fill(&self, offset: u64, bytes: u64, byte: u8) -> Result<(), Error> {
        let range = self.range(offset, bytes)?;
        let bytes = (range.end - range.start) as usize;
        let fill = self.gpu.context.functions.cuMemsetD8Async;
        self.queue("filling memory", true, |stream| {
            // SAFETY: (1) the range lies in this memory, which is given back only behind the work
            // queued on it; (2) the context is current, and the stream is of it.
            unsafe { fill(range.start, byte, bytes, stream.stream.raw()) }.check()
        })
    }

    /// The addresses of a range, which must lie inside.
    fn range(&self, offset: u64, bytes: u64) -> Result<Range<CUdeviceptr>, Error> {
        match offset.checked_add(bytes) {
            Some(end) if end <= self.bytes => Ok(self.address + offset..self.address + end),
            _ => Err(Error::device(
                self.gpu.label(),
                format!("{bytes} bytes from byte {offset} on leave a buffer of {}", self.bytes),
            )),
        }
    }

    /// Queues an operation on this memory on the default stream, or on the one that it is of, in
    /// its order.
    fn queue(
        &self,
        operation: &str,
        write: bool,
        work: impl FnOnce(&GpuStream) -> Result<(), Failure>,
    ) -> Result<(), Error> {
        let stream = match &self.keeper {
            Keeper::Stream(stream) => stream.clone(),
            Keeper::Library | Keeper::Peers | Keeper::Lender | Keeper::Process => {
                self.gpu.default_stream()
            }
        };
        self.gpu.queue(&stream, operation, &[(self, write)], None, work)
    }

    /// Gives the memory back behind all work on it.
    #[allow(unsafe_code)]
    fn release(&mut self) -> Result<(), Failure> {
        let Gpu { context, home, .. } = &*self.gpu;
        let stream = match &self.keeper {
            Keeper::Lender => return Ok(()),
            Keeper::Stream(stream) => &stream.stream,
            Keeper::Library | Keeper::Peers | Keeper::Process => home,
        };
        context.bind()?;
        let uses = lock(&self.uses);
        let is_ordered = !uses.unknown && uses.wait(&self.gpu.default_stream(), true).is_ok();
        let is_of_stream = !matches!(self.keeper, Keeper::Peers | Keeper::Process);
        if is_ordered && context.has_async_alloc && is_of_stream {
            // SAFETY: (1) the address is that of an allocation of this context, freed only here;
            // (2) the context is current; (3) all work on the memory is over, or ahead on the same
            // stream, or waited for by it: launches borrow what they take until they are queued.
            return unsafe { (context.functions.cuMemFreeAsync)(self.address, stream.raw()) }
                .check();
        }
        // If this fails, something may still run on the memory: then it stays.
        context.synchronize()?;
        if let (Keeper::Process, Some(close)) =
            (&self.keeper, context.functions.cuIpcCloseMemHandle)
        {
            // SAFETY: (1) the address is that of memory which was opened, closed only here; (2) and
            // (3) as above.
            return unsafe { close(self.address) }.check();
        }
        // SAFETY: as above.
        unsafe { (context.functions.cuMemFree_v2)(self.address) }.check()
    }
}

impl Drop for GpuMemory {
    fn drop(&mut self) {
        if let Err(failure) = self.release() {
            self.gpu.notice("giving memory back", &failure);
        }
    }
}

/// The address of so many bytes of new memory, in the order of a stream, or at once.
#[allow(unsafe_code)]
fn allocate(gpu: &Gpu, stream: Option<&RawStream>, bytes: u64) -> Result<CUdeviceptr, Failure> {
    // The driver calls some such numbers invalid instead.
    let len = isize::try_from(bytes).map_err(|_| Failure::from(CUDA_ERROR_OUT_OF_MEMORY))?;
    gpu.context.bind()?;
    let functions = gpu.context.functions;
    let mut address = 0;
    // SAFETY: (1) the context is current, and the stream is of it; (2) `address` may be written;
    // (3) what the memory holds does not matter: it is read only as numbers of which every bit
    //     pattern is one, and never by the host but in a copy.
    let allocated = unsafe {
        match stream {
            Some(stream) => {
                (functions.cuMemAllocAsync)(&mut address, len.unsigned_abs(), stream.raw())
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
    Error::device(gpu.label(), format!("out of memory: asked for {bytes} bytes, {free}"))
}
