//! The state that instructions execute on: a launch, its run, registers and scratch memory.

mod registers;
mod run;
mod scratch;

pub(crate) use registers::{ALL, BITS, Identity, Registers, Words, put};
pub(crate) use run::IDLE_ROUNDS;
pub use run::Launch;
pub(crate) use run::product;
pub(crate) use run::{CoScheduled, Run};
pub(crate) use scratch::{
    Copies, Lanes, NONE, Next, Path, Pending, Place, Scratch, Sources, Spin, Stack, Suspect,
    Unwritten, Waiting, actor,
};
