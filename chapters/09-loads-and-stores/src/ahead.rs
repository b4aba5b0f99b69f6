//! A variant of the pipe kernel with memcode 1 that requests a whole tile before it waits for any
//! of it: `kernels/exercises/loads_ahead.cu`.

use linrec::Error;
use linrec::device::{Device, Module};

use crate::strides::catalogue;

/// The elements per thread, and threads per block, of the shipped instances.
pub const SIZES: [(u32, u32); 2] = [(4, 128), (8, 64)];

/// The number of bank words that are left free after every 32.
pub const FREE: [u32; 2] = [0, 1];

/// Returns the kernel's name in C++.
pub fn entry((elems, threads): (u32, u32), free: u32) -> String {
    format!("linrec_ahead<{elems}, {threads}, {free}>")
}

/// Returns the dynamic shared memory of a block in bytes: two tiles, including the free bank words.
pub fn shared_bytes((elems, threads): (u32, u32), free: u32) -> u32 {
    let len = elems * threads;
    2 * 4 * (len + len / 32 * free)
}

/// Loads all shipped instances on a device.
///
/// # Errors
///
/// Returns [`Error::Device`] if the device refuses them.
pub fn module(device: &Device) -> Result<Module, Error> {
    let entries = SIZES.iter().flat_map(|&size| FREE.map(move |free| entry(size, free)));
    catalogue(device, "exercises/loads_ahead.cu", entries)
}
