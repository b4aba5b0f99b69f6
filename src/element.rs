//! The numbers that the recurrence computes with: `f32`, `f64` and complex numbers of either.

use std::fmt::{Debug, Display};

use ndarray::LinalgScalar;
use num_complex::Complex;

/// A number that the recurrence `y_l = y_{l-1} * c_l + x_l` can be computed with.
///
/// Implemented for `f32`, `f64`, `Complex<f32>` and `Complex<f64>`. The constants describe the
/// type's rounding; [`reference`](crate::reference) derives its error bound from them.
pub trait Element:
    LinalgScalar
    + Debug
    + Display
    + Default
    + PartialEq
    + Send
    + Sync
    + std::ops::Neg<Output = Self>
    + crate::cpu::Vectors
{
    /// The type of twice the precision in which the reference is computed:
    /// `f64` for real, `Complex<f64>` for complex elements.
    type Wide: Element<Wide = Self::Wide>;

    /// The type's name as Rust writes it, for tables and reports.
    const NAME: &'static str;

    /// The unit round-off `ε`: rounding to nearest changes a number by at most `u` times itself.
    const UNIT_ROUNDOFF: f64;

    /// The smallest positive number of the type, the size of the error where results underflow.
    const SMALLEST_SUBNORMAL: f64;

    /// The error of one product, in units of `ε`: 1 for real numbers; for complex numbers √5,
    /// rounded up to 3 (Brent, Percival and Zimmermann, 2007).
    const PRODUCT_ROUNDINGS: f64;

    /// The number with real part `re` and no imaginary part, rounded to the type.
    fn from_real(re: f64) -> Self;

    /// `radius · e^(i angle)`, with the angle in radians; a real number is the radius alone.
    fn from_polar(radius: f64, angle: f64) -> Self;

    /// This number as a [`Wide`](Element::Wide) one, which the reference computes with; nothing is
    /// rounded.
    fn widen(self) -> Self::Wide;

    /// A wide number, rounded to this type.
    fn narrow(wide: Self::Wide) -> Self;

    /// The complex conjugate; a real number is its own conjugate.
    fn conj(self) -> Self;

    /// The absolute value `|self|`, in `f64`.
    fn modulus(self) -> f64;

    /// `e^self`.
    fn exp(self) -> Self;

    /// The natural logarithm, the principal branch for complex numbers.
    fn ln(self) -> Self;

    /// `self * factor + summand`; one rounding for real numbers on hardware that has it.
    fn mul_add(self, factor: Self, summand: Self) -> Self;

    /// Judges an engine by one case of the [contract](crate::contract). This is a method without
    /// type parameters: so it is compiled once, in this crate, and not again in each crate that
    /// calls it.
    #[cfg(feature = "contract")]
    #[doc(hidden)]
    fn judge(trial: &crate::contract::Trial<Self>) -> Result<f64, String>;

    /// A value that no computation should leave behind: NaN (in both parts).
    fn nan() -> Self {
        Self::from_real(f64::NAN)
    }
}

macro_rules! real_element {
    ($real:ident) => {
        impl Element for $real {
            type Wide = f64;
            const NAME: &'static str = stringify!($real);
            const UNIT_ROUNDOFF: f64 = ($real::EPSILON / 2.0) as f64;
            const SMALLEST_SUBNORMAL: f64 = $real::from_bits(1) as f64;
            const PRODUCT_ROUNDINGS: f64 = 1.0;

            fn from_real(re: f64) -> Self {
                re as $real
            }
            fn from_polar(radius: f64, _angle: f64) -> Self {
                radius as $real
            }
            fn widen(self) -> f64 {
                self.into()
            }
            fn narrow(wide: f64) -> Self {
                wide as $real
            }
            fn conj(self) -> Self {
                self
            }
            fn modulus(self) -> f64 {
                self.abs().into()
            }
            fn exp(self) -> Self {
                $real::exp(self)
            }
            fn ln(self) -> Self {
                $real::ln(self)
            }
            #[cfg(feature = "contract")]
            fn judge(trial: &crate::contract::Trial<Self>) -> Result<f64, String> {
                trial.judge()
            }
            #[inline(always)]
            fn mul_add(self, factor: Self, summand: Self) -> Self {
                $real::mul_add(self, factor, summand)
            }
        }

        impl Element for Complex<$real> {
            type Wide = Complex<f64>;
            const NAME: &'static str = concat!("Complex<", stringify!($real), ">");
            const UNIT_ROUNDOFF: f64 = $real::UNIT_ROUNDOFF;
            const SMALLEST_SUBNORMAL: f64 = $real::SMALLEST_SUBNORMAL;
            const PRODUCT_ROUNDINGS: f64 = 3.0;

            fn from_real(re: f64) -> Self {
                // NaN goes into both parts, so that neither looks like a result.
                Complex::new(re as $real, if re.is_nan() { $real::NAN } else { 0.0 })
            }
            fn from_polar(radius: f64, angle: f64) -> Self {
                Self::narrow(Complex::from_polar(radius, angle))
            }
            fn widen(self) -> Complex<f64> {
                Complex::new(self.re.into(), self.im.into())
            }
            fn narrow(wide: Complex<f64>) -> Self {
                Complex::new(wide.re as $real, wide.im as $real)
            }
            fn conj(self) -> Self {
                Complex::conj(&self)
            }
            fn modulus(self) -> f64 {
                f64::hypot(self.re.into(), self.im.into())
            }
            fn exp(self) -> Self {
                Complex::exp(self)
            }
            fn ln(self) -> Self {
                Complex::ln(self)
            }
            #[cfg(feature = "contract")]
            fn judge(trial: &crate::contract::Trial<Self>) -> Result<f64, String> {
                trial.judge()
            }
            #[inline(always)]
            fn mul_add(self, factor: Self, summand: Self) -> Self {
                Complex::new(
                    self.re.mul_add(factor.re, (-self.im).mul_add(factor.im, summand.re)),
                    self.re.mul_add(factor.im, self.im.mul_add(factor.re, summand.im)),
                )
            }
        }
    };
}

real_element!(f32);
real_element!(f64);
