//! Results that go past the caches.
//!
//! An ordinary store first reads the cache line that it is about to overwrite: a forward pass moves 16 bytes for 12, a
//! backward pass 28 for 20. A streaming (non-temporal) store of a whole line does not, and leaves nothing in the caches. So
//! results stream that would not stay there: if all arrays of a pass together are larger than the [last cache](Cache).
//!
//! Streaming stores want whole lines, and rows begin anywhere. So a scan writes some results at a time to a stage in the
//! nearest cache, from which a [`Stream`] moves what fills lines; and what the scan is about to read is [fetched](fetch)
//! beside it.
//!
//! On x86-64 only. Elsewhere no pass streams.

use std::ops::Range;
use std::sync::OnceLock;
use std::thread::available_parallelism;

use crate::{Direction, Element};

/// The bytes of a cache line.
const LINE: usize = 64;

/// As many bytes of each array are scanned, and then leave, at a time: reading and writing overlap.
const STEP_BYTES: usize = 512;

/// Inputs are fetched this many bytes before they are scanned: about what arrives in the time that memory takes to answer.
/// The processor's own prefetchers end with the page of 4 KiB, this does not.
const AHEAD_BYTES: usize = 4096;

/// The elements that are scanned at a time where results stream: a multiple of every vector's.
pub const fn step<T>() -> usize {
    STEP_BYTES / size_of::<T>()
}

/// The last cache on the way to memory.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Cache {
    bytes: usize,
    /// The processors that share it.
    sharers: usize,
}

impl Cache {
    /// No processor has much more of a last cache for each core. A virtual machine of few cores mostly shows the cache of
    /// the whole socket, of which it has a part.
    const MAX_BYTES_PER_SHARER: usize = 16 << 20;

    /// Where the processor does not say.
    const UNKNOWN: Cache = Cache { bytes: 32 << 20, sharers: 1 };

    /// What `bytes` that are shared by at most `ids` processors are worth, on a machine that has so many `processors`.
    fn new(bytes: usize, ids: usize, processors: usize) -> Self {
        let sharers = ids.min(processors).max(1);
        Cache { bytes: bytes.min(sharers * Cache::MAX_BYTES_PER_SHARER), sharers }
    }

    /// This machine's, asked once.
    fn last() -> Self {
        static LAST: OnceLock<Cache> = OnceLock::new();
        *LAST.get_or_init(|| {
            let processors = available_parallelism().map_or(1, usize::from);
            reported().map_or(Cache::UNKNOWN, |(bytes, ids)| Cache::new(bytes, ids, processors))
        })
    }

    /// What so many threads have of such caches together.
    fn of_threads(self, threads: usize) -> usize {
        self.bytes * threads.div_ceil(self.sharers)
    }
}

/// The bytes of the arrays of a pass from which on `threads` threads had better let results stream.
pub fn beyond_caches(threads: usize) -> usize {
    if cfg!(target_arch = "x86_64") { Cache::last().of_threads(threads) } else { usize::MAX }
}

/// The bytes of the last cache, and the greatest number of processors that may share it, as the processor says.
#[cfg(target_arch = "x86_64")]
fn reported() -> Option<(usize, usize)> {
    use std::arch::x86_64::{__cpuid, __cpuid_count};

    // The same format in Intel's leaf and in AMD's. What a processor lacks it reports as zeros.
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

/// Asks for the elements of `rows` that a walk will come to a while after `columns`, which may lie in the rows beside them.
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

/// How many elements lie before the first whole cache line; all of them if no line begins with an element.
#[inline(always)]
pub fn before_first_line<T>(elements: &[T]) -> usize {
    elements.as_ptr().align_offset(LINE).min(elements.len())
}

/// Streaming stores wait for no others. This is dropped after them, and what the thread does then comes after them for all
/// threads.
pub struct Fence;

impl Drop for Fence {
    fn drop(&mut self) {
        machine::fence();
    }
}

/// Copies results past the caches.
pub fn copy<T: Element>(from: &[T], to: &mut [T]) {
    machine::copy(from, to, &Fence);
}

/// Results on their way to memory, in the order of a walk; all have arrived when it is dropped.
pub struct Stream<'a, T: Element> {
    to: &'a mut [T],
    walk: Direction,
    /// How many of `to` the walk has met.
    walked: usize,
    /// The last so many of them have not left. They lie together in the stage, at the end where the walk begins.
    waiting: usize,
    stage: Vec<T>,
    fence: Fence,
}

