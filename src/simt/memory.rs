//! Global memory: buffers of shared words, each with a shadow that says what is known of it.
//!
//! An address is a buffer's number and an offset, so that an access past the end of a buffer lands in
//! no other. Pages come into being when they are touched: a buffer of 30 GB costs what is used of it.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, RwLock};

use super::report::Count;

const OFFSET_BITS: u32 = 40;
const OFFSET_MASK: u64 = (1 << OFFSET_BITS) - 1;
/// The longest buffer. Offsets beyond are negative ones, of the buffer behind.
const MAX_BYTES: u64 = 1 << (OFFSET_BITS - 1);
/// How many freed buffers are remembered, to say which one a stale address meant.
const REMEMBERED: usize = 256;
const MAX_BUFFERS: usize = 1 << 20;

pub(crate) const PAGE_WORDS: usize = 4096;
const PAGE_BYTES: u64 = 4 * PAGE_WORDS as u64;

/// The global memory of an emulated device.
///
/// All methods take `&self`: words are atomic, so that blocks can run on several cores. Bytes that
/// nothing has written read as zero from the host, and are reported when a kernel reads them.
#[derive(Debug)]
pub struct Memory {
    capacity: u64,
    used: AtomicU64,
    /// Bytes that touched pages may take, their shadow not counted.
    resident_limit: u64,
    resident: AtomicU64,
    table: RwLock<Table>,
    /// The first tag that no block of a launch has had: see [`Word`].
    next_tag: AtomicU32,
}

#[derive(Debug, Default)]
struct Table {
    slots: Vec<Slot>,
    freed: VecDeque<usize>,
}

#[derive(Debug, Clone)]
pub(crate) enum Slot {
    Live(Arc<Buffer>),
    Freed(Arc<str>),
}

/// A buffer and its pages.
#[derive(Debug)]
pub(crate) struct Buffer {
    pub(crate) name: Arc<str>,
    pub(crate) bytes: u64,
    pages: Box<[OnceLock<Page>]>,
}

/// The words of a page. Its length is part of its type, so that an index into it needs no check.
pub(crate) type Page = Box<[Word; PAGE_WORDS]>;

/// Four bytes, and what is known of them.
///
/// The state has four bits for the bytes that have been written, two for what was done with the word in a
/// launch ([`NOTHING`], [`READ`], [`SHARED`], [`WRITTEN`]), and a tag for the block that did. Every block of every
/// launch has a tag of its own, in ascending order, so that a new launch forgets what the last one did.
#[derive(Debug, Default)]
pub(crate) struct Word {
    data: AtomicU32,
    state: AtomicU32,
}

const KNOWN: u32 = 0xf;
const DONE: u32 = 0x30;
const NOTHING: u32 = 0x00;
/// One block read it.
const READ: u32 = 0x10;
/// Several did; the tag is the launch's first.
const SHARED: u32 = 0x20;
/// One block wrote it, and may have read it.
const WRITTEN: u32 = 0x30;
const TAG_SHIFT: u32 = 6;
/// One more than the largest tag.
const TAGS: u32 = 1 << (32 - TAG_SHIFT);

/// What a block compares states with, and what it leaves: made of the tags of its launch's first block and of
/// its own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tags {
    first: u32,
    mine: u32,
    /// States below are of earlier launches.
    floor: u32,
    read: u32,
    written: u32,
}

impl Tags {
    /// Those of block number `block`, given the tag of the grid's first block.
    pub(crate) fn new(first: u32, block: u64) -> Tags {
        let mine = first + (block % u64::from(TAGS - first)) as u32;
        Tags {
            first,
            mine,
            floor: first << TAG_SHIFT,
            read: KNOWN | READ | mine << TAG_SHIFT,
            written: KNOWN | WRITTEN | mine << TAG_SHIFT,
        }
    }
}

/// What is wrong with an access to a word.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wrong {
    Unwritten,
    /// Another block of the launch accessed it, number so in the grid; `None` if several did.
    OtherBlock {
        block: Option<u32>,
        wrote: bool,
    },
}

