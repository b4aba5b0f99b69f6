//! What stands in the place of the GPU backend where the feature `cuda` is off: its types, without
//! values.
//!
//! So the rest of the device layer is written once. What none of these functions can be called
//! with, the compiler knows.

use std::ffi::c_void;
use std::sync::Arc;
use std::time::Instant;

use crate::Error;
use crate::device::attributes::Attributes;
use crate::device::function::{FunctionAttributes, Modules};
use crate::device::signature::Packed;
use crate::simt::Param;

/// What the driver would say of its devices.
pub(crate) struct Driver {
    pub(crate) devices: usize,
    never: Never,
}

/// There is none.
pub(crate) fn driver() -> Result<Driver, Error> {
    Err(Error::device("CUDA", "linrec was built without the feature `cuda`"))
}

/// No value has this type.
#[derive(Debug, Clone, Copy)]
enum Never {}

#[derive(Debug)]
pub(crate) struct Gpu {
    never: Never,
    pub(crate) modules: Modules<GpuModule>,
}

impl Gpu {
    pub(crate) fn open(_ordinal: usize) -> Result<Arc<Gpu>, Error> {
        driver().map(|driver| match driver.never {})
    }

    pub(crate) fn label(&self) -> &str {
        match self.never {}
    }

    pub(crate) fn name(&self) -> &str {
        match self.never {}
    }

    pub(crate) fn attributes(&self) -> &Attributes {
        match self.never {}
    }

    pub(crate) fn memory(&self) -> Result<(u64, u64), Error> {
        match self.never {}
    }

    pub(crate) fn synchronize(&self) -> Result<(), Error> {
        match self.never {}
    }

    pub(crate) fn event(&self) -> Result<GpuEvent, Error> {
        match self.never {}
    }

    pub(crate) fn record(&self, _event: &GpuEvent, _stream: &GpuStream) -> Result<(), Error> {
        match self.never {}
    }

    pub(crate) fn elapsed_ms(&self, _start: &GpuEvent, _end: &GpuEvent) -> Result<f64, Error> {
        match self.never {}
    }

    pub(crate) fn wait_for_stream(&self, _stream: &GpuStream) -> Result<(), Error> {
        match self.never {}
    }

    pub(crate) fn wait_for_event(
        &self,
        _stream: &GpuStream,
        _event: &GpuEvent,
    ) -> Result<(), Error> {
        match self.never {}
    }

    pub(crate) fn reach(&self, _other: &Gpu) -> Result<(), Error> {
        match self.never {}
    }

    pub(crate) fn default_stream(&self) -> GpuStream {
        match self.never {}
    }

    pub(crate) fn new_stream(&self) -> Result<GpuStream, Error> {
        match self.never {}
    }

    pub(crate) fn lent_stream(&self, _raw: *mut c_void) -> GpuStream {
        match self.never {}
    }

    pub(crate) fn launch(
        &self,
        _stream: &GpuStream,
        launch: &GpuLaunch,
        _memories: &[(&GpuMemory, bool)],
    ) -> Result<(), Error> {
        match launch.kernel.never {}
    }
}

#[derive(Debug)]
pub(crate) struct GpuModule {
    pub(crate) kernels: Vec<Arc<GpuKernel>>,
}

impl GpuModule {
    pub(crate) fn load(gpu: &Gpu, _ptx: &str) -> Result<GpuModule, Error> {
        match gpu.never {}
    }
}

#[derive(Debug)]
pub(crate) struct GpuKernel {
    pub(crate) name: Arc<str>,
    pub(crate) params: Vec<Param>,
    pub(crate) room: usize,
    pub(crate) attributes: FunctionAttributes,
    never: Never,
}

impl GpuKernel {
    pub(crate) fn occupancy(&self, _gpu: &Gpu, _threads: u32, _shared: u32) -> Result<u32, Error> {
        match self.never {}
    }
}

#[expect(dead_code, reason = "nothing reads what cannot be made")]
pub(crate) struct GpuLaunch<'a> {
    pub(crate) kernel: &'a GpuKernel,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared_bytes: u32,
    pub(crate) cooperative: bool,
    pub(crate) params: Packed,
}

#[derive(Debug)]
pub(crate) struct GpuMemory(Never);

impl GpuMemory {
    pub(crate) fn new(gpu: &Arc<Gpu>, _bytes: u64) -> Result<GpuMemory, Error> {
        match gpu.never {}
    }

