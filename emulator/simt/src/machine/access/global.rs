//! Global memory as a warp sees it: loads and stores of 32 lanes, and the reports of their
//! mistakes.
//!
//! A load or store of a whole warp mostly touches one page of one buffer, at addresses that are
//! equally far apart. Such a request is read or written page by page. All others go lane by lane,
//! with the same checks. An access notes in the word's shadow which block made it. Where blocks run
//! together, it asks `memory::order` instead whether something orders it behind the accesses before
//! it. Tested by `memory.rs`, `transfer.rs` and `launches.rs` in `tests/suite`, and by `blocks.ptx`
//! and `reports.ptx` in `tests/cases`.

use super::moved::{Moved, Request, gathered, spread};
use crate::isa::{Order, Vector};
use crate::machine::state::{Place, Registers, Run};
use crate::memory::global::{self, Buffer, Contents, Named, PAGE_WORDS, Word, Wrong, page_of};
use crate::memory::order::{Access, Conflict, Refused};
use crate::report::{Count, Fault, ReportKind, Result, bytes_of, fault, lanes as each};

impl Run<'_> {
    pub(crate) fn load_global(
        &mut self,
        r: &mut Registers,
        place: &Place,
        shape: Vector,
        asked: Request<'_>,
    ) -> Result<()> {
        let (_, lanes, _) = asked;
        match shape.bytes() {
            16 => spread(r, &shape, lanes, &self.read_all::<4>(place, shape, asked)?),
            8 => spread(r, &shape, lanes, &self.read_all::<2>(place, shape, asked)?),
            _ => spread(r, &shape, lanes, &self.read_all::<1>(place, shape, asked)?),
        }
        Ok(())
    }

    pub(crate) fn store_global(
        &mut self,
        r: &Registers,
        place: &Place,
        shape: Vector,
        asked: Request<'_>,
    ) -> Result<()> {
        match shape.bytes() {
            16 => self.write_all::<4>(place, shape, asked, &gathered(r, &shape)),
            8 => self.write_all::<2>(place, shape, asked, &gathered(r, &shape)),
            _ => self.write_all::<1>(place, shape, asked, &gathered(r, &shape)),
        }
    }

    #[inline(always)]
    fn read_all<const W: usize>(
        &mut self,
        place: &Place,
        shape: Vector,
        (addresses, lanes, stride): Request<'_>,
    ) -> Result<Moved<W>> {
        let (bytes, mut moved) = (shape.bytes(), [[0; W]; 32]);
        let near = self.near::<W>(shape, addresses, lanes);
        if let Some(page) = near.page_of_all(addresses, stride) {
            let mut done = 0;
            'lanes: while done < 32 {
                let first = global::word_in_page(addresses[done]);
                for k in 0..W {
                    match page[(first + k) % PAGE_WORDS].read_plainly(&place.tags) {
                        Some(found) => moved[done][k] = found,
                        None => break 'lanes,
                    }
                }
                done += 1;
            }
            if done == 32 {
                return Ok(moved);
            }
        }
        for lane in each(lanes) {
            if let Some(words) = near.words::<W>(addresses[lane]) {
                let read = |(word, value): (&Word, &mut u32)| {
                    let found = word.read_plainly(&place.tags);
                    found.map(|found| *value = found).is_some()
                };
                if words.iter().zip(&mut moved[lane]).all(read) {
                    continue;
                }
            }
            let value = self.read(place, shape.order, addresses[lane], bytes, lane);
            let value = value.map_err(|fault| self.with_alike(fault, addresses, lanes, bytes))?;
            moved[lane].copy_from_slice(&value[..W]);
        }
        Ok(moved)
    }

    #[inline(always)]
    fn write_all<const W: usize>(
        &mut self,
        place: &Place,
        shape: Vector,
        (addresses, lanes, stride): Request<'_>,
        moved: &Moved<W>,
    ) -> Result<()> {
        let bytes = shape.bytes();
        let near = self.near::<W>(shape, addresses, lanes).writable();
        if let Some(page) = near.page_of_all(addresses, stride) {
            let write = |(address, moved): (&u64, &[u32; W])| {
                let first = global::word_in_page(*address);
                moved.iter().enumerate().all(|(k, value)| {
                    page[(first + k) % PAGE_WORDS].write(*value, &place.tags).is_ok()
                })
            };
            if addresses.iter().zip(moved).all(write) {
                return Ok(());
            }
        }
        for lane in each(lanes) {
            if let Some(words) = near.words::<W>(addresses[lane]) {
                let write = |(word, value): (&Word, &u32)| word.write(*value, &place.tags).is_ok();
                if words.iter().zip(&moved[lane]).all(write) {
                    continue;
                }
            }
            let mut value = [0; 4];
            value[..W].copy_from_slice(&moved[lane]);
            let done = self.write(place, shape.order, addresses[lane], bytes, value, lane);
            done.map_err(|fault| self.with_alike(fault, addresses, lanes, bytes))?;
        }
        Ok(())
    }

    /// Reads up to 16 aligned bytes.
    pub(crate) fn read(
        &mut self,
        place: &Place,
        order: Order,
        address: u64,
        bytes: u32,
        lane: usize,
    ) -> Result<[u32; 4]> {
        let (buffer, offset) = self.locate(address, bytes, lane, "reads")?;
        let words = match buffer.page(global::page_of(offset)) {
            Some(words) => words,
            None if buffer.contents == Contents::Nothing => {
                return self.wrong(Wrong::Unwritten, false, (buffer, offset), bytes, lane);
            }
            None => self.page(buffer, offset, lane)?,
        };
        let words = &words[global::word_in_page(offset)..];
        let mut value = [0; 4];
        if self.order.is_some() || order != Order::Weak || bytes < 4 {
            let part = global::mask((offset % 4) as usize, bytes.min(4) as usize);
            for (value, word) in value.iter_mut().zip(&words[..bytes.div_ceil(4) as usize]) {
                match word.get(part) {
                    Ok(found) => *value = found >> (8 * (offset % 4)),
                    Err(wrong) => return self.wrong(wrong, false, (buffer, offset), bytes, lane),
                }
            }
            self.ordered(place, order, ([true, false], "reads"), (address, bytes), buffer, lane)?;
            return Ok(value);
        }
        for (value, word) in value.iter_mut().zip(&words[..(bytes / 4) as usize]) {
            match word.read(&place.tags) {
                Ok(found) => *value = found,
                Err(wrong) => return self.wrong(wrong, false, (buffer, offset), bytes, lane),
            }
        }
        Ok(value)
    }

    /// Writes up to 16 aligned bytes.
    pub(crate) fn write(
        &mut self,
        place: &Place,
        order: Order,
        address: u64,
        bytes: u32,
        value: [u32; 4],
        lane: usize,
    ) -> Result<()> {
        let (buffer, offset) = self.locate(address, bytes, lane, "writes")?;
        writable((buffer, offset), bytes, lane, "writes")?;
        let words = &self.page(buffer, offset, lane)?[global::word_in_page(offset)..];
        if self.order.is_some() || order != Order::Weak || bytes < 4 {
            self.ordered(place, order, ([false, true], "writes"), (address, bytes), buffer, lane)?;
            let part = global::mask((offset % 4) as usize, bytes.min(4) as usize);
            for (value, word) in value.iter().zip(&words[..bytes.div_ceil(4) as usize]) {
                word.put(value << (8 * (offset % 4)), part);
            }
            return Ok(());
        }
        for (value, word) in value.iter().zip(&words[..(bytes / 4) as usize]) {
            if let Err(wrong) = word.write(*value, &place.tags) {
                return self.wrong(wrong, true, (buffer, offset), bytes, lane);
            }
        }
        Ok(())
    }

    /// Records the access if blocks run together, and reports it if it races with another warp's.
    /// It reads, writes or does both, as `does` and the verb describe.
    pub(crate) fn ordered(
        &mut self,
        place: &Place,
        order: Order,
        (does, verb): ([bool; 2], &str),
        (address, bytes): (u64, u32),
        buffer: &Buffer,
        lane: usize,
    ) -> Result<()> {
        let Some(all) = &mut self.order else { return Ok(()) };
        let access = Access::of(place.pc, order, does);
        match all.access(&mut self.account, place.unit, address, bytes, access) {
            Ok(()) => Ok(()),
            Err(Refused::Race(conflict)) => {
                self.unordered(place, verb, address, lane, buffer, conflict)
            }
            Err(Refused::Fault(fault)) => Err(fault),
        }
    }
}