impl Word {
    /// What a block reads.
    #[inline(always)]
    pub(crate) fn read(&self, tags: &Tags) -> Result<u32, Wrong> {
        let state = self.state.load(Relaxed);
        if state & KNOWN != KNOWN {
            return Err(Wrong::Unwritten);
        }
        if state < tags.floor {
            self.state.store(tags.read, Relaxed);
        } else if state != tags.read && state != tags.written {
            self.read_after_others(state, tags)?;
        }
        Ok(self.data.load(Relaxed))
    }

    fn read_after_others(&self, state: u32, tags: &Tags) -> Result<(), Wrong> {
        match state & DONE {
            NOTHING => self.state.store(tags.read, Relaxed),
            READ => self.state.store(KNOWN | SHARED | tags.floor, Relaxed),
            SHARED => {}
            _ => {
                return Err(Wrong::OtherBlock {
                    block: Some((state >> TAG_SHIFT) - tags.first),
                    wrote: true,
                });
            }
        }
        Ok(())
    }

    /// A block writes all four bytes.
    #[inline(always)]
    pub(crate) fn write(&self, value: u32, tags: &Tags) -> Result<(), Wrong> {
        let state = self.state.load(Relaxed);
        if state >= tags.floor && state != tags.written {
            self.write_after_others(state, tags)?;
        }
        self.data.store(value, Relaxed);
        self.state.store(tags.written, Relaxed);
        Ok(())
    }

    fn write_after_others(&self, state: u32, tags: &Tags) -> Result<(), Wrong> {
        let (tag, done) = (state >> TAG_SHIFT, state & DONE);
        if done == SHARED || done != NOTHING && tag != tags.mine {
            let block = (done != SHARED).then_some(tag - tags.first);
            return Err(Wrong::OtherBlock { block, wrote: done == WRITTEN });
        }
        Ok(())
    }

    /// What is there, if all of `bytes` (a bit each) has been written.
    #[inline(always)]
    pub(crate) fn get(&self, bytes: u32) -> Result<u32, Wrong> {
        if self.state.load(Relaxed) & bytes != bytes {
            return Err(Wrong::Unwritten);
        }
        Ok(self.data.load(Relaxed))
    }

    /// Stores the bytes that `bytes` names, whoever did what before.
    #[inline(always)]
    pub(crate) fn put(&self, value: u32, bytes: u32) {
        if bytes == KNOWN {
            self.data.store(value, Relaxed);
        } else {
            // Another core may write the other bytes of the word at the same time.
            let keep = !byte_mask(bytes);
            let merge = |old| Some(old & keep | value & !keep);
            let _ = self.data.fetch_update(Relaxed, Relaxed, merge);
        }
        self.state.fetch_or(bytes, Relaxed);
    }

    /// Replaces the word by a function of it, in one step; returns what it was.
    pub(crate) fn update(&self, new: impl Fn(u32) -> u32) -> u32 {
        let update = self.data.fetch_update(Relaxed, Relaxed, |old| Some(new(old)));
        update.unwrap_or_else(|old| old)
    }

    fn known(&self) -> u32 {
        self.state.load(Relaxed) & KNOWN
    }
}

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
        }
    }
}

impl std::error::Error for MemoryError {}

impl Memory {
    /// Memory of `capacity` bytes, of which pages of at most a quarter of it, or 4 GiB, may be
    /// touched (the host holds 8 bytes for every 4).
    pub fn new(capacity: u64) -> Memory {
        Memory::with_resident_limit(capacity, (capacity / 4).max(4 << 30))
    }

    /// The same with a given limit, in bytes, of the pages that may be touched.
    pub fn with_resident_limit(capacity: u64, resident_limit: u64) -> Memory {
        Memory {
            capacity,
            used: AtomicU64::new(0),
            resident_limit,
            resident: AtomicU64::new(0),
            table: RwLock::default(),
            next_tag: AtomicU32::new(1),
        }
    }

    /// Bytes that can be allocated in all.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Bytes that are allocated.
    pub fn used(&self) -> u64 {
        self.used.load(Relaxed)
    }

