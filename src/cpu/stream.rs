//! Results that go past the caches.
//!
//! An ordinary store first reads the cache line that it is about to overwrite: a forward pass moves
//! 16 bytes for 12, a backward pass 28 for 20. A streaming (non-temporal) store of a whole line
//! does not read it, and leaves nothing in the caches. So results stream if they would not stay in
//! the caches: if all arrays of a pass together are larger than the [last cache](Cache).
//!
//! Streaming stores need whole lines, and rows begin anywhere. So a scan writes some results at a
//! time to a stage in the nearest cache, from which a [`ResultStream`] moves whole lines. Meanwhile
//! the next inputs are [fetched](fetch).
//!
//! Only x86-64 streams. The rules are tested here, the stores in `tests/suite/streaming.rs`.

use std::ops::Range;
use std::sync::OnceLock;
use std::thread::available_parallelism;

use super::lanes::{LaneJob, Lanes};
use super::machine::{self, Fence};
use crate::{Direction, Element};

/// The bytes of a cache line.
const LINE: usize = 64;

/// The bytes of results that are scanned, and then leave, at a time: few enough for reading and
/// writing to overlap.
const STEP_BYTES: usize = 512;

/// Inputs are fetched this many bytes before they are scanned: about what arrives during one
/// latency of memory. The processor's own prefetchers stop at the end of a page of 4 KiB, and this
/// does not.
const AHEAD_BYTES: usize = 4096;

/// The most elements of a line or a vector.
const MAX_UNIT: usize = 16;

/// Returns the number of columns that are scanned at a time if `results` arrays of results (one or
/// two) stream: a multiple of the width of every vector.
pub const fn step<T>(results: usize) -> usize {
    STEP_BYTES / size_of::<T>() / results
}

/// The last cache on the way to memory.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Cache {
    bytes: usize,
    /// The processors that share it.
    sharers: usize,
}

impl Cache {
    /// Few processors have a larger last cache per core. A virtual machine with few cores mostly
    /// shows the cache of the whole socket, of which it has a part.
    const MAX_BYTES_PER_SHARER: usize = 16 << 20;

    /// The cache of a processor that does not report it.
    const UNKNOWN: Cache = Cache { bytes: 32 << 20, sharers: 1 };

    /// A cache of `bytes` bytes that at most `ids` processors share, on a machine with `processors`
    /// processors.
    fn new(bytes: usize, ids: usize, processors: usize) -> Self {
        let sharers = ids.min(processors).max(1);
        Cache { bytes: bytes.min(sharers * Cache::MAX_BYTES_PER_SHARER), sharers }
    }

    /// Returns this machine's last cache, which is read once.
    fn last() -> Self {
        static LAST: OnceLock<Cache> = OnceLock::new();
        *LAST.get_or_init(|| {
            let processors = available_parallelism().map_or(1, usize::from);
            reported().map_or(Cache::UNKNOWN, |(bytes, ids)| Cache::new(bytes, ids, processors))
        })
    }

    /// Returns the bytes of all such caches that `threads` threads have together.
    fn of_threads(self, threads: usize) -> usize {
        self.bytes * threads.div_ceil(self.sharers)
    }
}

/// Returns the bytes of the arrays of a pass beyond which results of `threads` threads should
/// stream.
pub fn beyond_caches(threads: usize) -> usize {
    if cfg!(target_arch = "x86_64") { Cache::last().of_threads(threads) } else { usize::MAX }
}

/// Returns the bytes of the last cache and the largest number of processors that may share it, if
/// the processor reports them.
#[cfg(target_arch = "x86_64")]
fn reported() -> Option<(usize, usize)> {
    use std::arch::x86_64::{__cpuid, __cpuid_count};

    // Intel's leaf and AMD's leaf have the same format. A processor reports zeros for what it
    // lacks.
    let leaves = [(0, 4), (0x8000_0000, 0x8000_001D)];
    let there = leaves.into_iter().filter(|&(base, leaf)| __cpuid(base).eax >= leaf);
    let caches = there.flat_map(|(_, leaf)| (0..8).map(move |index| __cpuid_count(leaf, index)));
    let data_or_unified = caches.filter(|cache| matches!(cache.eax & 0x1F, 1 | 3));
    let last = data_or_unified.max_by_key(|cache| cache.eax >> 5 & 7)?;
    let ways = (last.ebx >> 22) as usize + 1;
    let partitions = (last.ebx >> 12 & 0x3FF) as usize + 1;
    let line = (last.ebx & 0xFFF) as usize + 1;
    let sets = last.ecx as usize + 1;
    Some((ways * partitions * line * sets, (last.eax >> 14 & 0xFFF) as usize + 1))
}

