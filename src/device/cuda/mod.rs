//! The backend that runs on NVIDIA GPUs, through their driver.
//!
//! Everything that is unsafe about CUDA stays in here. What holds it together:
//!
//! - the driver is called through one table of its functions, [`library`], which is there only if
//!   all of them are; what they return is an integer until it has been looked at: [`code`];
//! - a [`Gpu`] keeps its context alive, and buffers, modules, streams and events keep the [`Gpu`];
//! - work on a buffer is ordered across streams, and memory is given back only behind that work:
//!   [`order`].

mod code;
mod context;
mod driver;
mod error;
mod gpu;
mod graph;
mod handles;
mod kernel;
mod launch;
mod library;
mod memory;
mod module;
mod nccl;
mod order;
mod params;

pub use driver::{Driver, driver};

pub(crate) use gpu::{Gpu, GpuEvent};
pub(crate) use graph::GpuGraph;
pub(crate) use kernel::{GpuKernel, GpuModule};
pub(crate) use launch::GpuLaunch;
pub(crate) use memory::GpuMemory;
pub(crate) use nccl::{Communicator, UniqueId, nccl_is_declined};
pub(crate) use order::GpuStream;