    /// Allocates `bytes` bytes, which count as never written, and returns their address, a multiple of
    /// 256. Reports call them by `name`.
    ///
    /// # Errors
    ///
    /// [`MemoryError::OutOfMemory`].
    pub fn allocate(&self, name: &str, bytes: u64) -> Result<u64, MemoryError> {
        let mut table = self.table_mut();
        let free = self.capacity.saturating_sub(self.used());
        let refused = MemoryError::OutOfMemory { asked: bytes, free };
        if bytes > free || bytes > MAX_BYTES {
            return Err(refused);
        }
        let mut pages = Vec::new();
        let count = bytes.div_ceil(PAGE_BYTES) as usize;
        pages.try_reserve_exact(count).map_err(|_| refused.clone())?;
        pages.resize_with(count, OnceLock::new);
        let buffer = Arc::new(Buffer { name: name.into(), bytes, pages: pages.into() });

        let number = if table.freed.len() > REMEMBERED || table.slots.len() == MAX_BUFFERS {
            table.freed.pop_front().ok_or(refused)?
        } else {
            table.slots.push(Slot::Freed("".into()));
            table.slots.len() - 1
        };
        table.slots[number] = Slot::Live(buffer);
        self.used.fetch_add(bytes, Relaxed);
        Ok((number as u64 + 1) << OFFSET_BITS)
    }

    /// Gives a buffer back, by the address that [`Memory::allocate`] returned.
    ///
    /// # Errors
    ///
    /// [`MemoryError::BadAddress`] if no live buffer begins there.
    pub fn free(&self, address: u64) -> Result<(), MemoryError> {
        let mut table = self.table_mut();
        let number = ((address >> OFFSET_BITS) as usize).wrapping_sub(1);
        match table.slots.get(number) {
            Some(Slot::Live(buffer)) if address & OFFSET_MASK == 0 => {
                let (name, bytes, resident) =
                    (buffer.name.clone(), buffer.bytes, buffer.resident());
                table.slots[number] = Slot::Freed(name);
                table.freed.push_back(number);
                self.used.fetch_sub(bytes, Relaxed);
                self.resident.fetch_sub(resident, Relaxed);
                Ok(())
            }
            _ => {
                let found = describe(&table.slots, address);
                Err(MemoryError::BadAddress { address, bytes: 0, found })
            }
        }
    }