impl<'a> Run<'a> {
    /// Refuses a load from constant memory at an address that is elsewhere.
    pub(crate) fn in_constant_memory(
        &mut self,
        addresses: &[u64; 32],
        lanes: u32,
        bytes: u32,
    ) -> Result<()> {
        for lane in each(lanes) {
            let (buffer, offset) = self.locate(addresses[lane], bytes, lane, "reads")?;
            if buffer.contents != Contents::Constant {
                let message = format!(
                    "reads {} from constant memory, at an address that is offset {offset} of {}",
                    Count(bytes, "byte"),
                    Named(buffer)
                );
                return fault(ReportKind::OutOfBounds, 1 << lane, message);
            }
        }
        Ok(())
    }

    /// Returns the buffer of the first lane's access if a short way into it is allowed: for whole
    /// words, in weak accesses of blocks that run independently.
    #[inline(always)]
    fn near<const W: usize>(&self, shape: Vector, addresses: &[u64; 32], lanes: u32) -> Near<'a> {
        let simple = shape.order == Order::Weak && self.order.is_none() && shape.bytes() >= 4;
        let address = addresses[lanes.trailing_zeros() as usize % 32];
        match global::find(self.slots, address).filter(|_| simple) {
            Some((buffer, offset)) => Near {
                start: address - offset,
                end: buffer.bytes.saturating_sub(4 * W as u64 - 1),
                buffer: Some(buffer),
            },
            None => Near { start: 0, end: 0, buffer: None },
        }
    }

    /// Returns the words of the page that holds an offset, and makes the page if it does not exist.
    #[inline(always)]
    pub(crate) fn page(&self, buffer: &'a Buffer, offset: u64, lane: usize) -> Result<&'a [Word]> {
        match buffer.page(global::page_of(offset)) {
            Some(words) => Ok(&words[..]),
            None => self.new_page(buffer, offset, lane),
        }
    }

    #[cold]
    fn new_page(&self, buffer: &'a Buffer, offset: u64, lane: usize) -> Result<&'a [Word]> {
        // The page stays when the launch is over, and its bytes count until then.
        let bytes = bytes_of::<Word>(global::PAGE_WORDS as u64);
        self.account.bounds.take(bytes, "a page of global memory")?;
        match self.memory.touch(buffer, global::page_of(offset)) {
            Some((words, made)) => {
                if !made {
                    self.account.bounds.give(bytes);
                }
                Ok(&words[..])
            }
            None => {
                self.account.bounds.give(bytes);
                let message = format!(
                    "touches a page of {} for which the emulated device has no memory left",
                    Named(buffer)
                );
                fault(ReportKind::OutOfMemory, 1 << lane, message)
            }
        }
    }

    /// Returns the buffer and the offset of an address. Lanes of one access nearly always share a
    /// buffer, so the last buffer is tried first.
    #[inline(always)]
    pub(crate) fn locate(
        &mut self,
        address: u64,
        bytes: u32,
        lane: usize,
        verb: &str,
    ) -> Result<(&'a Buffer, u64)> {
        if let Some((start, buffer)) = self.recent {
            let offset = address.wrapping_sub(start);
            // Buffers are shorter than 2^40 bytes, so this does not overflow.
            if offset < buffer.bytes && offset + u64::from(bytes) <= buffer.bytes {
                return Ok((buffer, offset));
            }
        }
        match global::find(self.slots, address) {
            Some((buffer, offset)) if u64::from(bytes) <= buffer.bytes - offset => {
                self.recent = Some((address - offset, buffer));
                Ok((buffer, offset))
            }
            _ => self.nowhere(address, bytes, lane, verb),
        }
    }
}

/// The buffer that the lanes of an access probably share.
struct Near<'a> {
    start: u64,
    /// The offset before which accesses must begin.
    end: u64,
    buffer: Option<&'a Buffer>,
}