impl<'a, T: Element> Stream<'a, T> {
    pub fn new(to: &'a mut [T], walk: Direction) -> Self {
        // What waits for a step, the next step, and what does not fill a line.
        let stage = vec![T::zero(); 2 * step::<T>() + LINE / size_of::<T>()];
        Stream { to, walk, walked: 0, waiting: 0, stage, fence: Fence }
    }

    /// Where the next `count` results are to be written, at most a [`step`].
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

    /// Lets leave what fills lines, if it is a step or more.
    #[inline(always)]
    pub fn send(&mut self) {
        if self.waiting >= step::<T>() {
            let end = match self.walk {
                Direction::Forward => self.walked,
                Direction::Reverse => self.to.len() - self.walked,
            };
            // Since the line began, or until it ends.
            let behind = (self.to.as_ptr().wrapping_add(end) as usize % LINE) / size_of::<T>();
            let missing = match self.walk {
                Direction::Forward => behind,
                Direction::Reverse => (LINE / size_of::<T>() - behind) % (LINE / size_of::<T>()),
            };
            self.send_but(missing.min(self.waiting));
        }
    }

    /// Lets leave all but the last `rest` results of the walk, less than a line.
    #[inline(always)]
    fn send_but(&mut self, rest: usize) {
        let (count, len) = (self.waiting - rest, self.stage.len());
        // As many numbers as a line can have, of which the first ones count.
        let line = LINE / size_of::<T>();
        let mut kept = [T::zero(); LINE / size_of::<f32>()];
        match self.walk {
            Direction::Forward => {
                let start = self.walked - self.waiting;
                machine::copy(&self.stage[..count], &mut self.to[start..][..count], &self.fence);
                kept[..line].copy_from_slice(&self.stage[count..][..line]);
                self.stage[..line].copy_from_slice(&kept[..line]);
            }
            Direction::Reverse => {
                let start = self.to.len() - self.walked + rest;
                let from = &self.stage[len - count..];
                machine::copy(from, &mut self.to[start..][..count], &self.fence);
                kept[..line].copy_from_slice(&self.stage[..len - count][len - count - line..]);
                self.stage[len - line..].copy_from_slice(&kept[..line]);
            }
        }
        self.waiting = rest;
    }

    /// Lets all results leave, and begins the walk anew.
    pub fn restart(&mut self) {
        self.send_but(0);
        self.walked = 0;
    }
}

impl<T: Element> Drop for Stream<'_, T> {
    fn drop(&mut self) {
        self.send_but(0);
    }
}

#[cfg(target_arch = "x86_64")]
pub use machine::{half_line, line};

