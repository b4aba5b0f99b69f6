//! What the host is told when global memory refuses it something.

use std::fmt;

/// Why memory could not be had or reached by the host.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemoryError {
    /// The device, or its host, has not enough memory left.
    OutOfMemory {
        /// Bytes asked for.
        asked: u64,
        /// Bytes still free.
        free: u64,
    },
    /// The range does not lie in one live buffer.
    BadAddress {
        /// Where the range begins.
        address: u64,
        /// Its length in bytes.
        bytes: u64,
        /// What lies there instead.
        found: String,
    },
    /// There can be no such texture or surface.
    BadImage {
        /// The name that it was to have.
        name: String,
        /// Why.
        why: String,
    },
}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MemoryError::OutOfMemory { asked, free } => {
                write!(f, "out of memory: asked for {asked} bytes, {free} are free")
            }
            MemoryError::BadAddress { address, bytes, found } => {
                write!(f, "{bytes} bytes at address {address:#x} are not in one buffer: {found}")
            }
            MemoryError::BadImage { name, why } => {
                write!(f, "cannot make the texture or surface `{name}`: {why}")
            }
        }
    }
}

impl std::error::Error for MemoryError {}
