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
//! # Contents
//!
//! - [`Device`], [`Attributes`], [`Driver`]: the devices of this machine, and their limits;
//! - [`Buffer`] of plain numbers, [`Storage`] for the numbers that recurrences are made of;
//! - [`Module`], [`Function`], [`Launch`] with its [`Argument`]s;
//! - [`Stream`], [`Event`] and [`Bench`]: order and time;
//! - [`Graph`]: launches that [`Device::record`] records once and one call repeats;
//! - [`Recurrence`]: the recurrence over buffers, by a named kernel or the fastest for each shape
//!   ([`Choice`]);
//! - [`SelectiveScan`]: Mamba's selective scan over buffers, as one kernel;
//! - [`KernelEngine`] (also from [`Device::engine`]): an [`Engine`](crate::Engine) around a
//!   recurrence, over arrays of the host; [`Copying`] is one around any kernel that implements
//!   [`OverBuffers`];
//! - [`Group`]: several devices, which work on one recurrence;
//! - [`nvrtc`]: CUDA C++ to PTX at run time.
//!
//! Behind these types are two backends, each in its folder, and one trait between them:
//! `backend.rs` says how that works. The tests are `tests/suite/device`, which run on every device
//! of a machine, and `tests/suite/driver`, which run against a driver that fails on purpose.
//!
//! # How a GPU and the emulator differ
//!
//! The emulator explains a kernel's mistakes ([`Error::Kernel`]), counts what the kernel did
//! ([`Launched::counters`]), records traces, and runs single blocks of a grid. All work is over
//! when `run` returns. A GPU works asynchronously. It notices few mistakes, and reports them in a
//! later operation.
//!
//! A process that runs a failing kernel on a GPU (an illegal address, an illegal instruction, a
//! `trap`, an `assert`) loses this GPU and all that is on it: every later operation is an error.
//! CUDA keeps that error for the process and not for the context, so that dropping everything and
//! opening the device again does not help. Only a new process does. A program that has to go on
//! runs doubtful kernels in another process, or on the emulator, which loses nothing.
//!
//! # After `fork`
//!
//! A process that `fork` made, without `exec`, has neither its parent's CUDA nor the threads of its
//! parent's `rayon` pool. If the parent has used a device, an operation in the child fails or
//! **never returns**. The emulator, whose blocks run in that pool, never returns either. Open
//! devices after the fork, and only in the parent or only in the child, or start workers as new
//! programs (in Python: `multiprocessing` with `spawn`).
//!
//! # Safety
//!
//! Launching is a safe function, although no compiler checks the kernel. It rests on four
//! conditions:
//!
//! 1. Kernels are given device memory only, through buffers of plain numbers of which every bit
//!    pattern is valid. The host sees them in copies only and holds no reference to them, so that
//!    a kernel that writes wrong numbers, writes to the wrong buffer or races with another spoils
//!    numbers and nothing else.
//! 2. The number of arguments and their sizes are those that the PTX declares
//!    ([`Declarations`](crate::simt::Declarations)) and, where the driver returns them (from CUDA
//!    12.4 on), those that it compiled. The driver is given copies with zeros behind them, and
//!    reads nothing else of the host.
//! 3. Buffers, modules and contexts live until the work queued on them is over, and as long as a
//!    graph that would use them again. For [lent](Device::lent_buffer) memory and streams, the
//!    lender has promised this. The host's side of a copy lives until the copy is over, and is
//!    kept for good where an error leaves that open.
//! 4. The kernel stays within the buffers that it is given. This is the one condition that
//!    **nothing guarantees on a GPU**. The emulator stops a kernel at every address outside of its
//!    buffers. A GPU stops it only where nothing at all is mapped, and more is mapped than the
//!    program's buffers: memory of the driver, and some of the host's. Of 118 ranges of memory
//!    that a process had mapped, a kernel on an H200 could read 19. Where a GPU shares the host's
//!    page tables ([`Attributes::reaches_host_memory`], as on Grace Hopper or under Linux's
//!    heterogeneous memory management), it can reach all of them.
//!
//! So PTX is machine code, and running it is as safe as running any other machine code. Load PTX
//! that you trust, and try a new kernel on the emulator first, which finds every wrong address.
//!
//! Blocks that wait for each other are safe in a [cooperative](Launch::cooperative) launch: either
//! all of them are on the device at once, or the launch is refused. Nothing guarantees on a GPU
//! that a block waits for something that comes. A kernel that waits without end spoils nothing, but
//! it keeps the device busy, whoever waits for the device does not return, and only the end of the
//! process ends the kernel. The emulator reports such a kernel.

