//! Long functions that are generic to call and compiled once for each type of numbers.
//!
//! What has a type parameter is compiled in each crate that calls it. Nearly every chapter and test
//! calls the reference and the contract's judge; as methods of a type, without parameters, they are
//! compiled in this crate.

use ndarray::ArrayView2;

#[cfg(feature = "contract")]
use crate::Engine;
#[cfg(feature = "contract")]
use crate::contract::{self, Case, Data, Domain, ErrorBound, Report, Stored};
use crate::reference::{Rounding, bound, loops};
use crate::{Element, Error, Gradients, Options, Outputs};

/// The hook by which [`Element`] reaches them. Not for use outside of this crate.
#[doc(hidden)]
#[allow(missing_docs)]
pub trait Once: Sized {
    fn exact_forward(
        inputs: ArrayView2<Self>,
        coeffs: ArrayView2<Self>,
        options: &Options<Self>,
    ) -> Result<Outputs<Self::Wide>, Error>
    where
        Self: Element;

    fn exact_backward(
        d_outputs: ArrayView2<Self>,
        coeffs: ArrayView2<Self>,
        outputs: ArrayView2<Self>,
        options: &Options<Self>,
    ) -> Result<Gradients<Self::Wide>, Error>
    where
        Self: Element;

    fn forward_bound(
        inputs: ArrayView2<Self>,
        coeffs: ArrayView2<Self>,
        options: &Options<Self>,
        rounding: Rounding,
    ) -> Result<Outputs<f64>, Error>
    where
        Self: Element;

    fn backward_bound(
        d_outputs: ArrayView2<Self>,
        coeffs: ArrayView2<Self>,
        outputs: ArrayView2<Self>,
        options: &Options<Self>,
        rounding: Rounding,
    ) -> Result<Gradients<f64>, Error>
    where
        Self: Element;

    #[cfg(feature = "contract")]
    fn data(case: &Case) -> Data<Self>
    where
        Self: Element;

    #[cfg(feature = "contract")]
    fn check(
        engine: &dyn Engine<Self>,
        domain: &Domain,
        bound: &dyn ErrorBound<Self>,
        case: &Case,
        stored: &Stored<Self>,
    ) -> Result<f64, String>
    where
        Self: Element;

    #[cfg(feature = "contract")]
    fn run(
        engine: &dyn Engine<Self>,
        domain: &Domain,
        bound: &dyn ErrorBound<Self>,
        element: &'static str,
        stored: &Stored<Self>,
    ) -> Report
    where
        Self: Element;
}

macro_rules! once {
    ($element:ty) => {
        impl Once for $element {
            fn exact_forward(
                inputs: ArrayView2<Self>,
                coeffs: ArrayView2<Self>,
                options: &Options<Self>,
            ) -> Result<Outputs<<Self as Element>::Wide>, Error> {
                loops::forward(inputs, coeffs, options)
            }

            fn exact_backward(
                d_outputs: ArrayView2<Self>,
                coeffs: ArrayView2<Self>,
                outputs: ArrayView2<Self>,
                options: &Options<Self>,
            ) -> Result<Gradients<<Self as Element>::Wide>, Error> {
                loops::backward(d_outputs, coeffs, outputs, options)
            }

            fn forward_bound(
                inputs: ArrayView2<Self>,
                coeffs: ArrayView2<Self>,
                options: &Options<Self>,
                rounding: Rounding,
            ) -> Result<Outputs<f64>, Error> {
                bound::forward_bound(inputs, coeffs, options, rounding)
            }

            fn backward_bound(
                d_outputs: ArrayView2<Self>,
                coeffs: ArrayView2<Self>,
                outputs: ArrayView2<Self>,
                options: &Options<Self>,
                rounding: Rounding,
            ) -> Result<Gradients<f64>, Error> {
                bound::backward_bound(d_outputs, coeffs, outputs, options, rounding)
            }

            #[cfg(feature = "contract")]
            fn data(case: &Case) -> Data<Self> {
                case.draw()
            }

            #[cfg(feature = "contract")]
            fn check(
                engine: &dyn Engine<Self>,
                domain: &Domain,
                bound: &dyn ErrorBound<Self>,
                case: &Case,
                stored: &Stored<Self>,
            ) -> Result<f64, String> {
                contract::check_through(engine, domain, bound, case, stored)
            }

            #[cfg(feature = "contract")]
            fn run(
                engine: &dyn Engine<Self>,
                domain: &Domain,
                bound: &dyn ErrorBound<Self>,
                element: &'static str,
                stored: &Stored<Self>,
            ) -> Report {
                contract::run_through(engine, domain, bound, element, stored)
            }
        }
    };
}

once!(f32);
once!(f64);
once!(num_complex::Complex<f32>);
once!(num_complex::Complex<f64>);
