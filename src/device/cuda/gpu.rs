//! A GPU: its context, its default stream, and what it is like.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use cudarc::driver::sys::CUdevice_attribute as Attribute;
use cudarc::driver::{CudaContext, CudaEvent, CudaStream, DriverError, sys};

use super::order::{GpuStream, Order};
use super::{GpuModule, driver, error};
use crate::Error;
use crate::device::attributes::Attributes;
use crate::device::function::Modules;
use crate::device::lock;

/// A GPU that is in use.
pub(crate) struct Gpu {
    pub(super) context: Arc<CudaContext>,
    /// The stream of a buffer's whole life: allocation, copies and release.
    pub(super) home: Arc<CudaStream>,
    pub(super) order: Mutex<Order>,
    pub(crate) modules: Modules<GpuModule>,
    label: String,
    name: String,
    attributes: Attributes,
    lost: AtomicBool,
}

impl Gpu {
    /// The GPU with this ordinal; the same one again as long as it works.
    pub(crate) fn open(ordinal: usize) -> Result<Arc<Gpu>, Error> {
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
        // A lost context comes back only when nothing holds it any more, this table included.
        open.retain(|_, gpu| !gpu.lost.load(Relaxed));
        if let Some(gpu) = open.get(&ordinal) {
            return Ok(gpu.clone());
        }
        let gpu = Arc::new(Gpu::new(ordinal, label, driver.cuda_version)?);
        open.insert(ordinal, gpu.clone());
        Ok(gpu)
    }

    #[allow(unsafe_code)]
    fn new(ordinal: usize, label: String, cuda_version: (u32, u32)) -> Result<Gpu, Error> {
        let failed = |error| error::explain(&label, "opening the device", error, None);
        let context = CudaContext::new(ordinal).map_err(failed)?;
        // SAFETY: cudarc's event tracking is for its own slices. (1) This crate makes none, but holds
        // device memory by itself; (2) and orders all work on it: see `order`.
        unsafe { context.disable_event_tracking() };
        let name = context.name().map_err(failed)?;
        let attributes = attributes(&context, cuda_version).map_err(failed)?;
        let home = context.default_stream();
        let (order, modules, lost) = (Mutex::default(), Modules::default(), AtomicBool::new(false));
        Ok(Gpu { context, home, order, modules, label, name, attributes, lost })
    }

    pub(crate) fn label(&self) -> &str {
        &self.label
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// Free and total bytes of memory.
    pub(crate) fn memory(&self) -> Result<(u64, u64), Error> {
        let (free, total) =
            self.check("asking for the free memory", self.context.mem_get_info())?;
        Ok((free as u64, total as u64))
    }

    /// Waits until everything on the device is done.
    pub(crate) fn synchronize(&self) -> Result<(), Error> {
        self.check("waiting for the device", self.context.synchronize())
    }

    /// A new event that can be timed.
    pub(crate) fn event(&self) -> Result<CudaEvent, Error> {
        let flags = Some(sys::CUevent_flags::CU_EVENT_DEFAULT);
        self.check("making an event", self.context.new_event(flags))
    }

    /// Puts an event behind all work that a stream has so far.
    pub(crate) fn record(&self, event: &CudaEvent, stream: &GpuStream) -> Result<(), Error> {
        self.check("recording an event", event.record(&stream.stream))
    }

    /// The time between two events, which must have been recorded.
    pub(crate) fn elapsed_ms(&self, start: &CudaEvent, end: &CudaEvent) -> Result<f64, Error> {
        Ok(self.check("timing", start.elapsed_ms(end))?.into())
    }

    pub(crate) fn wait_for_stream(&self, stream: &GpuStream) -> Result<(), Error> {
        self.check("waiting for a stream", stream.stream.synchronize())
    }

    pub(crate) fn wait_for_event(
        &self,
        stream: &GpuStream,
        event: &CudaEvent,
    ) -> Result<(), Error> {
        self.check("waiting for an event", stream.stream.wait(event))
    }

    /// The stream that is there from the beginning.
    pub(crate) fn default_stream(&self) -> GpuStream {
        GpuStream::home(self.home.clone())
    }

    /// Notices an error after which the context is of no use.
    pub(super) fn notice(&self, error: DriverError) {
        if error::is_lost(error.0) {
            self.lost.store(true, Relaxed);
        }
    }

    /// What the driver returned, with an error as a sentence about `operation`.
    pub(crate) fn check<R>(
        &self,
        operation: &str,
        result: Result<R, DriverError>,
    ) -> Result<R, Error> {
        result.map_err(|error| {
            self.notice(error);
            let last_kernel = lock(&self.order).last_kernel.clone();
            error::explain(&self.label, operation, error, last_kernel.as_deref())
        })
    }
}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.label, self.name)
    }
}

fn attributes(context: &CudaContext, cuda_version: (u32, u32)) -> Result<Attributes, DriverError> {
    use sys::CUdevice_attribute_enum::*;
    let get = |attribute: Attribute| -> Result<u32, DriverError> {
        Ok(context.attribute(attribute)?.try_into().unwrap_or(0))
    };
    // Zero is how a driver says that it does not know.
    let known = |attribute| Ok::<_, DriverError>(Some(get(attribute)?).filter(|&value| value > 0));
    Ok(Attributes {
        multiprocessors: get(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        warp_size: get(CU_DEVICE_ATTRIBUTE_WARP_SIZE)?,
        max_threads_per_block: get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        max_block: [
            get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X)?,
            get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y)?,
            get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)?,
        ],
        max_grid: [
            get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)?,
            get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)?,
            get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)?,
        ],
        shared_bytes: get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)?,
        shared_bytes_opt_in: get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        compute_capability: (
            get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        registers: known(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR)?,
        threads_per_multiprocessor: known(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?,
        l2_bytes: known(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?.map(u64::from),
        clock_khz: known(CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?,
        memory_clock_khz: known(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)?,
        memory_bus_bits: known(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)?,
        cuda_version: Some(cuda_version),
        reaches_host_memory: get(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS)? != 0,
    })
}
