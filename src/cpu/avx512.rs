//! [`Lanes`] of AVX-512: 16 × `f32` or 8 × `f64`.

use std::arch::x86_64::{__m512, __m512d, __m512i};
use std::array::from_fn;
use std::hint::black_box;

use num_complex::Complex;
use pulp::cast;
use pulp::x86::V4;

use super::complex::Interleave;
use super::lanes::Lanes;
use super::machine::{self, Fence};

/// Vectors of AVX-512.
#[derive(Debug, Clone, Copy)]
pub struct Avx512 {
    simd: V4,
    /// All bits are set, which the compiler does not know. It would replace shuffles and masks that
    /// it knows by others (`vexpandps`, two shuffles for one) that take twice the time.
    ones: u16,
}

impl Avx512 {
    /// Makes the lanes of a machine that has the instructions.
    pub fn new(simd: V4) -> Self {
        Avx512 { simd, ones: black_box(u16::MAX) }
    }

    /// Moves sixteen 32-bit words up by 1, 2, 4 or 8. A rotation; the mask keeps the words that
    /// have a word before them. Masks of 64-bit words fit the moves that the compiler makes of
    /// these rotations; a finer mask would take one more instruction.
    #[inline(always)]
    fn words_up(self, by: usize, vector: __m512i, fill: __m512i) -> __m512i {
        let (f, pairs) = (self.simd.avx512f, (self.ones << (by / 2)) as u8);
        match by {
            1 => f._mm512_mask_alignr_epi32::<15>(fill, self.ones << 1, vector, vector),
            2 => f._mm512_mask_alignr_epi64::<7>(fill, pairs, vector, vector),
            4 => f._mm512_mask_alignr_epi64::<6>(fill, pairs, vector, vector),
            _ => f._mm512_mask_alignr_epi64::<4>(fill, pairs, vector, vector),
        }
    }

    /// Moves sixteen 32-bit words down by 1, 2, 4 or 8.
    #[inline(always)]
    fn words_down(self, by: usize, vector: __m512i, fill: __m512i) -> __m512i {
        let (f, pairs) = (self.simd.avx512f, (self.ones as u8) >> (by / 2));
        match by {
            1 => f._mm512_mask_alignr_epi32::<1>(fill, self.ones >> 1, vector, vector),
            2 => f._mm512_mask_alignr_epi64::<1>(fill, pairs, vector, vector),
            4 => f._mm512_mask_alignr_epi64::<2>(fill, pairs, vector, vector),
            _ => f._mm512_mask_alignr_epi64::<4>(fill, pairs, vector, vector),
        }
    }
}

macro_rules! avx512_lanes {
    ($real:ident, $lanes:literal, $vector:ident, $index:ident, $permute:ident, $permute2:ident,
     $set1:ident, $add:ident, $mul:ident, $fmadd:ident) => {
        impl Lanes<$real, $lanes> for Avx512 {
            type Vector = $vector;

            #[inline(always)]
            fn load(self, from: &[$real; $lanes]) -> $vector {
                cast(*from)
            }
            #[inline(always)]
            fn store(self, vector: $vector, to: &mut [$real; $lanes]) {
                *to = cast(vector);
            }
            #[inline(always)]
            fn stream(self, vector: $vector, to: &mut [$real; $lanes], fence: &Fence) {
                machine::line(self.simd, cast(vector), to, fence);
            }
            #[inline(always)]
            fn splat(self, value: $real) -> $vector {
                self.simd.avx512f.$set1(value)
            }
            #[inline(always)]
            fn add(self, a: $vector, b: $vector) -> $vector {
                self.simd.avx512f.$add(a, b)
            }
            #[inline(always)]
            fn mul(self, a: $vector, b: $vector) -> $vector {
                self.simd.avx512f.$mul(a, b)
            }
            #[inline(always)]
            fn mul_add(self, a: $vector, b: $vector, c: $vector) -> $vector {
                self.simd.avx512f.$fmadd(a, b, c)
            }
            #[inline(always)]
            fn conj(self, a: $vector) -> $vector {
                a
            }
            #[inline(always)]
            fn up<const BY: usize>(self, vector: $vector, fill: $vector) -> $vector {
                cast(self.words_up(BY * size_of::<$real>() / 4, cast(vector), cast(fill)))
            }
            #[inline(always)]
            fn down<const BY: usize>(self, vector: $vector, fill: $vector) -> $vector {
                cast(self.words_down(BY * size_of::<$real>() / 4, cast(vector), cast(fill)))
            }
            #[inline(always)]
            fn evens_and_odds(self, low: $vector, high: $vector) -> ($vector, $vector) {
                let every_second = |first: $index| {
                    let index: [$index; $lanes] = from_fn(|i| 2 * i as $index + first);
                    self.simd.avx512f.$permute2(low, cast(index), high)
                };
                (every_second(0), every_second(1))
            }
            #[inline(always)]
            fn first(self, vector: $vector) -> $vector {
                self.simd.avx512f.$permute(cast([0 as $index; $lanes]), vector)
            }
            #[inline(always)]
            fn last(self, vector: $vector) -> $vector {
                let lane = $index::from(self.ones) % $lanes;
                self.simd.avx512f.$permute(cast([lane; $lanes]), vector)
            }
        }

        impl Interleave<$real, $lanes> for Avx512 {
            #[inline(always)]
            fn load_two(self, from: &[Complex<$real>; $lanes]) -> [$vector; 2] {
                cast(*from)
            }
            #[inline(always)]
            fn in_turn(self, even: $vector, odd: $vector) -> [$vector; 2] {
                let half = |first: $index| {
                    let index: [$index; $lanes] =
                        from_fn(|i| first + i as $index / 2 + i as $index % 2 * $lanes);
                    self.simd.avx512f.$permute2(even, cast(index), odd)
                };
                [half(0), half($lanes / 2)]
            }
            #[inline(always)]
            fn store_two(self, vectors: [$vector; 2], to: &mut [Complex<$real>; $lanes]) {
                *to = cast(vectors);
            }
            #[inline(always)]
            fn stream_two(
                self,
                [low, high]: [$vector; 2],
                to: &mut [Complex<$real>; $lanes],
                fence: &Fence,
            ) {
                let (to_low, to_high) = to.split_at_mut($lanes / 2);
                machine::line(self.simd, cast(low), to_low, fence);
                machine::line(self.simd, cast(high), to_high, fence);
            }
        }
    };
}

avx512_lanes! {
    f32, 16, __m512, u32, _mm512_permutexvar_ps, _mm512_permutex2var_ps,
    _mm512_set1_ps, _mm512_add_ps, _mm512_mul_ps, _mm512_fmadd_ps
}
avx512_lanes! {
    f64, 8, __m512d, u64, _mm512_permutexvar_pd, _mm512_permutex2var_pd,
    _mm512_set1_pd, _mm512_add_pd, _mm512_mul_pd, _mm512_fmadd_pd
}
