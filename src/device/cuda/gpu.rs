//! A GPU as a backend: its context, its default stream, and its attributes.
//!
//! Every GPU is opened once in a process and stays open. The methods of [`Backend`] read what the
//! layer above passes, and call the other files of this folder. The first error that ends the use
//! of the GPU is kept, because CUDA would return it from then on: opening the GPU again says what
//! happened. The tests are `tests/suite/driver`, where every call of the driver fails in turn, and
//! `tests/suite/device` on a machine with a GPU.

use std::any::Any;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use super::communicator::{self, GpuCommunicator};
use super::context::Context;
use super::error::{self, Failure};
use super::graph::GpuGraph;
use super::handles::{GpuStream, RawEvent};
use super::launch::GpuLaunch;
use super::memory::{GpuMemory, Keeper};
use super::module::{self, GpuKernel};
use super::order::Order;
use super::sys::*;
use super::{driver, nccl};
use crate::Error;
use crate::device::backend::{
    Attributes, Backend, Communicator, DeviceMemory, Handle, Users, read,
};
use crate::device::buffer::Allocation;
use crate::device::function::{LoadedKernel, LoadedModule, Modules};
use crate::device::launch::{Recorded, Spec};
use crate::device::lock::lock;
use crate::simt::{Counters, Trace};

/// A GPU that is in use.
pub(in crate::device) struct Gpu {
    pub(super) context: Arc<Context>,
    /// The default stream, on which a buffer is allocated, copied and freed.
    pub(super) home: Arc<GpuStream>,
    pub(super) order: Mutex<Order>,
    pub(super) label: String,
    modules: Modules,
    name: String,
    attributes: Attributes,
    /// The error since which nothing on it can be used, as a sentence.
    lost: OnceLock<String>,
}

impl Gpu {
    /// Returns the GPU with this ordinal, always the same one; an error once it has been lost.
    pub(in crate::device) fn open(ordinal: usize) -> Result<Arc<Gpu>, Error> {
        static OPEN: Mutex<BTreeMap<usize, Arc<Gpu>>> = Mutex::new(BTreeMap::new());

        let driver = driver()?;
        let label = format!("cuda:{ordinal}");
        if ordinal >= driver.devices {
            let (count, last) = (driver.devices, driver.devices - 1);
            let plural = if count == 1 { "" } else { "s" };
            let message = format!(
                "there is no such device: the driver shows {count} device{plural}, the last is \
                 cuda:{last}"
            );
            return Err(Error::device(label, message));
        }
        let mut open = lock(&OPEN);
        if let Some(gpu) = open.get(&ordinal) {
            // A context made anew would return the same error: CUDA keeps it for the whole process.
            return match gpu.lost.get() {
                None => Ok(gpu.clone()),
                Some(why) => {
                    let message = format!("opening the device: it was lost when {why}");
                    Err(Error::device(label, message))
                }
            };
        }
        let gpu = Arc::new(Gpu::new(ordinal, label, driver.cuda_version)?);
        open.insert(ordinal, gpu.clone());
        Ok(gpu)
    }

    fn new(ordinal: usize, label: String, cuda_version: (u32, u32)) -> Result<Gpu, Error> {
        let failed = |failure| error::explain(&label, "opening the device", &failure, None);
        let context = Context::new(ordinal).map_err(failed)?;
        let name = context.name().map_err(failed)?;
        let attributes = attributes(&context, cuda_version).map_err(failed)?;
        let home = Arc::new(GpuStream::home(context.clone()));
        let (order, modules, lost) = (Mutex::default(), Modules::new(), OnceLock::new());
        Ok(Gpu { context, home, order, modules, label, name, attributes, lost })
    }

    /// Notices an error that no caller gets, if it ends the use of the device.
    pub(super) fn notice(&self, operation: &str, failure: &Failure) {
        if error::is_lost(failure) {
            let last_kernel = lock(&self.order).last_kernel.clone();
            // Only the first error says what happened; the later ones repeat it.
            self.lost.get_or_init(|| error::sentence(operation, failure, last_kernel.as_deref()));
        }
    }

    /// Returns what the driver returned, with an error as a sentence about `operation`.
    pub(super) fn check<R>(&self, operation: &str, result: Result<R, Failure>) -> Result<R, Error> {
        result.map_err(|failure| {
            self.notice(operation, &failure);
            let last_kernel = lock(&self.order).last_kernel.clone();
            error::explain(&self.label, operation, &failure, last_kernel.as_deref())
        })
    }

