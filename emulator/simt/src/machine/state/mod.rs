//! What instructions are executed on: a launch, its run, a warp's registers and scratch.

mod launch;
mod registers;
mod run;
mod scratch;

pub(crate) use launch::IDLE_ROUNDS;
pub use launch::Launch;
pub(crate) use launch::product;
pub(crate) use registers::{ALL, BITS, Identity, Longs, Registers, Words, put};
pub(crate) use run::{Beside, Run};
pub(crate) use scratch::{
    Copies, Lanes, NONE, Next, Path, Pending, Place, Scratch, Sources, Stack, Suspect, Unwritten,
    Vain, Waiting, actor,
};
