//! Loads, stores, and everything else that touches memory, with all checks.

pub(crate) mod atomic;
pub(crate) mod copy;
mod global;
pub(crate) mod local;
pub(crate) mod matrix;
pub(crate) mod mbarrier;
pub(crate) mod moved;
mod shared;
mod spaces;
pub(crate) mod surface;
pub(crate) mod texture;
pub(crate) mod unwritten;
