//! [`Lanes`] of AVX-512: 16 × `f32` or 8 × `f64`.

use std::arch::x86_64::{__m512, __m512d};
use std::hint::black_box;

use pulp::cast;
use pulp::x86::V4;

use super::lanes::Lanes;

/// Vectors of AVX-512.
#[derive(Debug, Clone, Copy)]
pub struct Avx512 {
    simd: V4,
    /// All bits set, which the compiler does not know: it would replace shuffles and masks that it
    /// knows by what it takes for equals (`vexpandps`, two shuffles for one), at twice the time.
    ones: u16,
}

impl Avx512 {
    /// On a machine that has the instructions.
    pub fn new(simd: V4) -> Self {
        Avx512 { simd, ones: black_box(u16::MAX) }
    }
}

macro_rules! avx512_lanes {
    ($real:ident, $lanes:literal, $vector:ident, $align:ident, $permute:ident, $index:ident, $mask:ident,
     $set1:ident, $add:ident, $mul:ident, $fmadd:ident, $mask_mul:ident, $mask_fmadd:ident) => {
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
            // One instruction shifts the pair (vector, fill) and keeps one half of it.
            #[inline(always)]
            fn up<const BY: usize>(self, vector: $vector, fill: $vector) -> $vector {
                let (vector, fill) = (cast(vector), cast(fill));
                cast(match BY {
                    1 => self.simd.avx512f.$align::<{ $lanes - 1 }>(vector, fill),
                    2 => self.simd.avx512f.$align::<{ $lanes - 2 }>(vector, fill),
                    4 => self.simd.avx512f.$align::<{ $lanes - 4 }>(vector, fill),
                    _ => self.simd.avx512f.$align::<{ $lanes - 8 }>(vector, fill),
                })
            }
            #[inline(always)]
            fn down<const BY: usize>(self, vector: $vector, fill: $vector) -> $vector {
                let (vector, fill) = (cast(vector), cast(fill));
                cast(match BY {
                    1 => self.simd.avx512f.$align::<1>(fill, vector),
                    2 => self.simd.avx512f.$align::<2>(fill, vector),
                    4 => self.simd.avx512f.$align::<4>(fill, vector),
                    _ => self.simd.avx512f.$align::<{ 8 % $lanes }>(fill, vector),
                })
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
            // A rotation, and arithmetic on the lanes that have one before them: the others stay.
            #[inline(always)]
            fn round_up<const BY: usize>(self, (output, coeff): ($vector, $vector)) -> ($vector, $vector) {
                let rotate = |v| Lanes::<$real, $lanes>::up::<BY>(self, v, v);
                let (before, product) = (rotate(output), rotate(coeff));
                let have_one = (self.ones << BY) as $mask;
                (
                    self.simd.avx512f.$mask_fmadd(before, coeff, output, have_one),
                    self.simd.avx512f.$mask_mul(coeff, have_one, coeff, product),
                )
            }
            #[inline(always)]
            fn round_down<const BY: usize>(self, (output, coeff): ($vector, $vector)) -> ($vector, $vector) {
                let rotate = |v| Lanes::<$real, $lanes>::down::<BY>(self, v, v);
                let (before, product) = (rotate(output), rotate(coeff));
                let have_one = (self.ones as $mask) >> BY;
                (
                    self.simd.avx512f.$mask_fmadd(before, coeff, output, have_one),
                    self.simd.avx512f.$mask_mul(coeff, have_one, coeff, product),
                )
            }
        }
    };
}

avx512_lanes! {
    f32, 16, __m512, _mm512_alignr_epi32, _mm512_permutexvar_ps, u32, u16,
    _mm512_set1_ps, _mm512_add_ps, _mm512_mul_ps, _mm512_fmadd_ps,
    _mm512_mask_mul_ps, _mm512_mask3_fmadd_ps
}
avx512_lanes! {
    f64, 8, __m512d, _mm512_alignr_epi64, _mm512_permutexvar_pd, u64, u8,
    _mm512_set1_pd, _mm512_add_pd, _mm512_mul_pd, _mm512_fmadd_pd,
    _mm512_mask_mul_pd, _mm512_mask3_fmadd_pd
}
