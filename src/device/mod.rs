//! Kernels on an NVIDIA GPU, or on the emulator of one: the same code for both.
//!
//! A [`Device`] has memory ([`Buffer`]), takes kernels as PTX ([`Module`], [`Function`]) and runs
//! them ([`Launch`]) in the order of a [`Stream`]. [`Device::auto`] is the first GPU of the
//! machine, or [the emulator](crate::simt) where there is none; results are the same, bit for bit.
//!
//! ```
//! use linrec::device::{Choice, Device, Recurrence};
//!
//! let device = Device::auto()?;
//! let recurrence = Recurrence::<f32>::new(&device, Choice::Fastest)?;
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
//! - [`Recurrence`]: the recurrence over buffers, by the kernel that one names or the fastest for
//!   each shape ([`Choice`]);
//! - [`SelectiveScan`]: Mamba's selective scan over buffers, as one kernel;
//! - [`KernelEngine`] (also from [`Device::engine`]): an [`Engine`](crate::Engine) around it, over
//!   arrays of the host;
//! - [`nvrtc`]: CUDA C++ to PTX at run time.
//!
//! # What a GPU and the emulator do differently
//!
//! The emulator explains a kernel's mistakes ([`Error::Kernel`]), counts what the kernel did
//! ([`Launched::counters`]), records traces, and runs single blocks of a grid; all of it is over
//! when `run` returns. A GPU works asynchronously and notices few mistakes; those it notices show
//! in a later operation.
//!
//! A GPU on which a kernel has failed (an illegal address, an illegal instruction, a `trap`, an
//! `assert`) is lost to the process, with all that is on it: whatever is asked of it from then on
//! is an error. CUDA keeps that error for the process and not for the context, so that dropping
//! everything and opening the device again does not help. Only a new process does. A program that
//! has to go on runs kernels it is not sure of in a process of their own, or on the emulator, which
//! loses nothing.
//!
//! # After `fork`
//!
//! A process that `fork` made, without `exec`, has neither its parent's CUDA nor the threads of its
//! parent's `rayon` pool. If the parent has used a device, an operation in the child fails or
//! **waits for ever**; the emulator, whose blocks run in that pool, waits for ever as well. Open
//! devices after the fork, and in one of the two only, or start workers as new programs (in Python:
//! `multiprocessing` with `spawn`).
//!
//! # Safety
//!
//! Launching is a safe function, although no compiler checks the kernel. What it rests on:
//!
//! 1. Kernels are given device memory only, through buffers of plain numbers of which every bit
//!    pattern is valid. The host sees them in copies only and holds no reference to them, so that
//!    a kernel that writes wrong numbers, writes to the wrong buffer or races with another spoils
//!    numbers and nothing else.
//! 2. The number of arguments and the size of each are those that the PTX declares
//!    ([`Declarations`](crate::simt::Declarations)) and, where the driver says it (from CUDA 12.4
//!    on), those that it compiled. It is given copies, with zeros behind them: it reads nothing
//!    else of the host.
//! 3. Buffers, modules and contexts live until the work queued on them is over, and as long as a
//!    graph that would use them again. Of memory and streams that are [lent](Device::lent_buffer),
//!    the lender has promised it. The host's side of a copy lives until the copy is over, and is
//!    kept for good where an error leaves that open.
//! 4. The kernel stays within the buffers that it is given. This is the one condition that
//!    **nothing guarantees on a GPU**. The emulator stops a kernel at every address outside of its
//!    buffers. A GPU stops it only where nothing at all is mapped, and what is mapped is more than
//!    the program's buffers: memory of the driver, and some of the host's. Of 118 ranges of memory
//!    that a process had mapped, a kernel on an H200 could read 19. Where a GPU shares the host's
//!    page tables ([`Attributes::reaches_host_memory`], as on Grace Hopper or under Linux's
//!    heterogeneous memory management), it can reach all of them.
//!
//! So PTX is machine code, and running it is as safe as running any other: load what you trust, and
//! try a new kernel on the emulator first, which finds every address that is wrong.
//!
//! Blocks that wait for each other are safe in a [cooperative](Launch::cooperative) launch: it has
//! all of them on the device at once, or it is refused. What nothing guarantees on a GPU is that
//! they wait for what comes. A kernel that waits for ever spoils nothing, but the device is busy
//! from then on, whatever waits for it does not return, and only the end of the process ends it.
//! The emulator reports such a kernel.