#[cfg(not(target_arch = "x86_64"))]
fn reported() -> Option<(usize, usize)> {
    None
}

/// Prefetches the elements of `rows` that a walk will reach a while after `columns`, which may be
/// in neighbouring rows.
#[inline(always)]
pub fn fetch<T, const ARRAYS: usize, const REVERSE: bool>(
    rows: [&[T]; ARRAYS],
    columns: &Range<usize>,
) {
    for offset in (0..columns.len() * size_of::<T>()).step_by(LINE) {
        for row in rows {
            let here = row.as_ptr().wrapping_add(columns.start).cast::<i8>().wrapping_add(offset);
            machine::fetch(if REVERSE {
                here.wrapping_sub(AHEAD_BYTES)
            } else {
                here.wrapping_add(AHEAD_BYTES)
            });
        }
    }
}

/// Returns the number of elements before the first whole cache line; all of them if no line begins
/// with an element.
#[inline(always)]
pub fn before_first_line<T>(elements: &[T]) -> usize {
    elements.as_ptr().align_offset(LINE).min(elements.len())
}

/// Copies results; whole lines go past the caches.
#[inline(always)]
pub fn copy<T: Element, const W: usize, L: Lanes<T, W>>(
    lanes: L,
    from: &[T],
    to: &mut [T],
    fence: &Fence,
) {
    let (head, from) = from.split_at(before_first_line(to));
    let (head_to, to) = to.split_at_mut(head.len());
    let (from, tail) = from.split_at(size_of_val(from) / LINE * LINE / size_of::<T>());
    let (to, tail_to) = to.split_at_mut(from.len());
    for (from, to) in from.as_chunks::<W>().0.iter().zip(to.as_chunks_mut::<W>().0) {
        lanes.stream(lanes.load(from), to, fence);
    }
    // A line is a whole number of vectors, or a vector of complex numbers a whole number of lines.
    let rest = from.len() / W * W;
    let ends = [(head, head_to), (&from[rest..], &mut to[rest..]), (tail, tail_to)];
    if ends.iter().any(|(from, _)| !from.is_empty()) {
        copy_ends(ends);
    }
}

/// [`copy`] as a job; all results have arrived when it ends.
pub struct Copy<'a, T> {
    pub from: &'a [T],
    pub to: &'a mut [T],
}

impl<T: Element> LaneJob<T> for Copy<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const W: usize, L: Lanes<T, W>>(self, lanes: L) {
        copy::<T, W, L>(lanes, self.from, self.to, &Fence);
    }
}

/// Not inlined, so that the code for lines stays small.
#[cold]
#[inline(never)]
fn copy_ends<T: Element>(ends: [(&[T], &mut [T]); 3]) {
    ends.into_iter().for_each(|(from, to)| to.copy_from_slice(from));
}

/// Results on their way to memory, in the order of a walk. All have arrived when this is dropped.
pub struct ResultStream<'a, T: Element> {
    to: &'a mut [T],
    walk: Direction,
    /// The number of elements of `to` that the walk has met.
    walked: usize,
    /// The number of results that have not left. They are together in the stage, at the end where
    /// the walk begins.
    waiting: usize,
    stage: Vec<T>,
    fence: Fence,
}

impl<'a, T: Element> ResultStream<'a, T> {
    pub fn new(to: &'a mut [T], walk: Direction) -> Self {
        // The results of one step that wait, the next step, and a part of a line.
        let stage = vec![T::zero(); 2 * step::<T>(1) + MAX_UNIT];
        ResultStream { to, walk, walked: 0, waiting: 0, stage, fence: Fence }
    }

