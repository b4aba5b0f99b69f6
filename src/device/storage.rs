//! The numbers that arrays on a device are made of.

use std::fmt::{Debug, Display};

use bytemuck::Pod;
use half::{bf16, f16};
use num_complex::Complex;

use crate::Element;
use crate::kernels::ElementType;

/// A number as a device stores it, and the number that kernels compute with in its place.
///
/// Implemented for `f32`, `f64`, `Complex<f32>` and `Complex<f64>`, which are computed with as they
/// are, and for [`bf16`] and [`f16`](struct@f16), which are computed with in `f32`.
pub trait Storage: Pod + Debug + Display + PartialEq + Send + Sync {
    /// The number that kernels compute with, and that initial and final states are.
    type Accum: Element + Storage<Accum = Self::Accum>;

    /// The same type in the catalogue of kernels.
    const ELEMENT: ElementType;

    /// The same number, ready to compute with.
    fn widen(self) -> Self::Accum;

    /// The nearest number that can be stored.
    fn narrow(number: Self::Accum) -> Self;
}

macro_rules! stored_as_it_is {
    ($number:ty, $element:ident) => {
        impl Storage for $number {
            type Accum = $number;
            const ELEMENT: ElementType = ElementType::$element;

            fn widen(self) -> $number {
                self
            }
            fn narrow(number: $number) -> Self {
                number
            }
        }
    };
}

macro_rules! stored_in_16_bits {
    ($number:ty, $element:ident) => {
        impl Storage for $number {
            type Accum = f32;
            const ELEMENT: ElementType = ElementType::$element;

            fn widen(self) -> f32 {
                self.to_f32()
            }
            fn narrow(number: f32) -> Self {
                <$number>::from_f32(number)
            }
        }
    };
}

stored_as_it_is!(f32, F32);
stored_as_it_is!(f64, F64);
stored_as_it_is!(Complex<f32>, ComplexF32);
stored_as_it_is!(Complex<f64>, ComplexF64);
stored_in_16_bits!(bf16, Bf16);
stored_in_16_bits!(f16, F16);
