//! The memories of an emulated device, and what is known of each place in them.

pub(crate) mod global;
pub(crate) mod order;
pub(crate) mod shared;
pub(crate) mod texture;
