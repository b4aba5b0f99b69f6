//! The accesses to each word of global memory with which later accesses may race, and the shadow
//! that stores them.
//!
//! Most words are read by one warp only, or written by one warp and not accessed since. Their
//! history fits in a cell of 64 bits. Other words have a list of accesses ([`Histories`]). A write
//! drops the accesses before it, since whatever comes after the write comes after them, too. Pages
//! of the shadow are allocated when they are touched, from the bytes of the launch. Tested by
//! `memory::order::tests` against a plain model, and by `cases/blocks.ptx`.

use std::collections::HashMap;

use super::access::{Access, Conflict, Leaves, Refused, Step, Takes, Warp};
use super::clock::{CLOCKS, Clock, Clocks};
use crate::report::{Account, Fault, bytes_of, refill};

impl Step {
    fn conflict(&self, wrote: bool) -> Refused {
        Refused::Race(Conflict { unit: self.unit as usize, pc: self.pc, wrote })
    }
}

/// The whole history of a word in 64 bits, if it is simple: nothing, one warp's plain reads, or a
/// plain write that nobody has accessed since. This is so for most words. For other words the cell
/// holds the number of their [`Histories`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell(u64);

/// The decoded contents of a cell.
pub(super) enum Contents {
    Nothing,
    Read(Step),
    Written(Step),
    /// More than fits: the number of the word's histories.
    More(usize),
}

impl Cell {
    pub(super) const NOTHING: Cell = Cell(0);
    const KIND_SHIFT: u32 = 62;
    const READ: u64 = 1;
    const WRITTEN: u64 = 2;
    const MORE: u64 = 3;
    const UNIT_BITS: u32 = 13;
    const PC_BITS: u32 = 17;

    /// Returns the cell for a single plain access of the whole word, or `None` if it does not fit.
    pub(super) fn of(step: Step, wrote: bool) -> Option<Cell> {
        if step.sync || step.unit >> Cell::UNIT_BITS != 0 || step.pc >> Cell::PC_BITS != 0 {
            return None;
        }
        let kind = if wrote { Cell::WRITTEN } else { Cell::READ };
        let [unit, pc, time] = [step.unit, step.pc, step.time].map(u64::from);
        Some(Cell(kind << Cell::KIND_SHIFT | unit << (Cell::PC_BITS + 32) | pc << 32 | time))
    }

    pub(super) fn more(number: usize) -> Cell {
        Cell(Cell::MORE << Cell::KIND_SHIFT | number as u64)
    }

    #[inline(always)]
    pub(super) fn contents(self) -> Contents {
        let step = || Step {
            unit: (self.0 >> (Cell::PC_BITS + 32)) as u32 & ((1 << Cell::UNIT_BITS) - 1),
            time: self.0 as u32,
            pc: (self.0 >> 32) as u32 & ((1 << Cell::PC_BITS) - 1),
            sync: false,
        };
        match self.0 >> Cell::KIND_SHIFT {
            Cell::READ => Contents::Read(step()),
            Cell::WRITTEN => Contents::Written(step()),
            Cell::MORE => Contents::More((self.0 & u64::from(u32::MAX)) as usize),
            _ => Contents::Nothing,
        }
    }

    /// Returns the cell after the warp of `step` makes a plain access of the whole word, or `None`
    /// if a cell cannot hold that. `mine` is the cell for this access alone.
    #[inline(always)]
    pub(super) fn after(
        self,
        mine: Cell,
        (step, wrote): (Step, bool),
        (warp, clocks): (&Warp, &Clocks),
    ) -> Result<Option<Cell>, Refused> {
        let (before, had_written) = match self.contents() {
            Contents::Nothing => return Ok(Some(mine)),
            Contents::Read(before) => (before, false),
            Contents::Written(before) => (before, true),
            Contents::More(_) => return Ok(None),
        };
        let alone = before.unit == step.unit;
        if (wrote || had_written)
            && !alone
            && before.time > clocks.time(&warp.clock, before.unit as usize)
        {
            return Err(before.conflict(had_written));
        }
        Ok((wrote || alone && !had_written).then_some(mine))
    }
}

/// The history of each half of a word. Rows of 16-bit values may meet within a word.
#[derive(Debug, Default, Clone)]
pub(super) struct Histories {
    first: History,
    /// Absent while all accesses have covered both halves.
    second: Option<Box<History>>,
}

#[derive(Debug, Clone, Default)]
struct History {
    write: Option<Step>,
    /// The last read of each warp since the write, sorted by warp.
    reads: Vec<Read>,
    /// The clock that a release stored here.
    published: Clock,
}

#[derive(Debug, Clone, Copy)]
struct Read {
    step: Step,
    /// The number of the access. Of several reads that race, the first is reported.
    number: u64,
}

/// An access to a part of a word.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub(super) access: Access,
    pub(super) step: Step,
    /// The halves that it covers.
    pub(super) halves: [bool; 2],
    /// Its number among all accesses.
    pub(super) number: u64,
}

impl Histories {
    /// Returns the histories of a word whose cell held everything so far.
    pub(super) fn of(account: &mut Account<'_>, contents: &Contents) -> Result<Histories, Refused> {
        let mut first = History::default();
        match contents {
            Contents::Read(step) => {
                account.room(&mut first.reads, CLOCKS)?;
                first.reads.push(Read { step: *step, number: 0 });
            }
            Contents::Written(step) => first.write = Some(*step),
            Contents::Nothing | Contents::More(_) => {}
        }
        Ok(Histories { first, second: None })
    }

