//! The interface to whatever computes a block's scan.

use linrec::Error;
use linrec::cpu::Cpu;
use ndarray::{Array3, ArrayView3};

use crate::{Arguments, Gradients, Real, selective_scan, selective_scan_backward};

/// Computes the scan of a [`Block`](super::Block) and its gradients. A [`Cpu`] does, and so do the
/// kernels of a later chapter.
// ANCHOR: scanner
pub trait Scanner<T: Real> {
    /// Computes the outputs, `[batch, channels, len]`.
    ///
    /// # Errors
    ///
    /// Returns an error if the arguments do not fit together, or if this scanner cannot compute
    /// them.
    fn outputs(&self, arguments: &Arguments<T>) -> Result<Array3<T>, Error>;

    /// Computes the gradients of a loss from its gradient with respect to the outputs.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Scanner::outputs`].
    fn gradients(
        &self,
        arguments: &Arguments<T>,
        d_y: ArrayView3<T>,
    ) -> Result<Gradients<T>, Error>;
}
// ANCHOR_END: scanner

impl<T: Real> Scanner<T> for Cpu {
    fn outputs(&self, arguments: &Arguments<T>) -> Result<Array3<T>, Error> {
        Ok(selective_scan(self, arguments)?.y)
    }

    fn gradients(
        &self,
        arguments: &Arguments<T>,
        d_y: ArrayView3<T>,
    ) -> Result<Gradients<T>, Error> {
        selective_scan_backward(self, arguments, d_y, None)
    }
}
