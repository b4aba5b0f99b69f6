//! A device: its properties, its memory, its modules and its streams.
//!
//! A device is a handle to a [`Backend`], to which all calls go: the driver's or the emulator's.
//! `choose` opens devices. This file and the files of buffers, modules, launches and streams know
//! only the trait, so that nothing below a backend depends on one. `tests/suite/device` tests all
//! of them on every device, and `tests/suite/driver` with a driver that fails.

use std::ffi::c_void;
use std::fmt;
use std::ptr;
use std::sync::Arc;

use bytemuck::Pod;

use super::backend::{Attributes, Backend};
use super::buffer::{self, Buffer};
use super::function::Module;
#[cfg(feature = "cuda")]
use super::nvrtc::obtain;
use super::recording;
use super::stream::{Event, Queue, Stream};
use crate::Error;
use crate::kernels::Program;

/// A GPU, or the emulator of one. A clone is the same device.
///
/// Only the process that opened a device can use it, and not a process that `fork` made
/// ([after `fork`](super#after-fork)). If a kernel fails on a GPU, the process loses that GPU
/// ([the differences](super#how-a-gpu-and-the-emulator-differ)).
#[derive(Clone)]
pub struct Device {
    pub(super) backend: Arc<dyn Backend>,
}

impl Device {
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
    pub(super) fn reach(&self, other: &Device) -> Result<(), Error> {
        if self == other || self.backend.reach(&*other.backend)? {
            return Ok(());
        }
        Err(Error::Unsupported {
            engine: self.label().to_owned(),
            what: format!(
                "reaching the memory of {}, which this device cannot address",
                other.label()
            ),
        })
    }

    /// Returns an error if `other` is not this device; it names `what` is there, for `operation`.
    pub(super) fn must_be(&self, other: &Device, operation: &str, what: &str) -> Result<(), Error> {
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
