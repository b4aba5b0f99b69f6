//! Kernels on an NVIDIA GPU, or on the emulator of one: the same code for both.
//!
//! A [`Device`] has memory ([`Buffer`]), takes kernels as PTX ([`Module`], [`Function`]) and runs them
//! ([`Launch`]) in the order of a [`Stream`]. [`Device::auto`] is the first GPU of the machine, or
//! [the emulator](crate::simt) where there is none; results are the same, bit for bit.
//!
//! ```
//! use linrec::device::{AutoRecurrence, Device};
//!
//! let device = Device::auto()?;
//! let recurrence = AutoRecurrence::<f32>::new(&device);
//!
//! let inputs = device.upload(&[1.0_f32, 2.0, 3.0, 4.0])?;
//! let coeffs = device.upload(&[0.0_f32, 1.0, 0.5, 0.5])?;
//! let mut outputs = device.allocate(4)?;
//! recurrence.forward_into(&inputs, &coeffs, &mut outputs, (1, 4), Default::default())?;
//! assert_eq!(outputs.download()?, [1.0, 3.0, 4.5, 6.25]);
//! # Ok::<(), linrec::Error>(())
//! ```
//!
//! # What is here
//!
//! - [`Device`], [`Attributes`], [`Driver`]: what there is, and what it is like;
//! - [`Buffer`] of plain numbers, [`Storage`] for the numbers that recurrences are made of;
//! - [`Module`], [`Function`], [`Launch`] with its [`Argument`]s;
//! - [`Stream`], [`Event`] and [`Bench`]: order and time;
//! - [`Graph`]: launches that [`Device::record`] writes down once and one call repeats;
//! - [`AutoRecurrence`]: the recurrence over buffers, by the kernel that is the fastest for each shape;
//!   [`Recurrence`]: by the kernel that one names;
//! - [`AutoEngine`] (from [`Device::engine`]) and [`KernelEngine`]: the same as an [`Engine`](crate::Engine)
//!   over arrays of the host;
//! - [`nvrtc`]: CUDA C++ to PTX at run time.
//!
//! # What a GPU and the emulator do differently
//!
//! The emulator explains a kernel's mistakes ([`Error::Kernel`]), counts what
//! the kernel did ([`Launched::counters`]), records traces, and runs single blocks of a grid; all of
//! it is over when `run` returns. A GPU works asynchronously and notices few mistakes; those it
//! notices show in a later operation, and end the use of the device.
//!
//! # Safety
//!
//! Launching is a safe function, although no compiler checks the kernel. What it rests on:
//!
//! 1. Kernels are given device memory only, through buffers of plain numbers of which every bit
//!    pattern is valid. The host sees them in copies only and holds no reference to them, so that
//!    a kernel that writes wrong numbers, writes to the wrong buffer or races with another spoils
//!    numbers and nothing else.
//! 2. The number of arguments and the size of each are those that the PTX declares: the driver reads
//!    nothing of the host beyond them.
//! 3. Buffers, modules and contexts live until the work queued on them is over, and as long as a graph that
//!    would use them again.
//! 4. An address outside of every buffer stops the kernel with an error: at once on the emulator, and
//!    on a GPU, whose address space holds the program's own device memory and nothing of the host.
//!
//! The last holds for GPUs that do not share the host's page tables. Where they do
//! ([`Attributes::reaches_host_memory`], as on Grace Hopper or under Linux's heterogeneous memory
//! management), a wild address could be one of the host's. PTX is machine code: load what you trust,
//! and try a new kernel on the emulator first, which finds every wild address.

mod argument;
mod attributes;
mod bench;
mod buffer;
mod choose;
mod copying;
mod cuda;
mod dim;
mod emulator;
mod engine;
mod function;
mod graph;
mod launch;
mod launched;
pub mod nvrtc;
mod recording;
mod recurrence;
mod signature;
mod storage;
mod stream;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytemuck::Pod;

#[cfg(feature = "contract")]
pub use choose::under_test;

pub use argument::Argument;
pub use attributes::Attributes;
pub use bench::Bench;
pub use buffer::Buffer;
pub use cuda::{Driver, driver};
pub use dim::Dim;
pub use engine::{AutoEngine, KernelEngine};
pub use function::{Function, FunctionAttributes, Module};
pub use graph::Graph;
pub use launch::Launch;
pub use launched::Launched;
pub use recurrence::{AutoRecurrence, BackwardOptions, ForwardOptions, Recurrence, Shape};
pub use storage::Storage;
pub use stream::{Event, Stream};

use crate::Error;
use crate::kernels::Program;
use cuda::Gpu;
use emulator::Emulator;
use stream::Queue;

/// A GPU, or the emulator of one. A clone is the same device.
#[derive(Clone)]
pub struct Device {
    backend: Backend,
}

#[derive(Clone)]
enum Backend {
    Cuda(Arc<Gpu>),
    Simt(Arc<Emulator>),
}

impl Device {
    /// The NVIDIA GPU with this ordinal, counted from 0. Calling it again gives the same device.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if there is no driver or no such GPU, with what to do about it.
    pub fn cuda(ordinal: usize) -> Result<Device, Error> {
        Ok(Device { backend: Backend::Cuda(Gpu::open(ordinal)?) })
    }

    /// The emulator. There is one in a program, and it is always there.
    pub fn simt() -> Device {
        static EMULATOR: OnceLock<Arc<Emulator>> = OnceLock::new();
        let emulator = EMULATOR.get_or_init(|| Arc::new(Emulator::new()));
        Device { backend: Backend::Simt(emulator.clone()) }
    }

