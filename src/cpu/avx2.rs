//! [`Lanes`] of AVX2 with FMA: 8 × `f32` or 4 × `f64`.

use std::arch::x86_64::{__m256, __m256d, __m256i};

use num_complex::Complex;
use pulp::cast;
use pulp::x86::V3;

use super::complex::Interleave;
use super::lanes::Lanes;
use super::machine::{self, Fence};

macro_rules! avx2_lanes {
    ($real:ident, $lanes:literal, $vector:ident, $last_words:expr, $parts:ident, $pairs:ident,
     $set1:ident, $add:ident, $mul:ident, $fmadd:ident) => {
        impl Lanes<$real, $lanes> for V3 {
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
                machine::half_line(self, cast(vector), to, fence);
            }
            #[inline(always)]
            fn splat(self, value: $real) -> $vector {
                self.avx.$set1(value)
            }
            #[inline(always)]
            fn add(self, a: $vector, b: $vector) -> $vector {
                self.avx.$add(a, b)
            }
            #[inline(always)]
            fn mul(self, a: $vector, b: $vector) -> $vector {
                self.avx.$mul(a, b)
            }
            #[inline(always)]
            fn mul_add(self, a: $vector, b: $vector, c: $vector) -> $vector {
                self.fma.$fmadd(a, b, c)
            }
            #[inline(always)]
            fn conj(self, a: $vector) -> $vector {
                a
            }
            #[inline(always)]
            fn up<const BY: usize>(self, vector: $vector, fill: $vector) -> $vector {
                cast(words_up(self, BY * size_of::<$real>() / 4, cast(vector), cast(fill)))
            }
            #[inline(always)]
            fn down<const BY: usize>(self, vector: $vector, fill: $vector) -> $vector {
                cast(words_down(self, BY * size_of::<$real>() / 4, cast(vector), cast(fill)))
            }
            #[inline(always)]
            fn evens_and_odds(self, low: $vector, high: $vector) -> ($vector, $vector) {
                // First within halves of 128 bits; then the middle quarters are exchanged.
                let (evens, odds) = $parts(self, low, high);
                (
                    cast(self.avx2._mm256_permute4x64_pd::<0b11_01_10_00>(cast(evens))),
                    cast(self.avx2._mm256_permute4x64_pd::<0b11_01_10_00>(cast(odds))),
                )
            }
            #[inline(always)]
            fn first(self, vector: $vector) -> $vector {
                let words: [$real; $lanes] = cast(vector);
                self.splat(words[0])
            }
            #[inline(always)]
            fn last(self, vector: $vector) -> $vector {
                cast(self.avx2._mm256_permutevar8x32_ps(cast(vector), cast($last_words)))
            }
        }

        impl Interleave<$real, $lanes> for V3 {
            #[inline(always)]
            fn load_two(self, from: &[Complex<$real>; $lanes]) -> [$vector; 2] {
                cast(*from)
            }
            #[inline(always)]
            fn in_turn(self, even: $vector, odd: $vector) -> [$vector; 2] {
                let (low, high) = $pairs(self, even, odd);
                [
                    cast(self.avx2._mm256_permute2x128_si256::<0x20>(cast(low), cast(high))),
                    cast(self.avx2._mm256_permute2x128_si256::<0x31>(cast(low), cast(high))),
                ]
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
                machine::half_line(self, cast(low), to_low, fence);
                machine::half_line(self, cast(high), to_high, fence);
            }
        }
    };
}

avx2_lanes! {
    f32, 8, __m256, [7u32; 8], parts_ps, pairs_ps,
    _mm256_set1_ps, _mm256_add_ps, _mm256_mul_ps, _mm256_fmadd_ps
}
avx2_lanes! {
    f64, 4, __m256d, [6u32, 7, 6, 7, 6, 7, 6, 7], pairs_pd, pairs_pd,
    _mm256_set1_pd, _mm256_add_pd, _mm256_mul_pd, _mm256_fmadd_pd
}

/// Returns the even and the odd numbers of each half of a pair of vectors.
#[inline(always)]
fn parts_ps(simd: V3, low: __m256, high: __m256) -> (__m256, __m256) {
    (
        simd.avx._mm256_shuffle_ps::<0b10_00_10_00>(low, high),
        simd.avx._mm256_shuffle_ps::<0b11_01_11_01>(low, high),
    )
}

/// Interleaves the numbers of two vectors, the lower and the upper ones of each half.
#[inline(always)]
fn pairs_ps(simd: V3, a: __m256, b: __m256) -> (__m256, __m256) {
    (simd.avx._mm256_unpacklo_ps(a, b), simd.avx._mm256_unpackhi_ps(a, b))
}

/// Interleaves the `f64` of two vectors, the lower and the upper one of each half. A half has two
/// numbers, so these are also the even and the odd ones.
#[inline(always)]
fn pairs_pd(simd: V3, a: __m256d, b: __m256d) -> (__m256d, __m256d) {
    (simd.avx._mm256_unpacklo_pd(a, b), simd.avx._mm256_unpackhi_pd(a, b))
}

/// Moves eight 32-bit words up by 1, 2 or 4. AVX2 shifts only within halves of 128 bits, so each
/// half first gets the words below it in a second vector.
#[inline(always)]
fn words_up(simd: V3, by: usize, vector: __m256i, fill: __m256i) -> __m256i {
    let below = simd.avx2._mm256_permute2x128_si256::<0x02>(vector, fill);
    match by {
        1 => simd.avx2._mm256_alignr_epi8::<12>(vector, below),
        2 => simd.avx2._mm256_alignr_epi8::<8>(vector, below),
        _ => below,
    }
}

/// Moves eight 32-bit words down by 1, 2 or 4.
#[inline(always)]
fn words_down(simd: V3, by: usize, vector: __m256i, fill: __m256i) -> __m256i {
    let above = simd.avx2._mm256_permute2x128_si256::<0x21>(vector, fill);
    match by {
        1 => simd.avx2._mm256_alignr_epi8::<4>(above, vector),
        2 => simd.avx2._mm256_alignr_epi8::<8>(above, vector),
        _ => above,
    }
}
