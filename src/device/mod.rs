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
//! The emulator explains a kernel's mistakes ([`Error::Kernel`](crate::Error::Kernel)), counts what
//! the kernel did ([`Launched::counters`]), records traces, and runs single blocks of a grid. All
//! work is over when `run` returns. A GPU works asynchronously. It notices few mistakes, and
//! reports them in a later operation.
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
mod handle;
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
pub use group::engine::GroupEngine;
pub use group::{Group, GroupRecurrence, Links, Part, Rank, Split, Way};
pub use handle::Device;
pub use launch::{Dim, Launch, Launched};
pub use recurrence::{BackwardOptions, Choice, ForwardOptions, Recurrence, Shape};
pub use selective_scan::backward::{ScanBackwardOptions, ScanGradients};
pub use selective_scan::forward::ScanForwardOptions;
pub use selective_scan::{
    Exponential, ScanCoupling, ScanCouplingGradient, ScanInputs, ScanOver, ScanShape, SelectiveScan,
};
pub use storage::{Job, Narrowing, Storage, dispatch};
pub use stream::{Event, Stream};
