//! The vocabulary in which the scans are written: a vector of `W` consecutive elements.
//!
//! [`Lanes`] says what a scan asks of a vector; each instruction set answers in a few lines
//! ([`avx512`](super::avx512), [`avx2`](super::avx2), [`portable`](super::portable)), and
//! [`Split`](super::complex::Split) makes vectors of complex numbers out of vectors of real ones.
//! A [`Job`] is code that is compiled once for each of them.

use super::stream::Fence;

/// Vectors of `W` elements, made by a token that proves that the machine has the instructions.
pub trait Lanes<T, const W: usize>: Copy + Send + Sync {
    /// The vector.
    type Vector: Copy;

    /// The elements of an array, the first one in lane 0.
    fn load(self, from: &[T; W]) -> Self::Vector;

    /// Writes the lanes into an array.
    fn store(self, vector: Self::Vector, to: &mut [T; W]);

    /// Writes the lanes into an array, past the caches where the instruction set can and the array
    /// lies so.
    fn stream(self, vector: Self::Vector, to: &mut [T; W], fence: &Fence);

    /// One number in every lane.
    fn splat(self, value: T) -> Self::Vector;

    /// `a + b`.
    fn add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// `a * b`.
    fn mul(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// `a * b + c`.
    fn mul_add(self, a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;

    /// The complex conjugate.
    fn conj(self, a: Self::Vector) -> Self::Vector;

    /// Moves every lane up by `BY` (1, 2, 4 or 8, less than `W`): lane `i` gets lane `i - BY`, and
    /// the lowest `BY` lanes get the number that all lanes of `fill` hold.
    fn up<const BY: usize>(self, vector: Self::Vector, fill: Self::Vector) -> Self::Vector;

    /// Moves every lane down by `BY`, as [`Lanes::up`] does the other way.
    fn down<const BY: usize>(self, vector: Self::Vector, fill: Self::Vector) -> Self::Vector;

    /// The even and the odd lanes of two vectors, `low` before `high`.
    fn evens_and_odds(self, low: Self::Vector, high: Self::Vector) -> (Self::Vector, Self::Vector);

    /// Lane 0 in every lane.
    fn first(self, vector: Self::Vector) -> Self::Vector;

    /// Lane `W - 1` in every lane.
    fn last(self, vector: Self::Vector) -> Self::Vector;
}

/// In every lane an output and a product of coefficients.
pub type Pair<T, const W: usize, L> = (<L as Lanes<T, W>>::Vector, <L as Lanes<T, W>>::Vector);

/// Code that runs in the lanes of whichever instruction set was chosen at run time.
///
/// `run` and everything it calls per element must be `#[inline(always)]`: only what is inlined into
/// the dispatching function is compiled for its instruction set.
pub trait Job<T> {
    /// What comes out.
    type Output;

    /// Runs in the given lanes.
    fn run<const W: usize, L: Lanes<T, W>>(self, lanes: L) -> Self::Output;
}
