//! Buffers, their pages, and the encoding of addresses.

use std::fmt;
use std::sync::{Arc, OnceLock};

use super::word::Word;
use crate::memory::texture::HANDLES;
use crate::report::Count;

pub(super) const OFFSET_BITS: u32 = 40;
pub(super) const OFFSET_MASK: u64 = (1 << OFFSET_BITS) - 1;
/// The largest buffer. Offsets from here on are negative offsets from the next buffer.
pub(super) const MAX_BYTES: u64 = 1 << (OFFSET_BITS - 1);

pub(crate) const PAGE_WORDS: usize = 4096;
pub(super) const PAGE_BYTES: u64 = 4 * PAGE_WORDS as u64;

#[derive(Debug, Clone)]
pub(crate) enum Slot {
    Live(Arc<Buffer>),
    Freed(Arc<str>),
}

/// A buffer and its pages.
pub(crate) struct Buffer {
    pub(crate) name: Arc<str>,
    pub(crate) bytes: u64,
    pub(crate) contents: Contents,
    pub(super) pages: Box<[OnceLock<Page>]>,
}

/// The contents of a buffer before the first write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contents {
    Nothing,
    /// Zeros, as in the variables of a module.
    Zeros,
    /// Zeros that kernels may not overwrite.
    Constant,
}

/// The words of a page. Its length is part of its type, so that an index into it needs no check.
pub(crate) type Page = Box<[Word; PAGE_WORDS]>;

/// Leaves out the contents.
impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, bytes, resident) = (&self.name, self.bytes, self.resident());
        f.debug_struct("Buffer")
            .field("name", name)
            .field("bytes", &bytes)
            .field("resident", &resident)
            .finish()
    }
}

/// Returns a page that nothing has been written to, or `None` if the host has no memory for one.
pub(super) fn new_page(contents: Contents) -> Option<Page> {
    let mut words = Vec::new();
    words.try_reserve_exact(PAGE_WORDS).ok()?;
    let word = if contents == Contents::Nothing { Word::default } else { Word::zero };
    words.resize_with(PAGE_WORDS, word);
    words.into_boxed_slice().try_into().ok()
}

impl Buffer {
    #[inline(always)]
    pub(crate) fn page(&self, page: u64) -> Option<&[Word; PAGE_WORDS]> {
        self.pages.get(page as usize)?.get().map(|words| &**words)
    }

    pub(super) fn resident(&self) -> u64 {
        self.pages.iter().filter(|page| page.get().is_some()).count() as u64 * PAGE_BYTES
    }
}

/// Returns the live buffer that holds an address, and the offset in it.
pub(crate) fn find(slots: &[Slot], address: u64) -> Option<(&Arc<Buffer>, u64)> {
    let number = ((address >> OFFSET_BITS) as usize).wrapping_sub(1);
    match slots.get(number) {
        Some(Slot::Live(buffer)) if address & OFFSET_MASK < buffer.bytes => {
            Some((buffer, address & OFFSET_MASK))
        }
        _ => None,
    }
}

/// Describes an address outside of all buffers by the nearest buffer, as a phrase.
pub(crate) fn describe(slots: &[Slot], address: u64) -> String {
    let (number, offset) = ((address >> OFFSET_BITS) as usize, address & OFFSET_MASK);
    // A negative offset has borrowed from the buffer's number.
    if offset >= MAX_BYTES
        && let Some(Slot::Live(buffer)) = slots.get(number)
    {
        let before = (1 << OFFSET_BITS) - offset;
        return format!("{} before the beginning of {}", Count(before, "byte"), Named(buffer));
    }
    match slots.get(number.wrapping_sub(1)) {
        Some(Slot::Live(buffer)) if offset >= buffer.bytes => {
            format!("{} past the end of {}", Count(offset - buffer.bytes, "byte"), Named(buffer))
        }
        Some(Slot::Live(buffer)) => format!("offset {offset} of {}", Named(buffer)),
        Some(Slot::Freed(name)) => {
            format!("offset {offset} of buffer `{name}`, which has been freed")
        }
        None if address == 0 => "a null pointer".to_string(),
        None if address >= HANDLES && number == 0 => {
            format!("{address:#x}, the handle of a texture or surface, which is no address")
        }
        None => format!("address {address:#x}, near no buffer"),
    }
}

pub(crate) struct Named<'a>(pub(crate) &'a Buffer);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "buffer `{}` ({})", self.0.name, Count(self.0.bytes, "byte"))
    }
}

/// Returns the offset part of an address.
pub(crate) fn offset_of(address: u64) -> u64 {
    address & OFFSET_MASK
}

/// Returns the number of the page that holds an offset.
#[inline(always)]
pub(crate) fn page_of(offset: u64) -> u64 {
    offset / PAGE_BYTES
}

/// Returns the index in its page of the word that holds an offset.
#[inline(always)]
pub(crate) fn word_in_page(offset: u64) -> usize {
    (offset / 4) as usize % PAGE_WORDS
}

/// An error of an allocation, or of an access by the host.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemoryError {
    /// The device, or its host, does not have enough memory left.
    OutOfMemory {
        /// The number of bytes requested.
        asked: u64,
        /// The number of bytes still free.
        free: u64,
    },
    /// The range is not in one live buffer.
    BadAddress {
        /// The first address of the range.
        address: u64,
        /// Its length in bytes.
        bytes: u64,
        /// A description of what is at that address.
        found: String,
    },
    /// CUDA or the emulator has no such texture or surface.
    BadImage {
        /// The name that it was to get.
        name: String,
        /// The reason.
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
