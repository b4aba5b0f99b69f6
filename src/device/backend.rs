//! The interface between the device layer and what runs its work: a [`Backend`].
//!
//! The types of the folder above (`Device`, `Buffer`, `Stream`, `Function`, `Launch`, `Graph`)
//! check their arguments and order what the host may do. Then they call one of the functions here.
//! Each backend has a folder: `cuda` for NVIDIA GPUs, through their driver, and `simt` for the
//! emulator. A method that only one of them needs has a default, so that a third backend begins
//! with the methods that have none.
//!
//! What a backend keeps for a stream, an event, a kernel or a graph is a [`Handle`]. [`read`]
//! returns an error if another kind of backend made it. The layer above compares devices first, so
//! that a backend is given its own handles only.
//!
//! Both backends run the same tests: `tests/suite/device`. `tests/suite/driver` runs the one for
//! GPUs against a driver that fails on purpose.

use std::any::Any;
use std::ffi::c_void;
use std::fmt::Debug;
use std::panic::RefUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use bytemuck::Pod;

use super::buffer::Allocation;
use super::function::{LoadedKernel, LoadedModule, Modules};
use super::launch::{Recorded, Spec};
use crate::Error;
use crate::simt::{Counters, Trace};

/// A backend's own object behind an object of the layer above.
pub(super) type Handle = Arc<dyn Held>;

/// Any object with the traits that the public types around a handle have.
pub(super) trait Held: Any + Debug + Send + Sync + RefUnwindSafe {}

impl<T: Any + Debug + Send + Sync + RefUnwindSafe> Held for T {}

/// Returns the contents of a handle; an error if another kind of backend made it.
pub(super) fn read<'a, T: Any>(handle: &'a Handle, label: &str) -> Result<&'a T, Error> {
    (&**handle as &dyn Any).downcast_ref().ok_or_else(|| {
        Error::device(label, "a stream, event, kernel or graph of another kind of device was given")
    })
}

/// One device, and the work that it does. A stream of `None` is the device's default stream.
pub(super) trait Backend: Any + Send + Sync + RefUnwindSafe {
    /// Its short name: `cuda:0`, `simt`.
    fn label(&self) -> &str;

    /// Its full name: `NVIDIA H200`, `emulator`.
    fn name(&self) -> &str;

    /// True for the emulator, which has done its work when a call returns.
    fn is_simt(&self) -> bool;

    fn attributes(&self) -> Attributes;

    /// The bytes of memory that are free, and the bytes that exist.
    fn memory(&self) -> Result<(u64, u64), Error>;

    /// Its loaded modules.
    fn modules(&self) -> &Modules;

    /// Loads the kernels of a PTX text.
    fn load(&self, ptx: &str) -> Result<LoadedModule, Error>;

    /// Allocates `bytes` bytes, not zero, with any contents; reports call them `name`.
    fn allocate(
        self: Arc<Self>,
        name: &str,
        bytes: u64,
        users: Users,
    ) -> Result<Box<dyn DeviceMemory>, Error>;

    /// Queues a launch that has been checked. Returns what the emulator counted.
    fn launch(
        &self,
        kernel: &LoadedKernel,
        spec: &Spec,
        trace: Option<&mut Trace>,
        stream: Option<&Handle>,
    ) -> Result<Option<Counters>, Error>;

    /// Makes an event.
    fn event(&self) -> Result<Handle, Error>;

    /// Queues an event behind all work that the stream has so far.
    fn record(&self, event: &Handle, stream: Option<&Handle>) -> Result<(), Error>;

    /// Returns the milliseconds between two events that have been recorded.
    fn elapsed_ms(&self, start: &Handle, end: &Handle) -> Result<f64, Error>;

    // Only a GPU works asynchronously, and prepares graphs.

    /// Makes a stream; `None` where all streams are one.
    fn new_stream(&self) -> Result<Option<Handle>, Error> {
        Ok(None)
    }

