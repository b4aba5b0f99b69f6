//! Instructions that the language does not have: prefetches, and stores that go past the caches.
//!
//! Other machines than x86-64 store ordinarily. `tests/suite/streaming.rs` tests the stores.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{__m256i, __m512i, _MM_HINT_T0, _mm_prefetch, _mm_sfence};

#[cfg(target_arch = "x86_64")]
use pulp::x86::{V3, V4};

/// A fence after streaming stores, which are not ordered with other stores. It is dropped after
/// them: then every later store of the thread comes after them for all threads.
pub struct Fence;

impl Drop for Fence {
    fn drop(&mut self) {
        // SAFETY: 1. Every processor of this kind has SSE.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            _mm_sfence()
        }
    }
}

/// Prefetches a cache line; the address may be invalid.
#[inline(always)]
#[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables))]
pub fn fetch(place: *const i8) {
    // SAFETY: 1. Every processor of this kind has SSE. 2. A prefetch is a hint: it never faults,
    // and the program sees no effect.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        _mm_prefetch::<_MM_HINT_T0>(place)
    }
}

#[cfg(target_arch = "x86_64")]
macro_rules! stored {
    ($(#[$doc:meta])* $name:ident, $simd:ident, $features:ident, $vector:ident, $stream:ident) => {
        $(#[$doc])*
        #[inline(always)]
        pub fn $name<T: crate::Element>(simd: $simd, vector: $vector, to: &mut [T], _fence: &Fence) {
            assert!(size_of_val(to) == size_of::<$vector>());
            let to = to.as_mut_ptr().cast::<$vector>();
            // SAFETY:
            // 1. `to` has as many bytes as the vector, and is aligned for the streaming store.
            // 2. Elements are floating-point numbers or pairs of them: any bytes are valid.
            // 3. Nobody else accesses `to` before the fence: this thread does not, and another
            //    thread can only after the borrow ends, before which the `Fence` is dropped.
            // 4. `simd` proves that the machine has the instruction.
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

#[cfg(target_arch = "x86_64")]
stored! {
    /// Stores 64 bytes, past the caches if they are a whole line.
    line, V4, avx512f, __m512i, _mm512_stream_si512
}
#[cfg(target_arch = "x86_64")]
stored! {
    /// Stores 32 bytes, past the caches if they are half a line.
    half_line, V3, avx, __m256i, _mm256_stream_si256
}
