//! Global memory: its buffers, their words, and the module variables and workspaces in them.

mod buffer;
mod buffers;
mod image;
mod saved;
pub(crate) mod variables;
mod word;

pub use buffer::MemoryError;
pub(crate) use buffer::{
    Buffer, Contents, Named, PAGE_WORDS, Slot, describe, find, offset_of, page_of, word_in_page,
};
pub use buffers::Memory;
pub(crate) use image::Image;
pub(crate) use saved::Workspace;
pub(crate) use word::{Tags, Word, Wrong, byte_mask, mask};