    /// Returns the bytes of the host that they take.
    pub(super) fn held(&self) -> u64 {
        let reads = |history: &History| bytes_of::<Read>(history.reads.capacity() as u64);
        let second =
            self.second.as_ref().map_or(0, |second| bytes_of::<History>(1) + reads(second));
        bytes_of::<Histories>(1) + reads(&self.first) + second
    }

    /// Returns true if any part has been written.
    pub(super) fn have_written(&self) -> bool {
        let second = self.second.as_ref().is_some_and(|second| second.write.is_some());
        self.first.write.is_some() || second
    }

    /// Records an access, or returns the access that it races with.
    pub(super) fn access(
        &mut self,
        account: &mut Account<'_>,
        part: &Part,
        warp: &mut Warp,
        clocks: &mut Clocks,
    ) -> Result<(), Refused> {
        if self.second.is_none() && part.halves != [true, true] {
            let bytes = size_of::<History>() + self.first.reads.len() * size_of::<Read>();
            account.take(bytes as u64, CLOCKS)?;
            self.second = Some(Box::new(self.first.clone()));
        }
        if part.halves[0] {
            self.first.access(account, part, warp, clocks)?;
        }
        match &mut self.second {
            Some(second) if part.halves[1] => second.access(account, part, warp, clocks),
            _ => Ok(()),
        }
    }
}

impl History {
    fn access(
        &mut self,
        account: &mut Account<'_>,
        part: &Part,
        warp: &mut Warp,
        clocks: &mut Clocks,
    ) -> Result<(), Refused> {
        let Part { access, step, number, .. } = *part;
        let unseen = |before: &Step| {
            before.unit != step.unit
                && !(before.sync && access.sync)
                && before.time > clocks.time(&warp.clock, before.unit as usize)
        };
        if let Some(before) = self.write.filter(unseen) {
            return Err(before.conflict(true));
        }
        if access.writes {
            let unseen = self.reads.iter().filter(|read| unseen(&read.step));
            if let Some(read) = unseen.min_by_key(|read| read.number) {
                return Err(read.step.conflict(false));
            }
        }
        let hands = access.hands();
        match hands.takes {
            Some(Takes::AtOnce) => clocks.join(account, &mut warp.clock, &self.published)?,
            Some(Takes::AtFence) => clocks.join(account, &mut warp.seen, &self.published)?,
            None => {}
        }
        if access.writes {
            // The warp's synchronising access does not hide its plain one.
            let remains = |before: &Step| access.sync && !before.sync && before.unit == step.unit;
            if !self.write.as_ref().is_some_and(remains) {
                self.write = Some(step);
            }
            self.reads.retain(|read| remains(&read.step));
            if hands.ends {
                self.published = Clock::default();
            }
            match hands.leaves {
                Some(Leaves::Whole) => {
                    let clock = warp.whole(account, step, clocks)?;
                    clocks.join(account, &mut self.published, &clock)?;
                }
                Some(Leaves::Fenced) => {
                    clocks.join(account, &mut self.published, &warp.fenced)?;
                }
                None => {}
            }
        } else {
            let read = Read { step, number };
            match self.reads.binary_search_by_key(&step.unit, |read| read.step.unit) {
                Ok(place) => self.reads[place] = read,
                Err(place) => {
                    account.room(&mut self.reads, CLOCKS)?;
                    self.reads.insert(place, read);
                }
            }
        }
        Ok(())
    }
}

/// Cells of a page.
const CELLS: usize = 1024;
/// Pages that are found without a search: as many as a kernel streams through at the same time.
const RECENT: usize = 16;

#[derive(Debug, Clone)]
pub(super) struct Shadow {
    /// The index in `pages`, by the page's number.
    places: HashMap<u64, usize>,
    pages: Vec<Vec<Cell>>,
    /// Page numbers and their indices in `pages`.
    recent: [(u64, usize); RECENT],
}

impl Shadow {
    pub(super) fn new() -> Shadow {
        Shadow { places: HashMap::new(), pages: Vec::new(), recent: [(u64::MAX, 0); RECENT] }
    }

    /// Returns the bytes of the host that it takes.
    pub(super) fn held(&self) -> u64 {
        bytes_of::<(u64, usize)>(self.places.capacity() as u64)
            + bytes_of::<Vec<Cell>>(self.pages.capacity() as u64)
            + bytes_of::<Cell>((self.pages.len() * CELLS) as u64)
    }

    /// Returns the cell of word number `word` of the address space.
    #[inline(always)]
    pub(super) fn cell(
        &mut self,
        account: &mut Account<'_>,
        word: u64,
    ) -> Result<&mut Cell, Box<Fault>> {
        let page = word / CELLS as u64;
        let (number, place) = self.recent[Shadow::way(page)];
        let place = if number == page { place } else { self.find(account, page)? };
        Ok(&mut self.pages[place][word as usize % CELLS])
    }

    /// Returns the entry of `recent` for a page. The buffer's number is in the upper bits of an
    /// address, so they are mixed in.
    #[inline(always)]
    fn way(page: u64) -> usize {
        (page ^ page >> 28) as usize % RECENT
    }

    #[cold]
    fn find(&mut self, account: &mut Account<'_>, page: u64) -> Result<usize, Box<Fault>> {
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