    /// Writes bytes from the host.
    ///
    /// # Errors
    ///
    /// [`MemoryError`] if the range leaves its buffer or a page cannot be had.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), MemoryError> {
        let mut rest = bytes;
        self.each_word(address, bytes.len() as u64, true, |word, first, count| {
            let (now, later) = rest.split_at(count);
            rest = later;
            let mut value = [0; 4];
            value[first..first + count].copy_from_slice(now);
            if let Some(word) = word {
                word.put(u32::from_le_bytes(value), mask(first, count));
            }
        })
    }

    /// Writes the same byte everywhere in a range.
    ///
    /// # Errors
    ///
    /// As [`Memory::write`].
    pub fn fill(&self, address: u64, bytes: u64, byte: u8) -> Result<(), MemoryError> {
        let value = u32::from_le_bytes([byte; 4]);
        self.each_word(address, bytes, true, |word, first, count| {
            if let Some(word) = word {
                word.put(value, mask(first, count));
            }
        })
    }

    /// Makes a range count as never written again.
    ///
    /// # Errors
    ///
    /// As [`Memory::write`].
    pub fn forget(&self, address: u64, bytes: u64) -> Result<(), MemoryError> {
        self.each_word(address, bytes, false, |word, first, count| {
            if let Some(word) = word {
                word.state.fetch_and(!mask(first, count), Relaxed);
            }
        })
    }

    /// Reads bytes to the host; those never written are zero.
    ///
    /// # Errors
    ///
    /// [`MemoryError::BadAddress`] if the range leaves its buffer.
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), MemoryError> {
        let length = bytes.len() as u64;
        let mut rest = bytes;
        self.each_word(address, length, false, |word, first, count| {
            let value = word.map_or(0, |word| {
                let (known, data) = (word.known(), word.data.load(Relaxed));
                if known == KNOWN { data } else { data & byte_mask(known) }
            });
            let (now, later) = std::mem::take(&mut rest).split_at_mut(count);
            now.copy_from_slice(&value.to_le_bytes()[first..first + count]);
            rest = later;
        })
    }

    /// Calls `visit(word, first byte, bytes)` for every word of a range; the word is `None` where its page
    /// has not been touched and is not to be.
    fn each_word(
        &self,
        address: u64,
        bytes: u64,
        touch: bool,
        mut visit: impl FnMut(Option<&Word>, usize, usize),
    ) -> Result<(), MemoryError> {
        if bytes == 0 {
            return Ok(());
        }
        let buffer = {
            let table = self.table.read().unwrap_or_else(|poisoned| poisoned.into_inner());
            match find(&table.slots, address) {
                Some((buffer, offset)) if bytes <= buffer.bytes - offset => buffer.clone(),
                _ => {
                    let found = describe(&table.slots, address);
                    return Err(MemoryError::BadAddress { address, bytes, found });
                }
            }
        };
        let (mut offset, end) = (address & OFFSET_MASK, (address & OFFSET_MASK) + bytes);
        while offset < end {
            let page = offset / PAGE_BYTES;
            let words = if touch {
                Some(self.touch(&buffer, page).ok_or_else(|| MemoryError::OutOfMemory {
                    asked: PAGE_BYTES,
                    free: self.resident_limit.saturating_sub(self.resident.load(Relaxed)),
                })?)
            } else {
                buffer.page(page)
            };
            let stop = end.min((page + 1) * PAGE_BYTES);
            while offset < stop {
                let first = (offset % 4) as usize;
                let count = (4 - first).min((stop - offset) as usize);
                visit(words.map(|words| &words[word_in_page(offset)]), first, count);
                offset += count as u64;
            }
        }
        Ok(())
    }

    /// The page, made if it is not there; `None` if it would pass the limit.
    pub(crate) fn touch<'b>(
        &self,
        buffer: &'b Buffer,
        page: u64,
    ) -> Option<&'b [Word; PAGE_WORDS]> {
        let cell = buffer.pages.get(page as usize)?;
        if let Some(words) = cell.get() {
            return Some(words);
        }
        if self.resident.fetch_add(PAGE_BYTES, Relaxed) + PAGE_BYTES > self.resident_limit {
            self.resident.fetch_sub(PAGE_BYTES, Relaxed);
            return None;
        }
        let mut words = Vec::new();
        words.try_reserve_exact(PAGE_WORDS).ok()?;
        words.resize_with(PAGE_WORDS, Word::default);
        if cell.set(words.into_boxed_slice().try_into().ok()?).is_err() {
            // Another core was faster; its page counts.
            self.resident.fetch_sub(PAGE_BYTES, Relaxed);
        }
        cell.get().map(|words| &**words)
    }

    /// The buffers as they are, for a launch that then needs no lock.
    pub(crate) fn snapshot(&self) -> Vec<Slot> {
        self.table.read().unwrap_or_else(|poisoned| poisoned.into_inner()).slots.clone()
    }

    /// Tags for `blocks` blocks of a new launch: the first of them. A grid of more blocks than there are
    /// tags uses them several times, and what two blocks with the same tag do to each other goes unnoticed.
    pub(crate) fn reserve_tags(&self, blocks: u32) -> u32 {
        let table = self.table_mut();
        let blocks = blocks.min(TAGS - 1);
        let mut first = self.next_tag.load(Relaxed);
        if first + blocks > TAGS {
            // All tags are used up: forget who did what.
            for slot in &table.slots {
                let Slot::Live(buffer) = slot else { continue };
                for word in
                    buffer.pages.iter().filter_map(OnceLock::get).flat_map(|page| page.iter())
                {
                    word.state.fetch_and(KNOWN, Relaxed);
                }
            }
            first = 1;
        }
        self.next_tag.store(first + blocks, Relaxed);
        first
    }

    fn table_mut(&self) -> std::sync::RwLockWriteGuard<'_, Table> {
        self.table.write().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Buffer {
    #[inline(always)]
    pub(crate) fn page(&self, page: u64) -> Option<&[Word; PAGE_WORDS]> {
        self.pages.get(page as usize)?.get().map(|words| &**words)
    }

    fn resident(&self) -> u64 {
        self.pages.iter().filter(|page| page.get().is_some()).count() as u64 * PAGE_BYTES
    }
}