    /// Waits until everything queued on the device is done.
    fn synchronize(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Waits until everything queued on the stream is done.
    fn wait_for_stream(&self, _stream: Option<&Handle>) -> Result<(), Error> {
        Ok(())
    }

    /// Waits until everything ahead of the event is done.
    fn synchronize_event(&self, _event: &Handle) -> Result<(), Error> {
        Ok(())
    }

    /// Makes later work on the stream wait for an event that has been recorded.
    fn wait_for_event(&self, _stream: Option<&Handle>, _event: &Handle) -> Result<(), Error> {
        Ok(())
    }

    /// Returns how many blocks an SM holds at a time; `None` where there are no SMs.
    fn occupancy(
        &self,
        _kernel: &LoadedKernel,
        _threads: u32,
        _shared_bytes: u32,
    ) -> Result<Option<u32>, Error> {
        Ok(None)
    }

    /// Prepares launches to be queued with one call; `None` where they are queued one by one.
    fn graph(self: Arc<Self>, _launches: &[Recorded]) -> Result<Option<Handle>, Error> {
        Ok(None)
    }

    /// Queues a graph. The `memories` are all that its launches use, and whether one writes there.
    fn replay(
        &self,
        _graph: &Handle,
        _stream: Option<&Handle>,
        _memories: &[(Arc<Allocation>, bool)],
    ) -> Result<(), Error> {
        Ok(())
    }

    // Only the emulator.

    /// Returns how many blocks of `threads` threads a cooperative launch may have, where that does
    /// not depend on what the device holds at once.
    fn most_together(&self, _threads: u32) -> Option<u64> {
        None
    }

    /// Runs launches side by side, which may wait for each other; `None` where that is impossible.
    fn run_side_by_side(
        &self,
        _launches: &[(&LoadedKernel, &Spec)],
    ) -> Result<Option<Vec<Counters>>, Error> {
        Ok(None)
    }

    /// Makes the emulator run the blocks of this thread's launches on this thread: it is one of
    /// several, and the threads of the pool may wait for it.
    fn run_by_itself(&self) {}

    // Only GPUs.

    /// Takes the handle of a stream that another library made.
    fn lent_stream(&self, _raw: *mut c_void) -> Result<Handle, Error> {
        Err(Error::device(self.label(), "only a GPU has streams of others"))
    }

    /// Takes an array of `len` elements of `size` bytes that another library allocated.
    fn lent_memory(
        self: Arc<Self>,
        _address: u64,
        _len: usize,
        _size: usize,
    ) -> Result<Option<Box<dyn DeviceMemory>>, Error> {
        Err(Error::device(self.label(), "memory can be lent to a GPU only"))
    }

    /// Opens `bytes` bytes of another process, by what [`DeviceMemory::publish`] returned there.
    fn memory_of_process(
        self: Arc<Self>,
        _name: [u8; 64],
        _bytes: u64,
    ) -> Result<Box<dyn DeviceMemory>, Error> {
        Err(Error::device(self.label(), "only a GPU reaches the memory of another process"))
    }

    /// Lets kernels of this device reach memory of another one that was allocated for
    /// [`Users::Peers`]. Returns false if there is no way.
    fn reach(&self, _other: &dyn Backend) -> Result<bool, Error> {
        Ok(false)
    }

    /// True if ranks of a group on such devices exchange arrays by NCCL.
    fn takes_nccl(&self) -> bool {
        false
    }

    /// Makes an id, by which the ranks of one communicator find each other.
    fn nccl_id(&self) -> Result<Vec<u8>, Error> {
        Err(Error::device(self.label(), "NCCL takes GPUs alone"))
    }

    /// Meets the other ranks of a communicator. `is_off` returns why another rank has failed.
    fn communicator(
        self: Arc<Self>,
        _id: &[u8],
        _rank: usize,
        _size: usize,
        _is_off: &dyn Fn() -> Option<String>,
        _until: Instant,
    ) -> Result<Arc<dyn Communicator>, Error> {
        Err(Error::device(self.label(), "NCCL takes GPUs alone"))
    }
}

/// The limits and sizes of a device.
///
/// The emulator has the limits of the architecture that the kernels are compiled for. A property is
/// `None` if the emulator has no counterpart.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attributes {
    /// The least number of blocks that run at the same time: streaming multiprocessors (SMs) of a
    /// GPU; on the emulator the threads of the current `rayon` pool.
    pub multiprocessors: u32,
    /// The number of lanes of a warp.
    pub warp_size: u32,
    /// The largest number of threads of a block.
    pub max_threads_per_block: u32,
    /// The largest block along each axis.
    pub max_block: [u32; 3],
    /// The largest grid along each axis.
    pub max_grid: [u32; 3],
    /// The bytes of shared memory that every block can have.
    pub shared_bytes: u32,
    /// The bytes of shared memory that a block can have on request. A launch that needs them makes
    /// the request by itself.
    pub shared_bytes_opt_in: u32,
    /// The architecture, as major and minor number: `(9, 0)` is `sm_90`.
    pub compute_capability: (u32, u32),
    /// The number of 32-bit registers of an SM.
    pub registers: Option<u32>,
    /// The number of threads that an SM holds at a time.
    pub threads_per_multiprocessor: Option<u32>,
    /// The bytes of the cache that all SMs share.
    pub l2_bytes: Option<u64>,
    /// The highest clock of the SMs, in kHz.
    pub clock_khz: Option<u32>,
    /// The highest clock of the memory, in kHz.
    pub memory_clock_khz: Option<u32>,
    /// The width of the path to memory, in bits.
    pub memory_bus_bits: Option<u32>,
    /// The newest CUDA version that the driver knows, as major and minor number.
    pub cuda_version: Option<(u32, u32)>,
    /// True if it takes launches whose blocks wait for each other
    /// ([`Launch::cooperative`](super::Launch::cooperative)).
    pub cooperative: bool,
    /// True if it uses the host's page tables, so that kernels can reach all of the host's memory.
    /// They can reach some of it in any case: see [the safety of launches](super#safety).
    pub reaches_host_memory: bool,
}

