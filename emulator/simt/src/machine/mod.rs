//! The machine: warps of 32 lanes that execute a kernel's instructions.
//!
//! - `state`: what instructions are executed on;
//! - `arithmetic`: what is computed from registers alone;
//! - `access`: loads, stores, atomics, copies, textures and mbarriers, with all their checks;
//! - `lanes`, `matrix`, `call`, `system`, `print`, `barrier`: what works across lanes, and control;
//! - `step`: one instruction; `warp`, `paths`: which lanes are where, and one instruction after the
//!   other; `block`: the warps of a block, and its barriers.

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