/// The live buffer and the offset in it that an address lies in.
pub(crate) fn find(slots: &[Slot], address: u64) -> Option<(&Arc<Buffer>, u64)> {
    let number = ((address >> OFFSET_BITS) as usize).wrapping_sub(1);
    match slots.get(number) {
        Some(Slot::Live(buffer)) if address & OFFSET_MASK < buffer.bytes => {
            Some((buffer, address & OFFSET_MASK))
        }
        _ => None,
    }
}

/// What an address that lies in no buffer is nearest to, as a phrase.
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
        None => format!("address {address:#x}, near no buffer"),
    }
}

pub(crate) struct Named<'a>(pub(crate) &'a Buffer);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "buffer `{}` ({})", self.0.name, Count(self.0.bytes, "byte"))
    }
}

/// The offset part of an address.
pub(crate) fn offset_of(address: u64) -> u64 {
    address & OFFSET_MASK
}

/// The number of the page that an offset lies in.
#[inline(always)]
pub(crate) fn page_of(offset: u64) -> u64 {
    offset / PAGE_BYTES
}

/// The word of its page that an offset lies in.
#[inline(always)]
pub(crate) fn word_in_page(offset: u64) -> usize {
    (offset / 4) as usize % PAGE_WORDS
}

/// A bit per byte: `count` bytes from `first`.
pub(crate) fn mask(first: usize, count: usize) -> u32 {
    ((1 << count) - 1) << first
}

/// A bit per byte, made eight.
pub(crate) fn byte_mask(bytes: u32) -> u32 {
    (0..4).filter(|i| bytes >> i & 1 == 1).fold(0, |mask, i| mask | 0xff << (8 * i))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_and_others_stay() {
        let memory = Memory::new(1 << 20);
        let a = memory.allocate("a", 100).unwrap();
        memory.write(a, &[7; 100]).unwrap();
        memory.write(a + 3, &[1, 2, 3, 4, 5, 6]).unwrap();
        let mut back = [0; 12];
        memory.read(a, &mut back).unwrap();
        assert_eq!(back, [7, 7, 7, 1, 2, 3, 4, 5, 6, 7, 7, 7]);
        memory.forget(a + 1, 2).unwrap();
        memory.read(a, &mut back).unwrap();
        assert_eq!(back[..4], [7, 0, 0, 1]);
    }

    #[test]
    fn errors_say_what_is_there() {
        let memory = Memory::new(1000);
        let a = memory.allocate("inputs", 600).unwrap();
        let error = memory.allocate("b", 500).unwrap_err();
        assert_eq!(error.to_string(), "out of memory: asked for 500 bytes, 400 are free");
        let error = memory.read(a + 590, &mut [0; 20]).unwrap_err().to_string();
        assert!(error.contains("offset 590 of buffer `inputs` (600 bytes)"), "{error}");
        assert!(memory.write(a + 600, &[0]).unwrap_err().to_string().contains("0 bytes past"));
        assert!(memory.write(a - 4, &[0]).unwrap_err().to_string().contains("4 bytes before"));
        memory.free(a).unwrap();
        assert!(memory.write(a, &[0]).unwrap_err().to_string().contains("been freed"));
        assert!(memory.free(a).is_err());
        assert_eq!(memory.used(), 0);
        assert!(memory.allocate("c", 1000).is_ok());
    }

    #[test]
    fn only_touched_pages_count() {
        let memory = Memory::with_resident_limit(1 << 40, 3 * PAGE_BYTES);
        let a = memory.allocate("a", 1 << 36).unwrap();
        for place in [0, 1 << 35, (1 << 36) - 1] {
            memory.write(a + place, &[1]).unwrap();
        }
        let error = memory.write(a + (1 << 34), &[1]).unwrap_err();
        assert!(matches!(error, MemoryError::OutOfMemory { .. }), "{error}");
        memory.free(a).unwrap();
        assert_eq!(memory.resident.load(Relaxed), 0);
    }
}
