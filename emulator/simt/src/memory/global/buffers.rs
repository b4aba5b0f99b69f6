//! Global memory: buffers of words, each with a shadow that records its accesses.
//!
//! An address consists of a buffer's number and an offset, so an access past the end of a buffer
//! does not reach another buffer. Freed numbers are used again late, so that a stale address is
//! reported with the name of its buffer. Pages are allocated when they are touched: a buffer of 30
//! GB costs only the pages in use. Words are atomic ([`Word`]), so blocks can run on several cores
//! without a lock. Tested here, and by `suite/memory.rs` and `cases/memory.ptx`.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, OnceLock, RwLock};

use super::buffer::{
    Buffer, Contents, MAX_BYTES, MemoryError, OFFSET_BITS, OFFSET_MASK, PAGE_BYTES, PAGE_WORDS,
    Slot, describe, find, new_page, word_in_page,
};
use super::saved::{Placed, Spare, Workspaces};
use super::word::{KNOWN, TAGS, Word, byte_mask, mask};
use crate::memory::texture::Objects;

/// The number of freed buffers that keep their number, so that a report can name a stale address.
const REMEMBERED: usize = 256;
const MAX_BUFFERS: usize = 1 << 20;

/// The global memory of an emulated device.
///
/// All methods take `&self`: words are atomic, so that blocks can run on several cores. The host
/// reads bytes that nothing has written as zero. A kernel that reads them gets a report.
///
/// The memory also saves up to 64 MiB of the host for later launches: registers, shared memory and
/// shadows of blocks that have run.
#[derive(Debug)]
pub struct Memory {
    capacity: u64,
    used: AtomicU64,
    /// The limit in bytes of the touched pages, without their shadow.
    resident_limit: u64,
    resident: AtomicU64,
    table: RwLock<Table>,
    /// The first tag that no block has used; see [`Word`].
    next_tag: AtomicU32,
    /// The blocks that launches on this memory save for later ones.
    pub(crate) spare: Spare,
    /// The modules whose variables are in this memory.
    pub(crate) modules: Placed,
    pub(crate) objects: Objects,
    /// The workspaces of cooperative launches.
    pub(crate) workspaces: Workspaces,
}

#[derive(Debug, Default)]
struct Table {
    slots: Vec<Slot>,
    freed: VecDeque<usize>,
}

impl Memory {
    /// Returns a memory of `capacity` bytes. Pages of at most a quarter of it, or of 4 GiB if that
    /// is more, may be touched. The host needs 8 bytes for every 4 bytes of a touched page.
    pub fn new(capacity: u64) -> Memory {
        Memory::with_resident_limit(capacity, (capacity / 4).max(4 << 30))
    }

    /// Returns a memory of `capacity` bytes, of which pages of at most `resident_limit` bytes may
    /// be touched. The host needs 8 bytes for every 4 bytes of a touched page.
    pub fn with_resident_limit(capacity: u64, resident_limit: u64) -> Memory {
        Memory {
            capacity,
            used: AtomicU64::new(0),
            resident_limit,
            resident: AtomicU64::new(0),
            table: RwLock::default(),
            next_tag: AtomicU32::new(1),
            spare: Spare::default(),
            modules: Placed::default(),
            objects: Objects::default(),
            workspaces: Workspaces::default(),
        }
    }

    /// Returns the number of bytes that can be allocated in all.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Returns the number of bytes that are allocated.
    pub fn used(&self) -> u64 {
        self.used.load(Relaxed)
    }

    /// Allocates `bytes` bytes, which count as never written. Returns their address, a multiple of
    /// 256. Reports use `name`.
    ///
    /// # Errors
    ///
    /// [`MemoryError::OutOfMemory`].
    pub fn allocate(&self, name: &str, bytes: u64) -> Result<u64, MemoryError> {
        self.allocate_with(name, bytes, Contents::Nothing)
    }