mod argument;
#[cfg_attr(not(feature = "cuda"), expect(dead_code))] // what only GPUs do
mod backend;
mod bench;
mod buffer;
mod choose;
#[cfg(feature = "cuda")]
mod cuda;
mod engine;
mod function;
mod graph;
mod group;
mod launch;
mod lock;
#[cfg(feature = "cuda")]
pub mod nvrtc;
mod recording;
mod recurrence;
mod selective_scan;
// Each backend packs arguments in another way.
#[cfg_attr(not(all(feature = "cuda", feature = "simt")), expect(dead_code))]
mod signature;
#[cfg(feature = "simt")]
mod simt;
mod storage;
mod stream;

use std::ffi::c_void;
use std::fmt;
use std::ptr;
use std::sync::Arc;
#[cfg(feature = "simt")]
use std::sync::OnceLock;

use bytemuck::Pod;

#[cfg(feature = "contract")]
pub use choose::under_test;

pub use argument::{Argument, Bytes};
pub use backend::Attributes;
pub use bench::Bench;
pub use buffer::Buffer;
#[cfg(feature = "cuda")]
pub use cuda::{Driver, driver};
pub use engine::{Copying, KernelEngine, OverBuffers};
pub use function::{Function, FunctionAttributes, Module};
pub use graph::Graph;
pub use group::{Group, GroupEngine, GroupRecurrence, Links, Part, Rank, Split, Way};
pub use launch::{Dim, Launch, Launched};
pub use recurrence::{BackwardOptions, Choice, ForwardOptions, Recurrence, Shape};
pub use selective_scan::{
    Exponential, ScanBackwardOptions, ScanCoupling, ScanCouplingGradient, ScanForwardOptions,
    ScanGradients, ScanInputs, ScanShape, SelectiveScan,
};
pub use storage::{Job, Narrowing, Storage, dispatch};
pub use stream::{Event, Stream};

use crate::Error;
use crate::kernels::Program;
use backend::Backend;
use stream::Queue;

/// A GPU, or the emulator of one. A clone is the same device.
///
/// Only the process that opened a device can use it, and not a process that `fork` made
/// ([after `fork`](self#after-fork)). If a kernel fails on a GPU, the process loses that GPU
/// ([the differences](self#how-a-gpu-and-the-emulator-differ)).
#[derive(Clone)]
pub struct Device {
    backend: Arc<dyn Backend>,
}

impl Device {
    /// Opens the NVIDIA GPU with this ordinal, counted from 0. Calling it again returns the same
    /// device.
    ///
    /// In a process made by `fork`, do not call it if the parent has: see
    /// [after `fork`](self#after-fork).
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the driver or the GPU is missing, with what to do about it; if the
    /// process has lost this GPU by an earlier error; and without the feature `cuda`.
    #[cfg_attr(not(feature = "cuda"), expect(unused_variables))]
    pub fn cuda(ordinal: usize) -> Result<Device, Error> {
        #[cfg(feature = "cuda")]
        return Ok(Device { backend: cuda::Gpu::open(ordinal)? });
        #[cfg(not(feature = "cuda"))]
        Err(choose::no_cuda())
    }

    /// Returns the emulator that takes all cores. There is one in a program.
    #[cfg(feature = "simt")]
    pub fn simt() -> Device {
        static EMULATOR: OnceLock<Device> = OnceLock::new();
        EMULATOR.get_or_init(|| Device { backend: simt::Emulator::new(None) }).clone()
    }

