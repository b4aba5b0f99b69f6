//! A cell for each word of global memory that has been accessed, in pages.

use std::collections::HashMap;

use super::clock::CLOCKS;
use super::history::Cell;
use crate::report::{Account, Result, bytes_of, refill};

/// Cells of a page.
const CELLS: usize = 1024;
/// Pages that are found without looking for them: what a kernel goes through at the same time.
const RECENT: usize = 16;

#[derive(Debug, Clone)]
pub(super) struct Shadow {
    /// The place of a page in `pages`, by its number.
    places: HashMap<u64, usize>,
    pages: Vec<Vec<Cell>>,
    /// Numbers of pages, and their places.
    recent: [(u64, usize); RECENT],
}

impl Shadow {
    pub(super) fn new() -> Shadow {
        Shadow { places: HashMap::new(), pages: Vec::new(), recent: [(u64::MAX, 0); RECENT] }
    }

    /// What it takes of the host.
    pub(super) fn held(&self) -> u64 {
        bytes_of::<(u64, usize)>(self.places.capacity() as u64)
            + bytes_of::<Vec<Cell>>(self.pages.capacity() as u64)
            + bytes_of::<Cell>((self.pages.len() * CELLS) as u64)
    }

    /// The cell of word number `word` of the address space.
    #[inline(always)]
    pub(super) fn cell(&mut self, account: &mut Account<'_>, word: u64) -> Result<&mut Cell> {
        let page = word / CELLS as u64;
        let (number, place) = self.recent[Shadow::way(page)];
        let place = if number == page { place } else { self.find(account, page)? };
        Ok(&mut self.pages[place][word as usize % CELLS])
    }

    /// Which of the recent pages it may be. Buffers begin at multiples of a large number, so that
    /// their number counts, too.
    #[inline(always)]
    fn way(page: u64) -> usize {
        (page ^ page >> 28) as usize % RECENT
    }

    #[cold]
    fn find(&mut self, account: &mut Account<'_>, page: u64) -> Result<usize> {
        let place = match self.places.get(&page) {
            Some(&place) => place,
            None => {
                account.take(bytes_of::<Cell>(CELLS as u64), CLOCKS)?;
                let mut cells = Vec::new();
                refill(&mut cells, CELLS, Cell::NOTHING, CLOCKS)?;
                account.room_in(&mut self.places, CLOCKS)?;
                account.room(&mut self.pages, CLOCKS)?;
                self.places.insert(page, self.pages.len());
                self.pages.push(cells);
                self.pages.len() - 1
            }
        };
        self.recent[Shadow::way(page)] = (page, place);
        Ok(place)
    }
}
