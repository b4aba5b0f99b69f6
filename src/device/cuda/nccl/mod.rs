//! NCCL: what the ranks of a group on GPUs exchange arrays by.
//!
//! Its library is looked for when a group is made, and nothing needs it before. Functions are
//! called directly: cudarc declares what they return as a Rust enum of the codes that it knows, and
//! a later NCCL returns others. Here every result is an integer.
//!
//! Communicators are made in the mode in which no call waits. So whoever waits does it here, looks
//! at the clock, and aborts the communicator when the time is over, which ends what is under way on
//! the GPU.

mod communicator;
mod find;
mod library;

pub(crate) use communicator::{Communicator, UniqueId};
pub(crate) use find::nccl_is_declined;
