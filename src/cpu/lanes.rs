//! The vocabulary in which the scans are written: a vector of `W` consecutive elements.
//!
//! [`Lanes`] has the operations that a scan needs. Each instruction set implements them in a few
//! lines ([`avx512`](super::avx512), [`avx2`](super::avx2), [`portable`](super::portable)), and
//! [`ComplexLanes`](super::complex::ComplexLanes) makes vectors of complex numbers from vectors of
//! real ones. A [`LaneJob`] is code that is compiled once for each instruction set.

use super::machine::Fence;

/// Vectors of `W` elements, made by a token that proves that the machine has the instructions.
pub trait Lanes<T, const W: usize>: Copy + Send + Sync {
    /// The vector.
    type Vector: Copy;

    /// Loads the elements of an array, the first one into lane 0.
    fn load(self, from: &[T; W]) -> Self::Vector;

    /// Writes the lanes into an array.
    fn store(self, vector: Self::Vector, to: &mut [T; W]);

    /// Writes the lanes into an array, past the caches if the instruction set can and the array is
    /// aligned.
    fn stream(self, vector: Self::Vector, to: &mut [T; W], fence: &Fence);

    /// Returns a vector with one number in every lane.
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

    /// Moves every lane down by `BY`, in the opposite direction to [`Lanes::up`].
    fn down<const BY: usize>(self, vector: Self::Vector, fill: Self::Vector) -> Self::Vector;

    /// Returns the even and the odd lanes of two vectors, `low` before `high`.
    fn evens_and_odds(self, low: Self::Vector, high: Self::Vector) -> (Self::Vector, Self::Vector);

    /// Copies lane 0 to every lane.
    fn first(self, vector: Self::Vector) -> Self::Vector;

    /// Copies lane `W - 1` to every lane.
    fn last(self, vector: Self::Vector) -> Self::Vector;
}

/// A vector of outputs and a vector of products of coefficients.
pub type Pair<T, const W: usize, L> = (<L as Lanes<T, W>>::Vector, <L as Lanes<T, W>>::Vector);

/// Code that runs in the lanes of whichever instruction set was chosen at run time.
///
/// `run` and everything it calls per element must be `#[inline(always)]`: only what is inlined into
/// the dispatching function is compiled for its instruction set.
pub trait LaneJob<T> {
    /// The result.
    type Output;

    /// True for a recurrence, whose steps can be taken one after the other by lanes of one element.
    const TAKES_STEPS: bool = false;

    /// Runs the job in the given lanes.
    fn run<const W: usize, L: Lanes<T, W>>(self, lanes: L) -> Self::Output;
}
