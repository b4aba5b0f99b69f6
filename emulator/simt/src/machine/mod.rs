//! The machine: warps of 32 lanes that execute a kernel's instructions.
//!
//! - `state`: what instructions execute on, from a launch to the registers of a warp;
//! - `arithmetic`: results that are computed from registers alone;
//! - `access`: loads, stores, atomics, copies, textures and mbarriers, with all their checks;
//! - `lanes`, `matrix`, `call`, `system`, `print`, `barrier`: work across lanes, and control flow;
//! - `step` executes one instruction; `warp` and `paths` know where the lanes are, and run one
//!   instruction after the other; `block` holds the warps of a block and its barriers.

mod access;
mod arithmetic;
mod barrier;
pub(crate) mod block;
mod call;
mod lanes;
mod matrix;
mod paths;
mod print;
pub(crate) mod state;
mod step;
mod system;
pub(crate) mod warp;

pub use state::Launch;