impl<'a> Near<'a> {
    /// Drops a buffer that kernels may not write.
    #[inline(always)]
    fn writable(self) -> Near<'a> {
        let buffer = self.buffer.filter(|buffer| buffer.contents != Contents::Constant);
        Near { buffer, ..self }
    }

    /// Returns the page that all lanes of a full warp share, if there is one. Their addresses are
    /// aligned, and `stride` apart.
    #[inline(always)]
    fn page_of_all(
        &self,
        addresses: &[u64; 32],
        stride: Option<u64>,
    ) -> Option<&'a [Word; PAGE_WORDS]> {
        stride?;
        let [first, last] = [addresses[0], addresses[31]].map(|at| at.wrapping_sub(self.start));
        if last >= self.end || page_of(first) != page_of(last) {
            return None;
        }
        self.buffer?.page(page_of(first))
    }

    /// Returns the `W` words at an aligned address, if their page exists.
    #[inline(always)]
    fn words<const W: usize>(&self, address: u64) -> Option<&'a [Word]> {
        let offset = address.wrapping_sub(self.start);
        if offset >= self.end {
            return None;
        }
        let first = global::word_in_page(offset);
        self.buffer?.page(global::page_of(offset))?.get(first..first + W)
    }
}

impl Run<'_> {
    #[cold]
    fn nowhere<T>(&self, address: u64, bytes: u32, lane: usize, verb: &str) -> Result<T> {
        let what = global::describe(self.slots, address);
        let message = format!("{verb} {} at {what}", Count(bytes, "byte"));
        fault(ReportKind::OutOfBounds, 1 << lane, message)
    }

    #[cold]
    pub(crate) fn wrong<T>(
        &self,
        wrong: Wrong,
        writes: bool,
        (buffer, offset): (&Buffer, u64),
        bytes: u32,
        lane: usize,
    ) -> Result<T> {
        let verb = if writes { "writes" } else { "reads" };
        let what =
            format!("{verb} {} at offset {offset} of {}", Count(bytes, "byte"), Named(buffer));
        let Wrong::OtherBlock { block, wrote } = wrong else {
            let message = format!("{what}, which nothing has written");
            return fault(ReportKind::Uninitialized, 1 << lane, message);
        };
        let who = match block {
            Some(block) => format!("block {block} {}", if wrote { "writes" } else { "reads" }),
            None => format!("several other blocks {}", if wrote { "writes" } else { "read" }),
        };
        let message = format!("{what}, which {who} in the same launch: nothing orders the two");
        fault(ReportKind::Race, 1 << lane, message)
    }

    #[cold]
    pub(crate) fn unordered(
        &self,
        place: &Place,
        verb: &str,
        address: u64,
        lane: usize,
        buffer: &Buffer,
        conflict: Conflict,
    ) -> Result<()> {
        let warps = place.warps as usize;
        let (launch, unit) = self.others.warp(conflict.unit);
        let (block, warp) = (unit / warps, unit % warps);
        let block = block as u64 + place.first_block;
        let launch = match launch == self.others.number {
            true => String::new(),
            false => format!(" of launch {launch}"),
        };
        let kernel = self.launch.kernel;
        let message = format!(
            "{verb} offset {} of {}, which warp {warp} of block {block}{launch} {} at {}: nothing orders the two",
            global::offset_of(address),
            Named(buffer),
            if conflict.wrote { "writes" } else { "reads" },
            kernel.place_of(conflict.pc as usize),
        );
        fault(ReportKind::Race, 1 << lane, message)
    }

    /// Adds to a fault out of bounds the other lanes that make the same mistake.
    #[cold]
    pub(crate) fn with_alike(
        &mut self,
        mut fault: Box<Fault>,
        addresses: &[u64; 32],
        lanes: u32,
        bytes: u32,
    ) -> Box<Fault> {
        if fault.kind == ReportKind::OutOfBounds {
            for lane in each(lanes) {
                if self.locate(addresses[lane], bytes, lane, "").is_err() {
                    fault.lanes |= 1 << lane;
                }
            }
        }
        fault
    }
}

/// Refuses to write to constant memory.
#[inline(always)]
pub(crate) fn writable(
    (buffer, offset): (&Buffer, u64),
    bytes: u32,
    lane: usize,
    verb: &str,
) -> Result<()> {
    if buffer.contents != Contents::Constant {
        return Ok(());
    }
    let message = format!(
        "{verb} {} at offset {offset} of {}, which lies in constant memory",
        Count(bytes, "byte"),
        Named(buffer)
    );
    fault(ReportKind::ReadOnly, 1 << lane, message)
}
