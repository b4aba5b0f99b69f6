//! The backend that runs on NVIDIA GPUs, through their driver.
//!
//! All `unsafe` code of the device layer is in this folder:
//!
//! - [`sys`] declares the types and numbers of the driver, and [`library`] the one table of its
//!   functions, which exists only if the library has all of them; a result is an integer until it
//!   has been checked ([`error`]);
//! - a [`Gpu`] keeps its context alive, and buffers, modules, streams and events keep the [`Gpu`];
//! - [`order`] keeps the order of work on a buffer across streams, and frees memory only behind
//!   that work.
#![allow(unsafe_code)]

mod communicator;
mod context;
mod driver;
mod error;
mod gpu;
mod graph;
mod handles;
mod launch;
mod library;
mod memory;
mod module;
mod nccl;
mod order;
mod params;
mod sys;

pub use driver::{Driver, driver};

pub(super) use gpu::Gpu;
