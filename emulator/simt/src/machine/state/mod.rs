//! What instructions are executed on: a launch, its run, a warp's registers and scratch.

mod registers;
mod run;
mod scratch;

pub(crate) use registers::{ALL, BITS, Identity, Longs, Registers, Words, put};
pub(crate) use run::IDLE_ROUNDS;
pub use run::Launch;
pub(crate) use run::product;
pub(crate) use run::{Beside, Run};
pub(crate) use scratch::{
    Copies, Lanes, NONE, Next, Path, Pending, Place, Scratch, Sources, Stack, Suspect, Unwritten,
    Vain, Waiting, actor,
};
