//! The largest errors that an engine may make.

use ndarray::ArrayView2;

use super::Domain;
use crate::reference::{self, Rounding};
use crate::{Element, Error, Gradients, Options, Outputs};

// ANCHOR: error_bound
/// The largest errors that an engine may make, result by result, compared with
/// [`crate::reference`].
///
/// [`Domain`] implements it: its bound holds for every engine that multiplies and adds. An engine
/// whose errors depend on the data in another way brings its own bound, by which
/// [`run_within`](super::run_within) judges it. The bound includes the rounding of the reference
/// itself.
pub trait ErrorBound<T: Element>: Sync {
    /// The largest errors of [`Engine::forward`](crate::Engine::forward) for these arrays of shape
    /// `[num_seqs, seq_len]`.
    ///
    /// # Errors
    ///
    /// If the shapes do not match.
    fn forward_bound(
        &self,
        inputs: ArrayView2<T>,
        coeffs: ArrayView2<T>,
        options: &Options<T>,
    ) -> Result<Outputs<f64>, Error>;

    /// The largest errors of [`Engine::backward`](crate::Engine::backward) for these arrays, when
    /// the reference is given the same `outputs`.
    ///
    /// # Errors
    ///
    /// If the shapes do not match.
    fn backward_bound(
        &self,
        d_outputs: ArrayView2<T>,
        coeffs: ArrayView2<T>,
        outputs: ArrayView2<T>,
        options: &Options<T>,
    ) -> Result<Gradients<f64>, Error>;
}
// ANCHOR_END: error_bound

impl<T: Element> ErrorBound<T> for Domain {
    fn forward_bound(
        &self,
        inputs: ArrayView2<T>,
        coeffs: ArrayView2<T>,
        options: &Options<T>,
    ) -> Result<Outputs<f64>, Error> {
        reference::forward_bound(inputs, coeffs, options, self.rounding(inputs.ncols()))
    }

    fn backward_bound(
        &self,
        d_outputs: ArrayView2<T>,
        coeffs: ArrayView2<T>,
        outputs: ArrayView2<T>,
        options: &Options<T>,
    ) -> Result<Gradients<f64>, Error> {
        let rounding = self.rounding(d_outputs.ncols());
        reference::backward_bound(d_outputs, coeffs, outputs, options, rounding)
    }
}

impl Domain {
    fn rounding(&self, seq_len: usize) -> Rounding {
        Rounding { levels: (self.levels)(seq_len), exp_ulps: self.exp_ulps }
    }
}
