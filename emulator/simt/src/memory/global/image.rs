//! Images of global memory, with contents and shadow, which a later step can restore.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use super::buffer::{Buffer, Contents, PAGE_WORDS, Slot};
use super::buffers::Memory;
use super::word::{KNOWN, Word};
use crate::report::bytes_of;

/// The pages that were touched.
#[derive(Debug)]
pub(crate) struct Image(Vec<Page>);

/// A page: its buffer's number, its own number, and the data and state of each word.
#[derive(Debug)]
struct Page {
    slot: usize,
    number: usize,
    words: Vec<[u32; 2]>,
}

impl Image {
    /// Returns the bytes of the host that it takes.
    pub(crate) fn held(&self) -> u64 {
        let words: usize = self.0.iter().map(|page| page.words.len()).sum();
        bytes_of::<Page>(self.0.len() as u64) + bytes_of::<[u32; 2]>(words as u64)
    }
}

impl Memory {
    /// Returns an image of the present contents.
    pub(crate) fn image(&self, slots: &[Slot]) -> Image {
        let mut pages = Vec::new();
        each_page(slots, |slot, _, number, words| {
            let words = words.iter().map(|word| [&word.data, &word.state].map(load)).collect();
            pages.push(Page { slot, number, words });
        });
        Image(pages)
    }

    /// Restores an image. Pages touched later get the initial contents of their buffer.
    pub(crate) fn restore(&self, slots: &[Slot], image: &Image) {
        let mut rest = image.0.iter().peekable();
        each_page(slots, |slot, buffer, number, words| {
            let first = [0, if buffer.contents == Contents::Nothing { 0 } else { KNOWN }];
            let page = rest.next_if(|page| (page.slot, page.number) == (slot, number));
            for (i, word) in words.iter().enumerate() {
                let [data, state] = page.map_or(first, |page| page.words[i]);
                word.data.store(data, Relaxed);
                word.state.store(state, Relaxed);
            }
        });
    }
}

fn load(word: &AtomicU32) -> u32 {
    word.load(Relaxed)
}

/// Calls `visit` for every touched page, in order.
fn each_page(slots: &[Slot], mut visit: impl FnMut(usize, &Buffer, usize, &[Word; PAGE_WORDS])) {
    for (slot, buffer) in slots.iter().enumerate() {
        let Slot::Live(buffer) = buffer else { continue };
        for (number, page) in buffer.pages.iter().enumerate() {
            if let Some(words) = page.get() {
                visit(slot, buffer, number, words);
            }
        }
    }
}
