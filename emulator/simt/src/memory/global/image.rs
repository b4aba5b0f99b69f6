//! What global memory held at a moment, and what was known of it, to go back to.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use super::buffer::{Buffer, Contents, PAGE_WORDS, Slot};
use super::buffers::Memory;
use super::word::{KNOWN, Word};
use crate::report::bytes_of;

/// The pages that had been touched.
#[derive(Debug)]
pub(crate) struct Image(Vec<Page>);

/// A page by its buffer's number and its own, and each word's data and state.
#[derive(Debug)]
struct Page {
    slot: usize,
    number: usize,
    words: Vec<[u32; 2]>,
}

impl Image {
    /// What it takes of the host.
    pub(crate) fn held(&self) -> u64 {
        let words: usize = self.0.iter().map(|page| page.words.len()).sum();
        bytes_of::<Page>(self.0.len() as u64) + bytes_of::<[u32; 2]>(words as u64)
    }
}

impl Memory {
    /// What is there now.
    pub(crate) fn image(&self, slots: &[Slot]) -> Image {
        let mut pages = Vec::new();
        each_page(slots, |slot, _, number, words| {
            let words = words.iter().map(|word| [&word.data, &word.state].map(load)).collect();
            pages.push(Page { slot, number, words });
        });
        Image(pages)
    }

    /// Makes it what it was. Pages that have been touched since hold what the buffer held at first.
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

/// Calls `visit` with every page that has been touched, in order.
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
