//! The backend that runs on NVIDIA GPUs, through their driver.
//!
//! Everything that is unsafe about CUDA stays in here. What holds it together:
//!
//! - cudarc is called only after [`driver()`] has found the library with all its functions;
//! - a [`Gpu`] keeps its context alive, and buffers, modules, streams and events keep the [`Gpu`];
//! - work on a buffer is ordered across streams, and memory is given back only behind that work:
//!   [`order`].

mod driver;
mod error;
mod gpu;
mod graph;
mod kernel;
mod launch;
mod memory;
mod order;

pub use driver::{Driver, driver};

pub(crate) use error::name as code_name;
pub(crate) use gpu::Gpu;
pub(crate) use graph::GpuGraph;
pub(crate) use kernel::{GpuKernel, GpuModule};
pub(crate) use launch::GpuLaunch;
pub(crate) use memory::GpuMemory;
pub(crate) use order::GpuStream;
