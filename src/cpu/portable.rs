//! [`Lanes`] in plain Rust.
//!
//! [`Portable`] is for machines whose instructions this crate does not call: arrays of four
//! elements, which the compiler turns into the vectors of its target's baseline (SSE2, NEON).
//! [`Scalar`] has one element, so that a scan takes one step after the other.

use std::array::from_fn;

use super::lanes::Lanes;
use super::machine::Fence;
use crate::Element;

/// True if every processor of the target has a fused multiply-add. Elsewhere `mul_add` would be a
/// library call.
pub const FUSED: bool = cfg!(any(target_feature = "fma", target_arch = "aarch64"));

/// Vectors that need no special instructions.
#[derive(Debug, Clone, Copy)]
pub struct Portable;

impl<T: Element, const W: usize> Lanes<T, W> for Portable {
    type Vector = [T; W];

    #[inline(always)]
    fn load(self, from: &[T; W]) -> [T; W] {
        *from
    }
    #[inline(always)]
    fn store(self, vector: [T; W], to: &mut [T; W]) {
        *to = vector;
    }
    #[inline(always)]
    fn stream(self, vector: [T; W], to: &mut [T; W], _fence: &Fence) {
        *to = vector;
    }
    #[inline(always)]
    fn splat(self, value: T) -> [T; W] {
        [value; W]
    }
    #[inline(always)]
    fn add(self, a: [T; W], b: [T; W]) -> [T; W] {
        from_fn(|i| a[i] + b[i])
    }
    #[inline(always)]
    fn mul(self, a: [T; W], b: [T; W]) -> [T; W] {
        from_fn(|i| a[i] * b[i])
    }
    #[inline(always)]
    fn mul_add(self, a: [T; W], b: [T; W], c: [T; W]) -> [T; W] {
        if FUSED { from_fn(|i| a[i].mul_add(b[i], c[i])) } else { from_fn(|i| a[i] * b[i] + c[i]) }
    }
    #[inline(always)]
    fn conj(self, a: [T; W]) -> [T; W] {
        a.map(T::conj)
    }
    #[inline(always)]
    fn up<const BY: usize>(self, vector: [T; W], fill: [T; W]) -> [T; W] {
        from_fn(|i| if i < BY { fill[i] } else { vector[i - BY] })
    }
    #[inline(always)]
    fn down<const BY: usize>(self, vector: [T; W], fill: [T; W]) -> [T; W] {
        from_fn(|i| if i + BY < W { vector[i + BY] } else { fill[i] })
    }
    #[inline(always)]
    fn evens_and_odds(self, low: [T; W], high: [T; W]) -> ([T; W], [T; W]) {
        let lane = |i: usize| if i < W { low[i] } else { high[i - W] };
        (from_fn(|i| lane(2 * i)), from_fn(|i| lane(2 * i + 1)))
    }
    #[inline(always)]
    fn first(self, vector: [T; W]) -> [T; W] {
        [vector[0]; W]
    }
    #[inline(always)]
    fn last(self, vector: [T; W]) -> [T; W] {
        [vector[W - 1]; W]
    }
}

/// One number. `FUSED` means that the target of the code that uses it has a fused multiply-add.
#[derive(Debug, Clone, Copy)]
pub struct Scalar<const FUSED: bool>;

impl<T: Element, const FUSED: bool> Lanes<T, 1> for Scalar<FUSED> {
    type Vector = T;

    #[inline(always)]
    fn load(self, from: &[T; 1]) -> T {
        from[0]
    }
    #[inline(always)]
    fn store(self, vector: T, to: &mut [T; 1]) {
        *to = [vector];
    }
    #[inline(always)]
    fn stream(self, vector: T, to: &mut [T; 1], _fence: &Fence) {
        *to = [vector];
    }
    #[inline(always)]
    fn splat(self, value: T) -> T {
        value
    }
    #[inline(always)]
    fn add(self, a: T, b: T) -> T {
        a + b
    }
    #[inline(always)]
    fn mul(self, a: T, b: T) -> T {
        a * b
    }
    #[inline(always)]
    fn mul_add(self, a: T, b: T, c: T) -> T {
        if FUSED { a.mul_add(b, c) } else { a * b + c }
    }
    #[inline(always)]
    fn conj(self, a: T) -> T {
        a.conj()
    }
    #[inline(always)]
    fn up<const BY: usize>(self, _vector: T, fill: T) -> T {
        fill
    }
    #[inline(always)]
    fn down<const BY: usize>(self, _vector: T, fill: T) -> T {
        fill
    }
    #[inline(always)]
    fn evens_and_odds(self, low: T, high: T) -> (T, T) {
        (low, high)
    }
    #[inline(always)]
    fn first(self, vector: T) -> T {
        vector
    }
    #[inline(always)]
    fn last(self, vector: T) -> T {
        vector
    }
}
