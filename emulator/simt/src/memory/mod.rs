//! The memories of an emulated device, and the shadow state that records who accessed each place.

pub(crate) mod global;
pub(crate) mod order;
pub(crate) mod shared;
pub(crate) mod texture;
