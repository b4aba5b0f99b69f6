//! Global memory: its buffers, and what lies over them and in them.

mod buffer;
mod buffers;
mod error;
mod image;
mod objects;
mod saved;
pub(crate) mod variables;
mod word;
pub(crate) mod workspace;

pub(crate) use buffer::{
    Buffer, Contents, Named, PAGE_WORDS, Slot, describe, find, offset_of, page_of, word_in_page,
};
pub use buffers::Memory;
pub use error::MemoryError;
pub(crate) use image::Image;
pub(crate) use saved::Workspace;
pub(crate) use word::{Tags, Word, Wrong, byte_mask, mask};