    /// Returns the stream of a handle; the default stream for `None`.
    fn stream<'a>(&'a self, stream: Option<&'a Handle>) -> Result<&'a GpuStream, Error> {
        stream.map_or(Ok(&self.home), |stream| read(stream, &self.label))
    }

    /// Returns this GPU's memories among `memories`, and whether each is written.
    fn memories<'a>(
        &self,
        memories: impl Iterator<Item = (&'a Arc<Allocation>, bool)>,
    ) -> Vec<(&'a GpuMemory, bool)> {
        let on_gpu = |memory: &'a Arc<Allocation>| {
            let memory: &dyn Any = &**memory.memory.as_ref()?;
            memory.downcast_ref()
        };
        memories.filter_map(|(memory, write)| Some((on_gpu(memory)?, write))).collect()
    }
}

impl Backend for Gpu {
    fn label(&self) -> &str {
        &self.label
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn is_simt(&self) -> bool {
        false
    }

    fn attributes(&self) -> Attributes {
        self.attributes.clone()
    }

    fn memory(&self) -> Result<(u64, u64), Error> {
        self.check("asking for the free memory", self.context.memory())
    }

    fn modules(&self) -> &Modules {
        &self.modules
    }

    fn load(&self, ptx: &str) -> Result<LoadedModule, Error> {
        module::load(self, ptx)
    }

    fn allocate(
        self: Arc<Self>,
        _name: &str,
        bytes: u64,
        users: Users,
    ) -> Result<Box<dyn DeviceMemory>, Error> {
        let keeper = match users {
            Users::Nobody => Keeper::Library,
            Users::Peers => Keeper::Peers,
            Users::Stream(stream) => {
                let stream: Arc<dyn Any + Send + Sync> = stream.clone();
                stream.downcast().map_or(Keeper::Library, Keeper::Stream)
            }
        };
        Ok(Box::new(GpuMemory::new(self, bytes, keeper)?))
    }

    fn launch(
        &self,
        kernel: &LoadedKernel,
        spec: &Spec,
        _trace: Option<&mut Trace>,
        stream: Option<&Handle>,
    ) -> Result<Option<Counters>, Error> {
        let launch = GpuLaunch::new(read(&kernel.code, &self.label)?, &kernel.params, spec);
        let own = spec.own_memories().map(|(_, memory, write)| (memory, write));
        self.queue_launch(self.stream(stream)?, &launch, &self.memories(own)).map(|()| None)
    }

    fn event(&self) -> Result<Handle, Error> {
        Ok(Arc::new(self.check("making an event", RawEvent::new(&self.context, true))?))
    }

    fn record(&self, event: &Handle, stream: Option<&Handle>) -> Result<(), Error> {
        let event: &RawEvent = read(event, &self.label)?;
        self.check("recording an event", event.record(self.stream(stream)?))
    }

    fn elapsed_ms(&self, start: &Handle, end: &Handle) -> Result<f64, Error> {
        let start: &RawEvent = read(start, &self.label)?;
        self.check("timing", start.elapsed_ms(read(end, &self.label)?))
    }

    fn new_stream(&self) -> Result<Option<Handle>, Error> {
        self.further_stream().map(|stream| Some(stream as Handle))
    }

    fn synchronize(&self) -> Result<(), Error> {
        self.check("waiting for the device", self.context.synchronize())
    }

    fn wait_for_stream(&self, stream: Option<&Handle>) -> Result<(), Error> {
        self.check("waiting for a stream", self.stream(stream)?.synchronize())
    }

    fn synchronize_event(&self, event: &Handle) -> Result<(), Error> {
        let event: &RawEvent = read(event, &self.label)?;
        self.check("waiting for an event", event.synchronize())
    }

    fn wait_for_event(&self, stream: Option<&Handle>, event: &Handle) -> Result<(), Error> {
        let waited = self.stream(stream)?.wait(read(event, &self.label)?);
        self.check("waiting for an event", waited)
    }

    fn occupancy(
        &self,
        kernel: &LoadedKernel,
        threads: u32,
        shared_bytes: u32,
    ) -> Result<Option<u32>, Error> {
        let kernel: &GpuKernel = read(&kernel.code, &self.label)?;
        kernel.occupancy(self, threads, shared_bytes).map(Some)
    }

    fn graph(self: Arc<Self>, launches: &[Recorded]) -> Result<Option<Handle>, Error> {
        let prepared = launches.iter().map(|Recorded { function, spec }| {
            let kernel = read(&function.kernel.code, &self.label)?;
            Ok(GpuLaunch::new(kernel, function.params(), spec))
        });
        let prepared = prepared.collect::<Result<Vec<_>, Error>>()?;
        Ok(Some(Arc::new(GpuGraph::new(&self, &prepared)?)))
    }

    fn replay(
        &self,
        graph: &Handle,
        stream: Option<&Handle>,
        memories: &[(Arc<Allocation>, bool)],
    ) -> Result<(), Error> {
        let graph: &GpuGraph = read(graph, &self.label)?;
        let memories = self.memories(memories.iter().map(|(memory, write)| (memory, *write)));
        graph.replay(self.stream(stream)?, &memories)
    }

    fn lent_stream(&self, raw: *mut c_void) -> Result<Handle, Error> {
        Ok(Arc::new(GpuStream::lent(self.context.clone(), CUstream::lent(raw))))
    }

    fn lent_memory(
        self: Arc<Self>,
        address: u64,
        len: usize,
        size: usize,
    ) -> Result<Option<Box<dyn DeviceMemory>>, Error> {
        let (bytes, size) = ((len * size) as u64, size as u64);
        if bytes == 0 {
            return Ok(None);
        }
        if address == 0 || !address.is_multiple_of(size) || address.checked_add(bytes).is_none() {
            let why = format!(
                "memory at {address:#x} cannot hold {len} numbers of {size} bytes each: they begin at a \
                 multiple of their size"
            );
            return Err(Error::device(&*self.label, why));
        }
        Ok(Some(Box::new(GpuMemory::lent(self, address, bytes))))
    }

    fn memory_of_process(
        self: Arc<Self>,
        name: [u8; 64],
        bytes: u64,
    ) -> Result<Box<dyn DeviceMemory>, Error> {
        Ok(Box::new(GpuMemory::of_process(self, name, bytes)?))
    }

    fn reach(&self, other: &dyn Backend) -> Result<bool, Error> {
        let Some(other) = (other as &dyn Any).downcast_ref::<Gpu>() else { return Ok(false) };
        let operation = format!("reaching the memory of {}", other.label);
        self.check(&operation, self.context.reach(&other.context)).map(|()| true)
    }

    fn takes_nccl(&self) -> bool {
        !nccl::is_declined()
    }

    fn nccl_id(&self) -> Result<Vec<u8>, Error> {
        communicator::new_id()
    }

    fn communicator(
        self: Arc<Self>,
        id: &[u8],
        rank: usize,
        size: usize,
        is_off: &dyn Fn() -> Option<String>,
        until: Instant,
    ) -> Result<Arc<dyn Communicator>, Error> {
        Ok(Arc::new(GpuCommunicator::new(self, id, rank, size, is_off, until)?))
    }
}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.label, self.name)
    }
}