    /// Returns the place for the next `count` results, at most a [`step`].
    #[inline(always)]
    pub fn slot(&mut self, count: usize) -> &mut [T] {
        let before = self.waiting;
        self.waiting += count;
        self.walked += count;
        match self.walk {
            Direction::Forward => &mut self.stage[before..][..count],
            Direction::Reverse => {
                let start = self.stage.len() - self.waiting;
                &mut self.stage[start..][..count]
            }
        }
    }

    /// Moves whole lines to memory, if there are enough results.
    #[inline(always)]
    pub fn send<const W: usize, L: Lanes<T, W>>(&mut self, lanes: L) {
        if self.waiting < step::<T>(2) {
            return;
        }
        let (start, end) = self.waiting_to();
        // The elements of the line, or of the lines of a vector, that the walk has begun.
        let unit = W.max(LINE / size_of::<T>());
        let address = |at| self.to.as_ptr().wrapping_add(at) as usize / size_of::<T>();
        let rest = match self.walk {
            Direction::Forward => address(end) % unit,
            Direction::Reverse => (unit - address(start) % unit) % unit,
        };
        let (count, len) = (self.waiting - rest.min(self.waiting), self.stage.len());
        let mut kept = [T::zero(); MAX_UNIT];
        match self.walk {
            Direction::Forward => {
                let to = &mut self.to[start..][..count];
                copy::<T, W, L>(lanes, &self.stage[..count], to, &self.fence);
                kept[..unit].copy_from_slice(&self.stage[count..][..unit]);
                self.stage[..unit].copy_from_slice(&kept[..unit]);
            }
            Direction::Reverse => {
                let to = &mut self.to[end - count..end];
                copy::<T, W, L>(lanes, &self.stage[len - count..], to, &self.fence);
                kept[..unit].copy_from_slice(&self.stage[len - count - unit..][..unit]);
                self.stage[len - unit..].copy_from_slice(&kept[..unit]);
            }
        }
        self.waiting -= count;
    }

    /// Returns the range of `to` for the results that have not left.
    #[inline(always)]
    fn waiting_to(&self) -> (usize, usize) {
        match self.walk {
            Direction::Forward => (self.walked - self.waiting, self.walked),
            Direction::Reverse => {
                let start = self.to.len() - self.walked;
                (start, start + self.waiting)
            }
        }
    }

    /// Moves all results to memory, and begins the walk again.
    pub fn restart(&mut self) {
        let (start, end) = self.waiting_to();
        let from = match self.walk {
            Direction::Forward => &self.stage[..self.waiting],
            Direction::Reverse => &self.stage[self.stage.len() - self.waiting..],
        };
        self.to[start..end].copy_from_slice(from);
        (self.walked, self.waiting) = (0, 0);
        // The same elements may be stored again; dropping the old fence orders the stores.
        self.fence = Fence;
    }
}

impl<T: Element> Drop for ResultStream<'_, T> {
    fn drop(&mut self) {
        self.restart();
    }
}

#[cfg(test)]
mod tests {
    use super::{Cache, Fence, LINE, copy};
    use crate::cpu::portable::Portable;

    #[test]
    fn a_virtual_machine_has_a_part_of_the_reported_cache() {
        let (mib, shown) = (1 << 20, Cache::new(260 << 20, 128, 2));
        assert_eq!(shown, Cache { bytes: 32 * mib, sharers: 2 });
        assert_eq!(Cache::new(32 * mib, 16, 64), Cache { bytes: 32 * mib, sharers: 16 });
        let many = Cache::new(32 * mib, 16, 64);
        assert_eq!([1, 16, 17, 64].map(|n| many.of_threads(n) / mib), [32, 32, 64, 128]);
        assert!(Cache::last().bytes > 0);
    }

    #[test]
    fn a_copy_writes_every_element_and_no_other() {
        let from: Vec<f32> = (0..100).map(|i| i as f32).collect();
        for (start, len) in (0..20).flat_map(|start| (0..70).map(move |len| (start, len))) {
            let mut to = vec![f32::NAN; 100 + LINE];
            copy::<f32, 4, _>(Portable, &from[..len], &mut to[start..start + len], &Fence);
            assert_eq!(to[start..start + len], from[..len]);
            to[start..start + len].fill(f32::NAN);
            assert!(to.iter().all(|value| value.is_nan()));
        }
    }
}