    pub(crate) fn for_peers(gpu: &Arc<Gpu>, _bytes: u64) -> Result<GpuMemory, Error> {
        match gpu.never {}
    }

    pub(crate) fn handle(&self) -> Result<[u8; 64], Error> {
        match self.0 {}
    }

    pub(crate) fn of_process(
        gpu: &Arc<Gpu>,
        _handle: [u8; 64],
        _bytes: u64,
    ) -> Result<GpuMemory, Error> {
        match gpu.never {}
    }

    pub(crate) fn of_stream(
        gpu: &Arc<Gpu>,
        _stream: &GpuStream,
        _bytes: u64,
    ) -> Result<GpuMemory, Error> {
        match gpu.never {}
    }

    pub(crate) fn lent(gpu: &Arc<Gpu>, _address: u64, _bytes: u64) -> GpuMemory {
        match gpu.never {}
    }

    pub(crate) fn address(&self, _offset: u64) -> u64 {
        match self.0 {}
    }

    pub(crate) fn write(&self, _offset: u64, _bytes: &[u8]) -> Result<(), Error> {
        match self.0 {}
    }

    pub(crate) fn read<T>(&self, _offset: u64, _values: Vec<T>) -> Result<Vec<T>, Error> {
        match self.0 {}
    }

    pub(crate) fn fill(&self, _offset: u64, _bytes: u64, _byte: u8) -> Result<(), Error> {
        match self.0 {}
    }
}

#[derive(Debug)]
pub(crate) struct Communicator(Never);

impl Communicator {
    pub(crate) fn new(
        gpu: &Arc<Gpu>,
        _id: &UniqueId,
        _rank: usize,
        _size: usize,
        _is_off: &dyn Fn() -> Option<String>,
        _until: Instant,
    ) -> Result<Communicator, Error> {
        match gpu.never {}
    }

    pub(crate) fn all_gather(
        &self,
        _mine: (&GpuMemory, u64),
        _all: (&GpuMemory, u64),
        _bytes: usize,
        _is_off: &dyn Fn() -> Option<String>,
        _until: Instant,
    ) -> Result<(), Error> {
        match self.0 {}
    }

    pub(crate) fn send(
        &self,
        _array: (&GpuMemory, u64),
        _bytes: usize,
        _to: usize,
        _is_off: &dyn Fn() -> Option<String>,
        _until: Instant,
    ) -> Result<(), Error> {
        match self.0 {}
    }

    pub(crate) fn receive(
        &self,
        _array: (&GpuMemory, u64),
        _bytes: usize,
        _from: usize,
        _is_off: &dyn Fn() -> Option<String>,
        _until: Instant,
    ) -> Result<(), Error> {
        match self.0 {}
    }

    pub(crate) fn broadcast(
        &self,
        _array: (&GpuMemory, u64),
        _bytes: usize,
        _root: usize,
        _is_off: &dyn Fn() -> Option<String>,
        _until: Instant,
    ) -> Result<(), Error> {
        match self.0 {}
    }

    pub(crate) fn abort(&self, _why: &str) {
        match self.0 {}
    }
}

#[derive(Debug)]
pub(crate) struct UniqueId(Never);

pub(crate) fn nccl_is_declined() -> bool {
    false
}

impl UniqueId {
    pub(crate) fn new() -> Result<UniqueId, Error> {
        driver().map(|driver| match driver.never {})
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self.0 {}
    }

    pub(crate) fn from_bytes(_bytes: &[u8]) -> Option<UniqueId> {
        None
    }
}

#[derive(Debug)]
pub(crate) struct GpuGraph(Never);

impl GpuGraph {
    pub(crate) fn new(gpu: &Arc<Gpu>, _launches: &[GpuLaunch]) -> Result<GpuGraph, Error> {
        match gpu.never {}
    }

    pub(crate) fn replay(
        &self,
        _stream: &GpuStream,
        _memories: &[(&GpuMemory, bool)],
    ) -> Result<(), Error> {
        match self.0 {}
    }
}

#[derive(Debug, Clone)]
pub(crate) struct GpuStream(Never);

impl GpuStream {
    pub(crate) fn is_lent(&self) -> bool {
        match self.0 {}
    }
}

#[derive(Debug)]
pub(crate) struct GpuEvent(Never);
