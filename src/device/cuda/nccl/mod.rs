//! NCCL, by which the ranks of a group on GPUs exchange arrays.
//!
//! Its library is looked for when a group is made, and nothing needs it before. Every result is an
//! integer, since a later NCCL returns codes that this crate does not know.
//!
//! Communicators are made in the mode in which no call waits. Waiting is done here, with a look at
//! the clock: when the time is over, the communicator is aborted, which ends what is under way on
//! the GPU.

mod find;
mod library;

pub(super) use find::{failure, is_declined};
pub(super) use library::{BYTES, Comm, Config, Functions, ID_BYTES, RawId, Status, functions};
