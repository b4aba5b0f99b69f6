//! A GPU: its context, its default stream, and what it is like.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};

use cudarc::driver::sys::CUdevice_attribute as Attribute;

use super::code::Failure;
use super::context::Context;
use super::handles::{RawEvent, RawStream};
use super::order::{GpuStream, Order};
use super::{GpuModule, driver, error};
use crate::Error;
use crate::device::attributes::Attributes;
use crate::device::function::Modules;
use crate::device::lock::lock;

/// A GPU that is in use.
pub(crate) struct Gpu {
    pub(super) context: Arc<Context>,
    /// The stream of a buffer's whole life: allocation, copies and release.
    pub(super) home: Arc<RawStream>,
    pub(super) order: Mutex<Order>,
    pub(crate) modules: Modules<GpuModule>,
    label: String,
    name: String,
    attributes: Attributes,
    /// The error since which nothing on it can be used, as a sentence.
    lost: OnceLock<String>,
}

/// An event that can be timed.
#[derive(Debug)]
pub(crate) struct GpuEvent(RawEvent);

impl Gpu {
    /// The GPU with this ordinal, always the same one; an error once it has been lost.
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
        let home = Arc::new(RawStream::home(context.clone()));
        let (order, modules, lost) = (Mutex::default(), Modules::default(), OnceLock::new());
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
        self.check("asking for the free memory", self.context.memory())
    }

    /// Waits until everything on the device is done.
    pub(crate) fn synchronize(&self) -> Result<(), Error> {
        self.check("waiting for the device", self.context.synchronize())
    }

    /// A new event.
    pub(crate) fn event(&self) -> Result<GpuEvent, Error> {
        self.check("making an event", RawEvent::new(&self.context, true)).map(GpuEvent)
    }

    /// Puts an event behind all work that a stream has so far.
    pub(crate) fn record(&self, event: &GpuEvent, stream: &GpuStream) -> Result<(), Error> {
        self.check("recording an event", event.0.record(&stream.stream))
    }

    /// The time between two events, which must have been recorded.
    pub(crate) fn elapsed_ms(&self, start: &GpuEvent, end: &GpuEvent) -> Result<f64, Error> {
        self.check("timing", start.0.elapsed_ms(&end.0))
    }

    pub(crate) fn wait_for_stream(&self, stream: &GpuStream) -> Result<(), Error> {
        self.check("waiting for a stream", stream.stream.synchronize())
    }

    pub(crate) fn wait_for_event(&self, stream: &GpuStream, event: &GpuEvent) -> Result<(), Error> {
        self.check("waiting for an event", stream.stream.wait(&event.0))
    }

    /// Lets kernels of this GPU reach the memory of another one that was had for it:
    /// [`GpuMemory::for_peers`](super::GpuMemory::for_peers).
    pub(crate) fn reach(&self, other: &Gpu) -> Result<(), Error> {
        let operation = format!("reaching the memory of {}", other.label);
        self.check(&operation, self.context.reach(&other.context))
    }

    /// The stream that is there from the beginning.
    pub(crate) fn default_stream(&self) -> GpuStream {
        GpuStream::home(self.home.clone())
    }

    /// Notices an error that nobody is told of, if it ends the use of the device.
    pub(super) fn notice(&self, operation: &str, failure: &Failure) {
        if error::is_lost(failure) {
            let last_kernel = lock(&self.order).last_kernel.clone();
            // Only the first says what happened; those after it are its echo.
            self.lost.get_or_init(|| error::sentence(operation, failure, last_kernel.as_deref()));
        }
    }

    /// What the driver returned, with an error as a sentence about `operation`.
    pub(crate) fn check<R>(&self, operation: &str, result: Result<R, Failure>) -> Result<R, Error> {
        result.map_err(|failure| {
            self.notice(operation, &failure);
            let last_kernel = lock(&self.order).last_kernel.clone();
            error::explain(&self.label, operation, &failure, last_kernel.as_deref())
        })
    }
}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.label, self.name)
    }
}

fn attributes(context: &Context, cuda_version: (u32, u32)) -> Result<Attributes, Failure> {
    use Attribute::*;
    // What the library counts with has to be a count, and of a size that nothing overflows with.
    let count = |attribute: Attribute, most: u32| {
        let value = context.attribute(attribute)?;
        match u32::try_from(value) {
            Ok(count) if (1..=most).contains(&count) => Ok(count),
            _ => Err(Failure::odd(format!("{attribute:?} is {value}"))),
        }
    };
    let any = i32::MAX.unsigned_abs();
    // Zero is how a driver says that it does not know.
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
