//! [`Lanes`] of AVX2 with FMA: 8 × `f32` or 4 × `f64`.

use std::arch::x86_64::{__m256, __m256d, __m256i};

use pulp::cast;
use pulp::x86::V3;

use super::lanes::Lanes;

macro_rules! avx2_lanes {
    ($real:ident, $lanes:literal, $vector:ident, $last_words:expr,
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
            fn first(self, vector: $vector) -> $vector {
                let words: [$real; $lanes] = cast(vector);
                self.splat(words[0])
            }
            #[inline(always)]
            fn last(self, vector: $vector) -> $vector {
                cast(self.avx2._mm256_permutevar8x32_ps(cast(vector), cast($last_words)))
            }
        }
    };
}

avx2_lanes! {
    f32, 8, __m256, [7u32; 8],
    _mm256_set1_ps, _mm256_add_ps, _mm256_mul_ps, _mm256_fmadd_ps
}
avx2_lanes! {
    f64, 4, __m256d, [6u32, 7, 6, 7, 6, 7, 6, 7],
    _mm256_set1_pd, _mm256_add_pd, _mm256_mul_pd, _mm256_fmadd_pd
}

/// Moves eight 32-bit words up by 1, 2 or 4. AVX2 shifts within 128-bit halves only, so what each
/// half needs from below is put beside it first.
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