    /// Returns `count` further emulated devices, each with memory of its own: `simt:0`, `simt:1`, …
    /// They take the place of the GPUs of a [`Group`]. Each does its work on the thread that calls
    /// it, so that devices which several threads use run side by side.
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
        Device { backend: simt::Emulator::new(Some(number)) }
    }

    /// Its full name: `NVIDIA H200`, `emulator`.
    pub fn name(&self) -> &str {
        self.backend.name()
    }

    /// Its short name, for engines, tables and `LINREC_DEVICE`: `cuda:0`, `simt`. (`simt:1`, one of
    /// [several](Device::emulated), is for messages alone.)
    pub fn label(&self) -> &str {
        self.backend.label()
    }

    /// True for the emulator.
    pub fn is_simt(&self) -> bool {
        self.backend.is_simt()
    }

    /// Its limits and sizes.
    pub fn attributes(&self) -> Attributes {
        self.backend.attributes()
    }

    /// Returns the bytes of memory that are free, and the bytes that exist. On the emulator they
    /// bound the sum of all arrays; untouched pages take no memory of the host.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the device fails.
    pub fn memory(&self) -> Result<(u64, u64), Error> {
        self.backend.memory()
    }

    /// Waits until everything queued on it is done.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the device fails, or if a kernel queued before has failed.
    pub fn synchronize(&self) -> Result<(), Error> {
        recording::refuse(self, "waiting for the device")?;
        self.backend.synchronize()
    }

    /// Allocates an array of `len` numbers with any contents. The emulator reports a kernel that
    /// reads an element before one has written it.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if there is not enough memory.
    pub fn allocate<T: Pod>(&self, len: usize) -> Result<Buffer<T>, Error> {
        self.allocate_named(&format!("{}[{len}]", buffer::short_name::<T>()), len)
    }

    /// Allocates an array as [`Device::allocate`] does, which the emulator's reports call `name`.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if there is not enough memory.
    pub fn allocate_named<T: Pod>(&self, name: &str, len: usize) -> Result<Buffer<T>, Error> {
        Buffer::new(self, name, len)
    }

    /// Allocates an array of `len` zeros: numbers whose bytes are all zero.
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

    /// Allocates an array with these values.
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
    /// [`Error::Device`] with what the driver's compiler reports; on the emulator if none of the
    /// kernels can run on it, with the line of the PTX. (If some of them can run,
    /// [`Module::function`] returns the error.)
    pub fn module(&self, ptx: &str) -> Result<Module, Error> {
        Module::load(self, ptx)
    }

    /// Loads the kernels of a CUDA C++ program: PTX that is shipped or was compiled before, or else
    /// PTX that [`nvrtc`] compiles now.
    ///
    /// ```
    /// use linrec::device::Device;
    /// use linrec::kernels::program;
    ///
    /// let program = program("linrec_ref.cu").unwrap();
    /// # use linrec::kernels::{ElementType, KernelChoice};
    /// # let program = KernelChoice::default().program(ElementType::F32);
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
        let (major, minor) = self.attributes().compute_capability;
        self.module(obtain(program, 10 * major + minor)?.text())
    }

    /// Returns the default stream.
    pub fn stream(&self) -> Stream {
        Stream { device: self.clone(), queue: Queue::Default }
    }

    /// Makes a further stream.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the device fails.
    pub fn new_stream(&self) -> Result<Stream, Error> {
        let queue = self.backend.new_stream()?.map_or(Queue::Default, Queue::Further);
        Ok(Stream { device: self.clone(), queue })
    }

    /// Takes a stream that another library has made on this GPU, to work in its order: PyTorch's
    /// current stream, for example.
    ///
    /// Temporary memory of a call is allocated and freed in the stream's order, so that the call
    /// also works while the stream is being captured into a graph.
    ///
    /// # Safety
    ///
    /// 1. `handle` is a `CUstream` of the primary context of this GPU (null is its default stream),
    ///    and outlives every clone of the stream.
    /// 2. On this stream the caller keeps the order of work that the device otherwise keeps: a
    ///    buffer that this stream uses may be used on another stream, or dropped, only behind this
    ///    stream's work.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] on the emulator.
    #[allow(unsafe_code)]
    pub unsafe fn lent_stream(&self, handle: *mut c_void) -> Result<Stream, Error> {
        let queue = Queue::Lent(self.backend.lent_stream(handle)?);
        Ok(Stream { device: self.clone(), queue })
    }

    /// Takes an array of `len` numbers in memory that another library has allocated on this GPU.
    /// Nothing is copied, and dropping the buffer does not free the memory.
    ///
    /// # Safety
    ///
    /// 1. From `address` on, `len` numbers of type `T` are in memory of this GPU, which stays
    ///    allocated until the last handle to the buffer is dropped and all work queued on it is
    ///    over.
    /// 2. The caller orders all other reads and writes of the memory with that work.
    /// 3. If the buffer is written to (as a `&mut Buffer`), nothing relies on the memory keeping
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

    /// Makes an event, to be recorded in a stream.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the device fails.
    pub fn event(&self) -> Result<Event, Error> {
        Event::new(self)
    }

    /// Lets kernels of this device reach memory of another one that was allocated for that
    /// ([`Buffer::for_peers`]). An emulated device reaches only its own memory.
    fn reach(&self, other: &Device) -> Result<(), Error> {
        if self == other || self.backend.reach(&*other.backend)? {
            return Ok(());
        }
        Err(Error::Unsupported {
            engine: self.label().to_owned(),
            what: format!("reaching the memory of {}, which is a device of its own", other.label()),
        })
    }

    /// Returns an error if `other` is not this device; it names `what` is there, for `operation`.
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
        ptr::addr_eq(Arc::as_ptr(&self.backend), Arc::as_ptr(&other.backend))
    }
}

impl Eq for Device {}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.label(), self.name())
    }
}

#[cfg(feature = "cuda")]
use nvrtc::obtain;

/// Returns the PTX of `program` that is shipped: without the feature `cuda` nothing compiles any.
#[cfg(not(feature = "cuda"))]
fn obtain(program: &Program, _architecture: u32) -> Result<crate::kernels::Ptx, Error> {
    crate::kernels::shipped_as(program).ok_or_else(|| {
        let (file, entries) = (&program.file, program.entries.join(", "));
        let message = format!(
            "no PTX is shipped for {entries} of {file}, and linrec was built without the feature `cuda`, \
             which has the compiler"
        );
        Error::device("NVRTC", message)
    })
}
