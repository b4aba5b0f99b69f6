//! A word of global memory with its shadow: the bytes that have been written, and the block of the
//! launch that accessed it.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

/// Four bytes and their shadow.
///
/// The state has four bits for the bytes that have been written, two bits for the accesses of a
/// launch ([`NOTHING`], [`READ`], [`SHARED`], [`WRITTEN`]), and the tag of the block that made
/// them. Every block of every launch has a different tag, in ascending order. So a new launch
/// ignores the accesses of the launch before without clearing them.
#[derive(Debug, Default)]
pub(crate) struct Word {
    pub(super) data: AtomicU32,
    pub(super) state: AtomicU32,
}

pub(super) const KNOWN: u32 = 0xf;
const DONE: u32 = 0x30;
const NOTHING: u32 = 0x00;
/// One block read it.
const READ: u32 = 0x10;
/// Several blocks read it; the tag is the first tag of the launch.
const SHARED: u32 = 0x20;
/// One block wrote it, and may have read it.
const WRITTEN: u32 = 0x30;
const TAG_SHIFT: u32 = 6;
/// One more than the largest tag.
pub(super) const TAGS: u32 = 1 << (32 - TAG_SHIFT);

/// The states that a block compares with and stores, made from the tags of the launch's first block
/// and of this block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tags {
    first: u32,
    /// One more than the last tag of the launch. A tag from here on belongs to another launch, too:
    /// to one that began before the tags were used up and still runs.
    end: u32,
    mine: u32,
    /// States below this one are from earlier launches.
    floor: u32,
    read: u32,
    shared: u32,
    written: u32,
}

impl Tags {
    /// Returns the tags of block `block` of `blocks`, given the tag of the grid's first block.
    pub(crate) fn new(first: u32, blocks: u64, block: u64) -> Tags {
        let mine = first + (block % u64::from(TAGS - first)) as u32;
        Tags {
            first,
            end: first + blocks.min(u64::from(TAGS - first)) as u32,
            mine,
            floor: first << TAG_SHIFT,
            read: KNOWN | READ | mine << TAG_SHIFT,
            shared: KNOWN | SHARED | first << TAG_SHIFT,
            written: KNOWN | WRITTEN | mine << TAG_SHIFT,
        }
    }
}

/// An error of an access to a word.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wrong {
    Unwritten,
    /// Another block of the launch accessed the word; `None` if several blocks did.
    OtherBlock {
        block: Option<u32>,
        wrote: bool,
    },
}

impl Word {
    /// Returns a zero that counts as written, but by no block.
    pub(super) fn zero() -> Word {
        Word { data: AtomicU32::new(0), state: AtomicU32::new(KNOWN) }
    }

    /// Reads the word for a block on the fast path; `None` if that is not certainly right.
    #[inline(always)]
    pub(crate) fn read_plainly(&self, tags: &Tags) -> Option<u32> {
        let state = self.state.load(Relaxed);
        if state < tags.floor {
            if state & KNOWN != KNOWN {
                return None;
            }
            self.state.store(tags.read, Relaxed);
        } else if state != tags.read && state != tags.written && state != tags.shared {
            return None;
        }
        Some(self.data.load(Relaxed))
    }

    /// Reads the word for a block, with all checks.
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
            _ if state >> TAG_SHIFT >= tags.end => self.state.store(tags.read, Relaxed),
            NOTHING => self.state.store(tags.read, Relaxed),
            READ => self.state.store(tags.shared, Relaxed),
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

    /// Writes all four bytes for a block.
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
        if tag >= tags.end {
            return Ok(());
        }
        if done == SHARED || done != NOTHING && tag != tags.mine {
            let block = (done != SHARED).then_some(tag - tags.first);
            return Err(Wrong::OtherBlock { block, wrote: done == WRITTEN });
        }
        Ok(())
    }

    /// Returns true if a block of the launch has written the word.
    pub(crate) fn is_written(&self, tags: &Tags) -> bool {
        let state = self.state.load(Relaxed);
        state >= tags.floor && state >> TAG_SHIFT < tags.end && state & DONE == WRITTEN
    }

    /// Returns the word if all of `bytes` (a bit for each byte) has been written.
    #[inline(always)]
    pub(crate) fn get(&self, bytes: u32) -> Result<u32, Wrong> {
        if self.state.load(Relaxed) & bytes != bytes {
            return Err(Wrong::Unwritten);
        }
        Ok(self.data.load(Relaxed))
    }

    /// Stores the bytes that `bytes` names, without a check for other blocks.
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

    /// Replaces the word by a function of it in one step. Returns the old value.
    pub(crate) fn update(&self, new: impl Fn(u32) -> u32) -> u32 {
        let update = self.data.fetch_update(Relaxed, Relaxed, |old| Some(new(old)));
        update.unwrap_or_else(|old| old)
    }

    pub(super) fn known(&self) -> u32 {
        self.state.load(Relaxed) & KNOWN
    }
}

/// Returns a bit for each of `count` bytes from byte `first`.
pub(crate) fn mask(first: usize, count: usize) -> u32 {
    ((1 << count) - 1) << first
}

/// Returns the mask of bits for a mask of bytes: each bit of `bytes` becomes eight.
pub(crate) fn byte_mask(bytes: u32) -> u32 {
    (0..4).filter(|i| bytes >> i & 1 == 1).fold(0, |mask, i| mask | 0xff << (8 * i))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After the last tag, launches get tags from the first one again. A launch with some of the
    /// last tags may still run and write at that time.
    #[test]
    fn what_another_launch_wrote_is_no_race_whatever_its_tags() {
        let launches = [Tags::new(1, 5, 2), Tags::new(1000, 10, 3), Tags::new(TAGS - 10, 10, 9)];
        for before in &launches {
            for after in &launches {
                let word = Word::default();
                word.write(7, before).unwrap();
                assert_eq!(word.read(after).ok(), Some(7), "{before:?} {after:?}");
                word.write(8, before).unwrap();
                word.write(9, after).unwrap();
                let neighbour = Tags::new(after.first, u64::from(after.end - after.first), 0);
                let who = after.mine - after.first;
                let found = word.read(&neighbour);
                let is_found = |wrong: &Wrong| matches!(wrong, Wrong::OtherBlock { block: Some(block), wrote: true } if *block == who);
                assert!(found.as_ref().is_err_and(is_found), "{found:?}");
                assert!(word.write(1, &neighbour).is_err());
            }
        }
    }
}