mod argument;
mod attributes;
mod bench;
mod bounds;
mod buffer;
mod choose;
mod copying;
#[cfg_attr(not(feature = "cuda"), path = "without_cuda/cuda.rs")]
mod cuda;
// Without the feature there is no such device; its crate is there to say what parameters kernels
// take.
#[cfg_attr(not(feature = "simt"), expect(dead_code))]
mod emulator;
mod engine;
mod function;
mod graph;
mod group;
mod launch;
mod launched;
mod lock;
#[cfg(feature = "cuda")]
pub mod nvrtc;
#[cfg(not(feature = "cuda"))]
#[path = "without_cuda/nvrtc.rs"]
mod nvrtc;
mod recording;
mod recurrence;
mod selective_scan;
#[cfg_attr(not(feature = "cuda"), expect(dead_code))] // some of it is what the driver is given
mod signature;
mod storage;
mod stream;

use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;
#[cfg(feature = "simt")]
use std::sync::OnceLock;

use bytemuck::Pod;

#[cfg(feature = "contract")]
pub use choose::under_test;

pub use argument::{Argument, Bytes};
pub use attributes::Attributes;
pub use bench::Bench;
pub use buffer::Buffer;
#[cfg(feature = "cuda")]
pub use cuda::{Driver, driver};
pub use engine::KernelEngine;
pub use function::{Function, FunctionAttributes, Module};
pub use graph::Graph;
pub use group::{Group, GroupEngine, GroupRecurrence, Links, Part, Rank, Split, Way};
pub use launch::{Dim, Launch};
pub use launched::Launched;
pub use recurrence::{BackwardOptions, Choice, ForwardOptions, Recurrence, Shape};
pub use selective_scan::{
    Exponential, ScanBackwardOptions, ScanCoupling, ScanCouplingGradient, ScanForwardOptions,
    ScanGradients, ScanInputs, ScanShape, SelectiveScan,
};
pub use storage::{Job, Narrowing, Storage, dispatch};
pub use stream::{Event, Stream};

use crate::Error;
use crate::kernels::Program;
use cuda::Gpu;
use emulator::Emulator;
use stream::Queue;

/// A GPU, or the emulator of one. A clone is the same device.
///
/// It belongs to the process that opened it: one made by `fork` cannot use it
/// ([after `fork`](self#after-fork)). And if a kernel fails on a GPU, the process has lost that GPU
/// ([what is different](self#what-a-gpu-and-the-emulator-do-differently)).
#[derive(Clone)]
pub struct Device {
    backend: Backend,
}

#[derive(Clone)]
enum Backend {
    Cuda(Arc<Gpu>),
    #[cfg_attr(not(feature = "simt"), expect(dead_code))]
    Simt(Arc<Emulator>),
}

impl Device {
    /// The NVIDIA GPU with this ordinal, counted from 0. Calling it again gives the same device.
    ///
    /// In a process made by `fork`, do not call it if the parent has: see
    /// [after `fork`](self#after-fork).
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if there is no driver or no such GPU, with what to do about it; if an
    /// error has ended the use of this GPU before, after which only a new process has it again; and
    /// without the feature `cuda`.
    pub fn cuda(ordinal: usize) -> Result<Device, Error> {
        Ok(Device { backend: Backend::Cuda(Gpu::open(ordinal)?) })
    }

    /// The emulator. There is one that takes all cores, and with the feature `simt` it is always
    /// there.
    #[cfg(feature = "simt")]
    pub fn simt() -> Device {
        static EMULATOR: OnceLock<Arc<Emulator>> = OnceLock::new();
        let emulator = EMULATOR.get_or_init(|| Arc::new(Emulator::new()));
        Device { backend: Backend::Simt(emulator.clone()) }
    }

    /// So many further emulated devices, each with memory of its own: `simt:0`, `simt:1`, … They
    /// stand for the GPUs of a [`Group`]. Each does its work on the thread that asks for it, so
    /// that they run side by side where as many threads use them.
    ///
    /// ```
    /// use linrec::device::Device;
    ///
    /// let devices = Device::emulated(3);
    /// assert_eq!(devices[2].label(), "simt:2");
    /// assert!(devices[0] != devices[1] && devices[0] != Device::simt());
    /// ```
    #[cfg(feature = "simt")]
    pub fn emulated(count: usize) -> Vec<Device> {
        (0..count).map(Device::emulated_one).collect()
    }

    #[cfg(feature = "simt")]
    fn emulated_one(number: usize) -> Device {
        Device { backend: Backend::Simt(Arc::new(Emulator::numbered(number))) }
    }

    /// What it is called: `NVIDIA H200`, `emulator`.
    pub fn name(&self) -> &str {
        match &self.backend {
            Backend::Cuda(gpu) => gpu.name(),
            Backend::Simt(_) => "emulator",
        }
    }