/// What the language has no words for. Fences: see [`Fence`], of which each that stores has one.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod machine {
    use std::arch::x86_64::{
        __m128i, __m256i, __m512i, _MM_HINT_T0, _mm_loadu_si128, _mm_prefetch, _mm_sfence,
        _mm_stream_si128,
    };

    use pulp::x86::{V3, V4};

    use super::{Fence, LINE, before_first_line};
    use crate::Element;

    /// Asks for a cache line, wherever it is.
    #[inline(always)]
    pub fn fetch(place: *const i8) {
        // SAFETY: 1. Every processor of this kind has SSE. 2. A hint reads nothing that the program sees and faults nowhere.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(place) }
    }

    pub fn fence() {
        // SAFETY: 1. Every processor of this kind has SSE.
        unsafe { _mm_sfence() }
    }

    /// Copies all elements, those of whole lines past the caches.
    ///
    /// A line leaves in four stores, which every processor of this kind has. Beside a scan that was as fast as one store
    /// where there is AVX-512.
    #[inline(always)]
    pub fn copy<T: Element>(from: &[T], to: &mut [T], _fence: &Fence) {
        const PART: usize = size_of::<__m128i>();
        let (head, from) = from.split_at(before_first_line(to));
        let (head_to, to) = to.split_at_mut(head.len());
        let (from, tail) = from.split_at(size_of_val(from) / LINE * LINE / size_of::<T>());
        let (to, tail_to) = to.split_at_mut(from.len());
        if head.len() + tail.len() > 0 {
            copy_ends([head, tail], [head_to, tail_to]);
        }
        let lines = size_of_val(from) / LINE;
        let (from, to) = (from.as_ptr().cast::<__m128i>(), to.as_mut_ptr().cast::<__m128i>());
        for line in 0..lines {
            for part in 0..LINE / PART {
                let part = line * (LINE / PART) + part;
                // SAFETY:
                // 1. Both slices have so many lines: a line is a whole number of elements of each type.
                // 2. `to` is where a line begins, if there is one, and so are all its parts aligned.
                // 3. Elements are floating-point numbers or pairs of them: bytes without gaps, and any bytes are one.
                // 4. Nobody else accesses `to` while it is borrowed, and that is longer than until the fence.
                // 5. Every processor of this kind has SSE2.
                unsafe { _mm_stream_si128(to.add(part), _mm_loadu_si128(from.add(part))) }
            }
        }
    }

    /// Out of the way of the lines.
    #[cold]
    #[inline(never)]
    fn copy_ends<T: Element>(from: [&[T]; 2], to: [&mut [T]; 2]) {
        from.into_iter().zip(to).for_each(|(from, to)| to.copy_from_slice(from));
    }

    macro_rules! stored_whole {
        ($(#[$doc:meta])* $name:ident, $simd:ident, $features:ident, $vector:ident, $stream:ident) => {
            $(#[$doc])*
            #[inline(always)]
            pub fn $name<T: Element>(simd: $simd, vector: $vector, to: &mut [T], _fence: &Fence) {
                assert!(size_of_val(to) == size_of::<$vector>());
                let to = to.as_mut_ptr().cast::<$vector>();
                // SAFETY: 1. `to` has as many bytes. 2. It is aligned where it has to be. 3. and 4. as above.
                // 5. `simd` proves that the machine has the instruction.
                unsafe {
                    if to.is_aligned() {
                        simd.$features.$stream(to, vector);
                    } else {
                        to.write_unaligned(vector);
                    }
                }
            }
        };
    }

    stored_whole! {
        /// Stores 64 bytes, past the caches where they are a whole line.
        line, V4, avx512f, __m512i, _mm512_stream_si512
    }
    stored_whole! {
        /// Stores 32 bytes, past the caches where they are half a line.
        half_line, V3, avx, __m256i, _mm256_stream_si256
    }
}

/// Machines on which nothing streams unless it is asked for, and then by ordinary stores.
#[cfg(not(target_arch = "x86_64"))]
mod machine {
    use super::Fence;
    use crate::Element;

    pub fn fetch(_place: *const i8) {}

    pub fn fence() {}

    pub fn copy<T: Element>(from: &[T], to: &mut [T], _fence: &Fence) {
        to.copy_from_slice(from);
    }
}

#[cfg(test)]
mod tests {
    use super::{Cache, Fence, LINE, machine};

    #[test]
    fn a_virtual_machine_has_a_part_of_the_cache_it_shows() {
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
            machine::copy(&from[..len], &mut to[start..start + len], &Fence);
            assert_eq!(to[start..start + len], from[..len]);
            to[start..start + len].fill(f32::NAN);
            assert!(to.iter().all(|value| value.is_nan()));
        }
    }
}