    /// What it is called: `NVIDIA H200`, `emulator`.
    pub fn name(&self) -> &str {
        match &self.backend {
            Backend::Cuda(gpu) => gpu.name(),
            Backend::Simt(_) => "emulator",
        }
    }

    /// Its short name, for engines, tables and `LINREC_DEVICE`: `cuda:0`, `simt`.
    pub fn label(&self) -> &str {
        match &self.backend {
            Backend::Cuda(gpu) => gpu.label(),
            Backend::Simt(_) => Emulator::LABEL,
        }
    }

    /// Whether it is the emulator.
    pub fn is_simt(&self) -> bool {
        matches!(self.backend, Backend::Simt(_))
    }

    /// Its limits and sizes.
    pub fn attributes(&self) -> Attributes {
        match &self.backend {
            Backend::Cuda(gpu) => gpu.attributes().clone(),
            Backend::Simt(_) => Emulator::attributes(),
        }
    }

    /// Bytes of memory: free, and in all. On the emulator that is what arrays may add up to; it takes
    /// host memory only for what is touched of them.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the device fails.
    pub fn memory(&self) -> Result<(u64, u64), Error> {
        match &self.backend {
            Backend::Cuda(gpu) => gpu.memory(),
            Backend::Simt(emulator) => {
                let capacity = emulator.memory.capacity();
                Ok((capacity.saturating_sub(emulator.memory.used()), capacity))
            }
        }
    }

    /// Waits until everything queued on it is done.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the device fails, or if a kernel queued before has failed.
    pub fn synchronize(&self) -> Result<(), Error> {
        recording::refuse(self, "waiting for the device")?;
        match &self.backend {
            Backend::Cuda(gpu) => gpu.synchronize(),
            Backend::Simt(_) => Ok(()),
        }
    }

    /// An array of `len` numbers, with anything in it; the emulator reports a kernel that reads an
    /// element before one has written it.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if there is not enough memory.
    pub fn allocate<T: Pod>(&self, len: usize) -> Result<Buffer<T>, Error> {
        let number = std::any::type_name::<T>().rsplit("::").next().unwrap_or_default();
        self.allocate_named(&format!("{number}[{len}]"), len)
    }

    /// The same with a name, for the emulator's reports.
    ///
    /// # Errors
    ///
    /// As for [`Device::allocate`].
    pub fn allocate_named<T: Pod>(&self, name: &str, len: usize) -> Result<Buffer<T>, Error> {
        Buffer::new(self, name, len)
    }

    /// An array with these values.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if there is not enough memory, or the copy fails.
    pub fn upload<T: Pod>(&self, values: &[T]) -> Result<Buffer<T>, Error> {
        let mut buffer = self.allocate(values.len())?;
        buffer.upload(values)?;
        Ok(buffer)
    }

    /// Loads the kernels of a PTX text. The same text is loaded once.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] with the line that the emulator does not know, or with what the driver's
    /// compiler says.
    pub fn module(&self, ptx: &str) -> Result<Module, Error> {
        Module::load(self, ptx)
    }

    /// Loads the kernels of a CUDA C++ program: PTX that is shipped or was compiled before, or else
    /// compiled now by [`nvrtc`].
    ///
    /// ```
    /// use linrec::device::Device;
    /// use linrec::kernels::program;
    ///
    /// let program = program("linrec_ref.cu").unwrap();
    /// # let program = linrec::kernels::KernelChoice::default().program(linrec::kernels::ElementType::F32);
    /// let module = Device::simt().program(&program)?;
    /// let kernel = module.function("linrec_ref_fwd<float, false>")?;
    /// assert_eq!(kernel.params().len(), 7);
    /// # Ok::<(), linrec::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if it has to be compiled and cannot be, or if the device refuses it.
    pub fn program(&self, program: &Program) -> Result<Module, Error> {
        let architecture = match &self.backend {
            Backend::Cuda(gpu) => {
                let (major, minor) = gpu.attributes().compute_capability;
                10 * major + minor
            }
            Backend::Simt(_) => nvrtc::SHIPPED_ARCHITECTURE,
        };
        self.module(nvrtc::obtain(program, architecture)?.text())
    }

    /// The stream that is always there.
    pub fn stream(&self) -> Stream {
        let queue = match &self.backend {
            Backend::Cuda(gpu) => Queue::Cuda(gpu.default_stream()),
            Backend::Simt(_) => Queue::Simt,
        };
        Stream { device: self.clone(), queue }
    }

    /// A further stream.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the device fails.
    pub fn new_stream(&self) -> Result<Stream, Error> {
        let queue = match &self.backend {
            Backend::Cuda(gpu) => Queue::Cuda(gpu.new_stream()?),
            Backend::Simt(_) => Queue::Simt,
        };
        Ok(Stream { device: self.clone(), queue })
    }

    /// An event, to be recorded in a stream.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the device fails.
    pub fn event(&self) -> Result<Event, Error> {
        Event::new(self)
    }

    /// An error if `other` is not this device; it names what lies there, for `operation`.
    fn must_be(&self, other: &Device, operation: &str, what: &str) -> Result<(), Error> {
        if self == other {
            return Ok(());
        }
        let (here, there) = (self.label(), other.label());
        let again = if here == there { ", opened anew after an error" } else { "" };
        let message = format!("{operation}: {what} is on {there}{again}; keep all on one device");
        Err(Error::device(here, message))
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Device) -> bool {
        match (&self.backend, &other.backend) {
            (Backend::Cuda(one), Backend::Cuda(other)) => Arc::ptr_eq(one, other),
            (Backend::Simt(one), Backend::Simt(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

impl Eq for Device {}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.label(), self.name())
    }
}

/// Locks; what a panicking thread left behind is as good as any, as every change here is of one step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