fn attributes(context: &Context, cuda_version: (u32, u32)) -> Result<Attributes, Failure> {
    // The library computes with these numbers: they have to be positive, and too small to overflow.
    let count = |attribute: Attribute, most: u32| {
        let value = context.attribute(attribute)?;
        match u32::try_from(value) {
            Ok(count) if (1..=most).contains(&count) => Ok(count),
            _ => Err(Failure::odd(format!("{} is {value}", attribute.name))),
        }
    };
    let any = i32::MAX.unsigned_abs();
    // A driver returns zero for a number that it does not know.
    let known = |attribute: Attribute| {
        let value = u32::try_from(context.attribute(attribute)?).unwrap_or(0);
        Ok::<_, Failure>(Some(value).filter(|&value| value > 0))
    };
    Ok(Attributes {
        multiprocessors: count(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 1 << 16)?,
        warp_size: count(CU_DEVICE_ATTRIBUTE_WARP_SIZE, 1 << 10)?,
        max_threads_per_block: count(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1 << 20)?,
        max_block: [
            count(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, any)?,
            count(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, any)?,
            count(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, any)?,
        ],
        max_grid: [
            count(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, any)?,
            count(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, any)?,
            count(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, any)?,
        ],
        shared_bytes: count(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, any)?,
        shared_bytes_opt_in: count(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, any)?,
        compute_capability: (
            count(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 1 << 10)?,
            u32::try_from(context.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?)
                .ok()
                .filter(|minor| *minor < 10)
                .ok_or_else(|| Failure::odd("the compute capability has no minor number"))?,
        ),
        registers: known(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR)?,
        threads_per_multiprocessor: known(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?,
        l2_bytes: known(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?.map(u64::from),
        clock_khz: known(CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?,
        memory_clock_khz: known(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)?,
        memory_bus_bits: known(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)?,
        cuda_version: Some(cuda_version),
        cooperative: context.attribute(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH)? != 0,
        reaches_host_memory: context.attribute(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS)? != 0,
    })
}