    /// Its short name, for engines, tables and `LINREC_DEVICE`: `cuda:0`, `simt`. (`simt:1`, one of
    /// [several](Device::emulated), is for messages alone.)
    pub fn label(&self) -> &str {
        match &self.backend {
            Backend::Cuda(gpu) => gpu.label(),
            Backend::Simt(emulator) => &emulator.label,
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
            Backend::Simt(emulator) => emulator.attributes(),
        }
    }

    /// Bytes of memory: free, and in all. On the emulator that is what arrays may add up to; it
    /// takes host memory only for what is touched of them.
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

    /// An array of `len` numbers, with anything in it, which the emulator's reports call `name`;
    /// the emulator reports a kernel that reads an element before one has written it.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if there is not enough memory.
    pub fn allocate_named<T: Pod>(&self, name: &str, len: usize) -> Result<Buffer<T>, Error> {
        Buffer::new(self, name, len)
    }

    /// An array of `len` zeros: numbers whose bytes are all zero.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if there is not enough memory, if the device fails, or while launches are
    /// being recorded.
    pub fn zeros<T: Pod>(&self, len: usize) -> Result<Buffer<T>, Error> {
        let mut buffer = self.allocate(len)?;
        buffer.zero()?;
        Ok(buffer)
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
    /// [`Error::Device`] with the line that the emulator does not know, if none of the kernels can
    /// run on it (of one among others [`Module::function`] says it), or with what the driver's
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

    /// A stream that another library has made on this GPU, to work in its order: PyTorch's current
    /// stream, say.
    ///
    /// What a call computes on its way lies in memory that is allocated and freed in the stream's
    /// order, so that a call works where the stream is being captured into a graph.
    ///
    /// # Safety
    ///
    /// 1. `handle` is a `CUstream` of the primary context of this GPU (null is its default stream),
    ///    and outlives every clone of the stream.
    /// 2. The order of work that the device otherwise keeps is the caller's on this stream: a
    ///    buffer that is used on it is used on another stream, or dropped, only where that comes
    ///    after this stream's work.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] on the emulator.
    #[allow(unsafe_code)]
    pub unsafe fn lent_stream(&self, handle: *mut c_void) -> Result<Stream, Error> {
        match &self.backend {
            Backend::Cuda(gpu) => {
                Ok(Stream { device: self.clone(), queue: Queue::Cuda(gpu.lent_stream(handle)) })
            }
            Backend::Simt(_) => {
                Err(Error::device(self.label(), "only a GPU has streams of others"))
            }
        }
    }

    /// An array of `len` numbers in memory that another library has allocated on this GPU. Nothing
    /// is copied, and the memory is not freed when the buffer is dropped.
    ///
    /// # Safety
    ///
    /// 1. From `address` on, `len` numbers of type `T` lie in memory of this GPU, which stays
    ///    allocated until the last handle to the buffer is dropped and all work queued on it is
    ///    over.
    /// 2. What else reads or writes there is ordered with that work by the caller.
    /// 3. Where the buffer is written to (as a `&mut Buffer`), nothing relies on the memory keeping
    ///    its contents.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] on the emulator, if the address is not a multiple of the numbers' size, or
    /// if the array leaves the address space.
    #[allow(unsafe_code)]
    pub unsafe fn lent_buffer<T: Pod>(&self, address: u64, len: usize) -> Result<Buffer<T>, Error> {
        Buffer::lent(self, address, len)
    }

    /// An event, to be recorded in a stream.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the device fails.
    pub fn event(&self) -> Result<Event, Error> {
        Event::new(self)
    }

    /// Lets kernels of this device reach memory of another one that was allocated for that
    /// ([`Buffer::for_peers`]): on the emulator, which reaches its own.
    fn reach(&self, other: &Device) -> Result<(), Error> {
        match (&self.backend, &other.backend) {
            _ if self == other => Ok(()),
            (Backend::Cuda(here), Backend::Cuda(there)) => here.reach(there),
            _ => Err(Error::Unsupported {
                engine: self.label().to_owned(),
                what: format!(
                    "reaching the memory of {}, which is a device of its own",
                    other.label()
                ),
            }),
        }
    }

    /// An error if `other` is not this device; it names what lies there, for `operation`.
    fn must_be(&self, other: &Device, operation: &str, what: &str) -> Result<(), Error> {
        if self == other {
            return Ok(());
        }
        let (here, there) = (self.label(), other.label());
        let message = format!("{operation}: {what} is on {there}; keep all on one device");
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
