//! The numbers that arrays on a device are made of.

use std::fmt::{Debug, Display};

use bytemuck::Pod;
use half::{bf16, f16};
use num_complex::Complex;

use crate::Element;
use crate::kernels::ElementType;

/// A number as a device stores it, and the number that kernels compute with in its place.
///
/// Implemented for `f32`, `f64`, `Complex<f32>` and `Complex<f64>`, with which kernels compute
/// directly, and for [`bf16`] and [`f16`](struct@f16), for which they compute in `f32`.
pub trait Storage: Pod + Debug + Display + PartialEq + Send + Sync {
    /// The type that kernels compute with, and the type of initial and final states.
    type Accum: Element + Storage<Accum = Self::Accum>;

    /// The type in the catalogue of kernels.
    const ELEMENT: ElementType;

    /// The error of storing a number.
    const NARROWING: Narrowing;

    /// Converts this number to the type that kernels compute with, without rounding.
    fn widen(self) -> Self::Accum;

    /// Returns the nearest number that can be stored.
    fn narrow(number: Self::Accum) -> Self;
}

/// The error of storing a computed number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Narrowing {
    /// Rounding to nearest changes a number `x` by at most this times `|x|`.
    pub unit_roundoff: f64,
    /// The smallest positive number that can be stored.
    pub smallest: f64,
    /// The largest number that can be stored; a larger one may become infinite.
    pub largest: f64,
}

impl Narrowing {
    /// The narrowing of a type that kernels compute with directly.
    pub const NONE: Narrowing =
        Narrowing { unit_roundoff: 0.0, smallest: 0.0, largest: f64::INFINITY };
}

/// Work for an element type that is known only at run time: see [`dispatch`].
pub trait Job {
    /// The result.
    type Output;

    /// Does the work for `S`.
    fn run<S: Storage>(self) -> Self::Output;
}

/// Implements [`Storage`] for all types: exact ones, and those of 16 bits.
macro_rules! storage {
    (exact { $($exact:ident = $number:ty,)* } narrow { $($narrow:ident = $half:ty,)* }) => {
        $(impl Storage for $number {
            type Accum = $number;
            const ELEMENT: ElementType = ElementType::$exact;
            const NARROWING: Narrowing = Narrowing::NONE;

            fn widen(self) -> $number {
                self
            }
            fn narrow(number: $number) -> Self {
                number
            }
        })*

        $(impl Storage for $half {
            type Accum = f32;
            const ELEMENT: ElementType = ElementType::$narrow;
            const NARROWING: Narrowing = Narrowing {
                unit_roundoff: <$half>::EPSILON.to_f64_const() / 2.0,
                smallest: <$half>::MIN_POSITIVE_SUBNORMAL.to_f64_const(),
                largest: <$half>::MAX.to_f64_const(),
            };

            fn widen(self) -> f32 {
                self.to_f32()
            }
            fn narrow(number: f32) -> Self {
                <$half>::from_f32(number)
            }
        })*

        /// Does a job for an element type.
        ///
        /// ```
        /// use linrec::device::{Job, Storage, dispatch};
        /// use linrec::kernels::ElementType;
        ///
        /// struct SizeOf;
        ///
        /// impl Job for SizeOf {
        ///     type Output = usize;
        ///
        ///     fn run<S: Storage>(self) -> usize {
        ///         size_of::<S>()
        ///     }
        /// }
        /// assert_eq!(dispatch(ElementType::Complex64, SizeOf), 8);
        /// ```
        pub fn dispatch<J: Job>(element: ElementType, job: J) -> J::Output {
            match element {
                $(ElementType::$exact => job.run::<$number>(),)*
                $(ElementType::$narrow => job.run::<$half>(),)*
            }
        }
    };
}

storage! {
    exact {
        F32 = f32,
        F64 = f64,
        Complex64 = Complex<f32>,
        Complex128 = Complex<f64>,
    }
    narrow {
        Bf16 = bf16,
        F16 = f16,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Check(ElementType);

    impl Job for Check {
        type Output = ();

        fn run<S: Storage>(self) {
            assert_eq!(S::ELEMENT, self.0);
            assert_eq!(size_of::<S>(), self.0.bytes());
            assert_eq!(S::Accum::ELEMENT, self.0.accumulator());
            let is_narrow = S::NARROWING != Narrowing::NONE;
            assert_eq!(is_narrow, self.0.accumulator() != self.0);
        }
    }

    #[test]
    fn every_type_is_what_the_catalogue_says() {
        for element in ElementType::ALL {
            dispatch(element, Check(element));
        }
    }

    #[test]
    fn narrow_types_have_the_numbers_of_their_formats() {
        let expected = [(-8, -133, bf16::MAX.to_f64()), (-11, -24, f16::MAX.to_f64())];
        let got = [bf16::NARROWING, f16::NARROWING];
        for ((roundoff, smallest, largest), got) in expected.into_iter().zip(got) {
            assert_eq!(
                (got.unit_roundoff, got.smallest),
                (2f64.powi(roundoff), 2f64.powi(smallest))
            );
            assert_eq!(got.largest, largest);
        }
    }
}
