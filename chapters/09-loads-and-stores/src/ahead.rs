//! The pipe kernel with memcode 1 done another way, which asks for a whole tile before it waits for
//! any of it: `kernels/exercises/loads_ahead.cu`.

use linrec::Error;
use linrec::device::{Device, Module};

use crate::strides::catalogue;

/// Elements for each thread, and threads in a block, of the shipped instances.
pub const SIZES: [(u32, u32); 2] = [(4, 128), (8, 64)];

/// Bank words that are left free after every 32.
pub const FREE: [u32; 2] = [0, 1];

/// The kernel's name, as C++ writes it.
pub fn entry((elems, threads): (u32, u32), free: u32) -> String {
    format!("linrec_ahead<{elems}, {threads}, {free}>")
}

/// The dynamic shared memory that it takes: two tiles, with the bank words that are left free.
pub fn shared_bytes((elems, threads): (u32, u32), free: u32) -> u32 {
    let len = elems * threads;
    2 * 4 * (len + len / 32 * free)
}

/// All shipped instances on a device.
///
/// # Errors
///
/// [`Error::Device`] if the device refuses them.
pub fn module(device: &Device) -> Result<Module, Error> {
    let entries = SIZES.iter().flat_map(|&size| FREE.map(move |free| entry(size, free)));
    catalogue(device, "exercises/loads_ahead.cu", entries)
}
