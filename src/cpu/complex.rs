//! [`Lanes`] of complex numbers: a vector of real parts and a vector of imaginary parts.

use std::ops::Neg;

use num_complex::Complex;

use super::lanes::Lanes;
use super::machine::Fence;

/// Vectors of real numbers. Two of them hold complex numbers in the order of memory.
pub trait Interleave<R, const W: usize>: Lanes<R, W> {
    /// Loads two vectors in the order of memory.
    fn load_two(self, from: &[Complex<R>; W]) -> [Self::Vector; 2];

    /// Returns lane 0 of `even`, lane 0 of `odd`, lane 1 of `even` and so on.
    fn in_turn(self, even: Self::Vector, odd: Self::Vector) -> [Self::Vector; 2];

    /// Writes two vectors in the order of memory, as [`Lanes::store`] writes one.
    fn store_two(self, vectors: [Self::Vector; 2], to: &mut [Complex<R>; W]);

    /// Writes two vectors in the order of memory, as [`Lanes::stream`] writes one.
    fn stream_two(self, vectors: [Self::Vector; 2], to: &mut [Complex<R>; W], fence: &Fence);
}

/// Vectors of complex numbers, made from vectors of real ones.
#[derive(Debug, Clone, Copy)]
pub struct ComplexLanes<L>(pub L);

impl<R, const W: usize, L> Lanes<Complex<R>, W> for ComplexLanes<L>
where
    R: Copy + num_traits::One + Neg<Output = R>,
    L: Interleave<R, W>,
{
    type Vector = (L::Vector, L::Vector);

    #[inline(always)]
    fn load(self, from: &[Complex<R>; W]) -> Self::Vector {
        let [low, high] = self.0.load_two(from);
        self.0.evens_and_odds(low, high)
    }
    #[inline(always)]
    fn store(self, (re, im): Self::Vector, to: &mut [Complex<R>; W]) {
        self.0.store_two(self.0.in_turn(re, im), to);
    }
    #[inline(always)]
    fn stream(self, (re, im): Self::Vector, to: &mut [Complex<R>; W], fence: &Fence) {
        self.0.stream_two(self.0.in_turn(re, im), to, fence);
    }
    #[inline(always)]
    fn splat(self, value: Complex<R>) -> Self::Vector {
        (self.0.splat(value.re), self.0.splat(value.im))
    }
    #[inline(always)]
    fn add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        (self.0.add(a.0, b.0), self.0.add(a.1, b.1))
    }
    #[inline(always)]
    fn mul(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        let minus_im = self.conj(a).1;
        (
            self.0.mul_add(a.0, b.0, self.0.mul(minus_im, b.1)),
            self.0.mul_add(a.0, b.1, self.0.mul(a.1, b.0)),
        )
    }
    #[inline(always)]
    fn mul_add(self, a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector {
        let minus_im = self.conj(a).1;
        (
            self.0.mul_add(a.0, b.0, self.0.mul_add(minus_im, b.1, c.0)),
            self.0.mul_add(a.0, b.1, self.0.mul_add(a.1, b.0, c.1)),
        )
    }
    #[inline(always)]
    fn conj(self, (re, im): Self::Vector) -> Self::Vector {
        // Exact, and the compiler folds it into the multiply-add that uses it.
        (re, self.0.mul(im, self.0.splat(-R::one())))
    }
    #[inline(always)]
    fn up<const BY: usize>(self, vector: Self::Vector, fill: Self::Vector) -> Self::Vector {
        (self.0.up::<BY>(vector.0, fill.0), self.0.up::<BY>(vector.1, fill.1))
    }
    #[inline(always)]
    fn down<const BY: usize>(self, vector: Self::Vector, fill: Self::Vector) -> Self::Vector {
        (self.0.down::<BY>(vector.0, fill.0), self.0.down::<BY>(vector.1, fill.1))
    }
    #[inline(always)]
    fn evens_and_odds(self, low: Self::Vector, high: Self::Vector) -> (Self::Vector, Self::Vector) {
        let re = self.0.evens_and_odds(low.0, high.0);
        let im = self.0.evens_and_odds(low.1, high.1);
        ((re.0, im.0), (re.1, im.1))
    }
    #[inline(always)]
    fn first(self, vector: Self::Vector) -> Self::Vector {
        (self.0.first(vector.0), self.0.first(vector.1))
    }
    #[inline(always)]
    fn last(self, vector: Self::Vector) -> Self::Vector {
        (self.0.last(vector.0), self.0.last(vector.1))
    }
}