    /// Allocates a buffer with these initial contents.
    pub(crate) fn allocate_with(
        &self,
        name: &str,
        bytes: u64,
        contents: Contents,
    ) -> Result<u64, MemoryError> {
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
        let buffer = Arc::new(Buffer { name: name.into(), bytes, contents, pages: pages.into() });

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

    /// Frees a buffer by its first address, or a texture or surface by its handle.
    ///
    /// # Errors
    ///
    /// [`MemoryError::BadAddress`] if no live buffer begins there.
    pub fn free(&self, address: u64) -> Result<(), MemoryError> {
        if self.objects.free(address) {
            return Ok(());
        }
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

    /// Checks that a range is in one live buffer. The error describes the address.
    pub(crate) fn holds(&self, address: u64, bytes: u64) -> Result<(), String> {
        let table = self.table.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        match find(&table.slots, address) {
            Some((buffer, offset)) if bytes <= buffer.bytes - offset => Ok(()),
            _ => {
                let found = describe(&table.slots, address);
                Err(format!("its {bytes} bytes do not lie in one buffer: it begins at {found}"))
            }
        }
    }

    /// Writes bytes from the host to an address.
    ///
    /// # Errors
    ///
    /// [`MemoryError`] if the range leaves its buffer or the limit of touched pages is reached.
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

    /// Writes one byte to every place of a range of `bytes` bytes.
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

    /// Marks a range of `bytes` bytes as never written.
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

    /// Reads bytes to the host; bytes that were never written are zero.
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

    /// Calls `visit(word, first byte, bytes)` for every word of a range. If `touch` is false, the
    /// word is `None` where its page has not been touched.
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
                let (words, _) =
                    self.touch(&buffer, page).ok_or_else(|| MemoryError::OutOfMemory {
                        asked: PAGE_BYTES,
                        free: self.resident_limit.saturating_sub(self.resident.load(Relaxed)),
                    })?;
                Some(words)
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

    /// Returns the page, and true if this call allocated it; `None` beyond the limit.
    pub(crate) fn touch<'b>(
        &self,
        buffer: &'b Buffer,
        page: u64,
    ) -> Option<(&'b [Word; PAGE_WORDS], bool)> {
        let cell = buffer.pages.get(page as usize)?;
        if let Some(words) = cell.get() {
            return Some((words, false));
        }
        if self.resident.fetch_add(PAGE_BYTES, Relaxed) + PAGE_BYTES > self.resident_limit {
            self.resident.fetch_sub(PAGE_BYTES, Relaxed);
            return None;
        }
        let made = new_page(buffer.contents).is_some_and(|words| cell.set(words).is_ok());
        if !made {
            // The host has no more memory, or another core was faster and its page counts.
            self.resident.fetch_sub(PAGE_BYTES, Relaxed);
        }
        cell.get().map(|words| (&**words, made))
    }

    /// Returns a copy of the table of buffers, so that a launch needs no lock.
    pub(crate) fn snapshot(&self) -> Vec<Slot> {
        self.table.read().unwrap_or_else(|poisoned| poisoned.into_inner()).slots.clone()
    }

    /// Reserves tags for `blocks` blocks of a new launch and returns the first. A grid with more
    /// blocks than tags uses each several times, and misses races between blocks of one tag.
    pub(crate) fn reserve_tags(&self, blocks: u64) -> u32 {
        let table = self.table_mut();
        let blocks = u32::try_from(blocks).map_or(TAGS - 1, |blocks| blocks.min(TAGS - 1));
        let mut first = self.next_tag.load(Relaxed);
        if first + blocks > TAGS {
            // All tags are used up, so forget which block did what.
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

    /// Returns the number of buffers in the table that a launch copies.
    pub(crate) fn slots(&self) -> usize {
        self.table.read().unwrap_or_else(|poisoned| poisoned.into_inner()).slots.len()
    }

    fn table_mut(&self) -> std::sync::RwLockWriteGuard<'_, Table> {
        self.table.write().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
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
    fn more_blocks_than_a_number_of_32_bits_take_all_tags() {
        let memory = Memory::new(1000);
        assert_eq!(memory.reserve_tags(2), 1);
        // Too few tags are left, so they begin again; this launch then uses all of them.
        assert_eq!(memory.reserve_tags(1 << 32), 1);
        assert_eq!(memory.reserve_tags(2), 1);
        assert_eq!(memory.reserve_tags(2), 3);
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
