//! The number types of a selective scan, and an exponential that compilers can vectorise.

use std::ops::{AddAssign, DivAssign};

use linrec::Element;
use ndarray::ScalarOperand;
use num_complex::Complex;

/// `f32` and `f64`: the types of the arrays with one number for each position of a channel.
pub trait Real:
    Element<Wide = f64> + State<Real = Self, Precise = f64> + PartialOrd + ScalarOperand + DivAssign
{
}

impl Real for f32 {}
impl Real for f64 {}

/// The type of a channel's states, and of `A`, `B` and `C`: real or complex numbers.
///
/// A complex state represents itself and its conjugate. The output reads both, as `C h` and its
/// conjugate, whose sum is twice the real part.
// ANCHOR: state
pub trait State: Element<Wide = <Self as State>::Precise> + AddAssign {
    /// The real numbers of the same precision.
    type Real: Real;

    /// The corresponding type in double precision.
    type Precise: State<Real = f64, Precise = Self::Precise>;

    /// The number of states that one value represents: 1, or 2 if it is complex.
    const COUNT: f64;

    /// The relative error of [`exponential`](State::exponential), in units of the round-off `u`.
    const EXP_ROUNDINGS: f64;

    /// The size below which [`exponential`](State::exponential) may return zero instead.
    const EXP_UNDERFLOW: f64;

    /// Computes `e^self`.
    fn exponential(self) -> Self;

    /// Returns the complex conjugate; a real number is its own. It equals [`Element::conj`], in a
    /// form that vectorises.
    fn conjugate(self) -> Self;

    /// Multiplies by a real number.
    fn times(self, factor: Self::Real) -> Self;

    /// Returns the contribution of the state `self` to the output: `C h`, or `2 Re(C h)`.
    fn read(self, c: Self) -> Self::Real;

    /// Returns the gradient of [`read`](State::read) with respect to one factor; `self` is the
    /// other factor, and `d` the gradient of the result.
    fn read_back(self, d: Self::Real) -> Self;

    /// Returns `Re(conj(self) other)`: if `other` is the gradient of a product of `self` and a real
    /// number, this is the gradient of the real number.
    fn dot(self, other: Self) -> Self::Real;

    /// Returns the real part.
    fn real(self) -> Self::Real;
}
// ANCHOR_END: state

macro_rules! state {
    ($real:ident, $exponential:expr, $underflow:expr) => {
        impl State for $real {
            type Real = $real;
            type Precise = f64;
            const COUNT: f64 = 1.0;
            // Standard libraries promise an error below one unit in the last place, at most 2 u.
            const EXP_ROUNDINGS: f64 = 2.0;
            const EXP_UNDERFLOW: f64 = $underflow;

            #[inline(always)]
            fn exponential(self) -> $real {
                $exponential(self)
            }
            #[inline(always)]
            fn conjugate(self) -> $real {
                self
            }
            #[inline(always)]
            fn times(self, factor: $real) -> $real {
                self * factor
            }
            #[inline(always)]
            fn read(self, c: $real) -> $real {
                c * self
            }
            #[inline(always)]
            fn read_back(self, d: $real) -> $real {
                d * self
            }
            #[inline(always)]
            fn dot(self, other: $real) -> $real {
                self * other
            }
            #[inline(always)]
            fn real(self) -> $real {
                self
            }
        }

        impl State for Complex<$real> {
            type Real = $real;
            type Precise = Complex<f64>;
            const COUNT: f64 = 2.0;
            // The roundings of the size, of the cosine or sine, and of their product.
            const EXP_ROUNDINGS: f64 = 5.0;
            const EXP_UNDERFLOW: f64 = $real::MIN_POSITIVE as f64;

            fn exponential(self) -> Self {
                self.exp()
            }
            fn conjugate(self) -> Self {
                Complex::conj(&self)
            }
            fn times(self, factor: $real) -> Self {
                Complex::new(self.re * factor, self.im * factor)
            }
            fn read(self, c: Self) -> $real {
                2.0 * (c.re * self.re - c.im * self.im)
            }
            fn read_back(self, d: $real) -> Self {
                self.conjugate().times(2.0 * d)
            }
            fn dot(self, other: Self) -> $real {
                self.re * other.re + self.im * other.im
            }
            fn real(self) -> $real {
                self.re
            }
        }
    };
}

state!(f32, exp_f32, 1.2e-38);
state!(f64, f64::exp, f64::MIN_POSITIVE);

/// `e^x` without branches or tables: products, sums and one shift of bits.
///
/// With `n` the integer nearest to `x / ln 2`, the result is `2^n e^r`, where `r = x - n ln 2` is
/// within 0.347 of zero. The Taylor series up to `r^7` leaves an error of `r^8 / 8!`, less than
/// `0.1 u`. The roundings on the way are small against the last one, of `1 + (r + …)`. A subnormal
/// result becomes 0; above `x = 88` (a result of `1.6e38`) it is infinite.
// ANCHOR: exp
#[inline(always)]
fn exp_f32(x: f32) -> f32 {
    // 1.5 · 2^23: adding it rounds to an integer, which ends up in the lowest bits.
    const ROUND: f32 = 12_582_912.0;
    // ln 2 in two parts. The first has so few bits that its product with n is exact.
    const LN_2: [f32; 2] = [355.0 / 512.0, -2.121_944_4e-4];
    let rounded = x * std::f32::consts::LOG2_E + ROUND;
    let n = rounded - ROUND;
    let r = (x - n * LN_2[0]) - n * LN_2[1];
    let mut tail = 1.0 / 5040.0;
    for coeff in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 1.0 / 2.0] {
        tail = tail * r + coeff;
    }
    let fraction = 1.0 + (r + r * r * tail);
    // 2^n: n goes into the exponent bits of a float, which are offset by 127.
    let power = f32::from_bits((rounded.to_bits() << 23).wrapping_add(127 << 23));
    match fraction * power {
        _ if x < -87.33 => 0.0,
        _ if x > 88.0 => f32::INFINITY,
        value => value,
    }
}
// ANCHOR_END: exp