/// The users of memory, apart from the device that allocates it.
pub(super) enum Users<'a> {
    Nobody,
    /// Other devices, which may [reach](Backend::reach) it.
    Peers,
    /// Work on this lent stream, and no other work.
    Stream(&'a Handle),
}

/// A piece of a device's memory, of at least one byte. Dropping it frees it behind all work on it.
pub(super) trait DeviceMemory: Any + Debug + Send + Sync + RefUnwindSafe {
    fn address(&self) -> u64;

    /// Copies to the device; the copy is over when this returns.
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Error>;

    /// Copies to the host; the copy is over when this returns `Ok`.
    fn read(&self, offset: u64, host: &mut dyn HostArray) -> Result<(), Error>;

    /// Writes the same byte everywhere in a range, some time later.
    fn fill(&self, offset: u64, bytes: u64, byte: u8) -> Result<(), Error>;

    /// Returns the name by which other processes on this host find the memory; `None` if they
    /// cannot reach it.
    fn publish(&self) -> Result<Option<[u8; 64]>, Error> {
        Ok(None)
    }
}

/// Numbers of the host that a device writes to.
pub(super) trait HostArray {
    fn bytes(&mut self) -> &mut [u8];

    /// Gives the memory up for good, and leaves an empty array: the device may still write there.
    fn leak(&mut self);
}

impl<T: Pod> HostArray for Vec<T> {
    fn bytes(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(self)
    }

    fn leak(&mut self) {
        std::mem::forget(std::mem::take(self));
    }
}

/// One rank's side of an NCCL communicator.
pub(super) trait Communicator: Debug + Send + Sync {
    /// Makes a transfer of `bytes` bytes, which is over when this returns.
    fn run(
        &self,
        transfer: Transfer,
        bytes: usize,
        is_off: &dyn Fn() -> Option<String>,
        until: Instant,
    ) -> Result<(), Error>;

    /// Ends whatever is under way, here and thereby in all ranks.
    fn abort(&self, why: &str);
}

/// A piece of device memory from an offset on, in bytes.
pub(super) type Piece<'a> = (&'a dyn DeviceMemory, u64);

/// An exchange of arrays between ranks.
#[derive(Clone, Copy)]
pub(super) enum Transfer<'a> {
    /// The bytes of every rank, to all ranks and in their order.
    AllGather { mine: Piece<'a>, all: Piece<'a> },
    /// The bytes of the rank `root`, to all ranks.
    Broadcast { array: Piece<'a>, root: usize },
    /// The bytes to the rank `to`, which receives as many.
    Send { array: Piece<'a>, to: usize },
    /// The bytes that the rank `from` sends.
    Receive { array: Piece<'a>, from: usize },
}
