//! The inputs of a selective scan.

use super::shape::{check, check_optional};
use super::{ScanCoupling, ScanShape};
use crate::Error;
use crate::device::{Buffer, Storage};

/// The inputs of a [`SelectiveScan`](super::SelectiveScan), all contiguous, of the sizes of a
/// [`ScanShape`].
#[derive(Debug, Clone, Copy)]
pub struct ScanInputs<'a, S> {
    /// `u`, `[batch, channels, seq_len]`.
    pub u: &'a Buffer<S>,
    /// The step sizes before bias and softplus, `[batch, channels, seq_len]`.
    pub delta: &'a Buffer<S>,
    /// `A`, `[channels, states]`: negative rates of decay, at least -2e38 (a step of size 0 times
    /// an infinite rate would be NaN). States with a positive rate grow.
    pub a: &'a Buffer<f32>,
    /// `B`.
    pub b: ScanCoupling<'a, S>,
    /// `C`.
    pub c: ScanCoupling<'a, S>,
    /// `D`, `[channels]`: the factor with which `u` is added to the output; `None` means zero.
    pub d: Option<&'a Buffer<f32>>,
    /// `z`, `[batch, channels, seq_len]`: the outputs are multiplied by `z sigmoid(z)`.
    pub z: Option<&'a Buffer<S>>,
    /// The bias that is added to `delta`, `[channels]`.
    pub delta_bias: Option<&'a Buffer<f32>>,
    /// True if the softplus of the sum is the step size.
    pub softplus: bool,
    /// The states before the first step, `[batch, channels, states]`; `None` means zero.
    pub initial: Option<&'a Buffer<f32>>,
    /// The steps at which sequences begin within the rows of a batch, `[batch, seq_len]`: where it
    /// is not 0, the states before that step count as zero. At the first step it overrules
    /// `initial`.
    pub restarts: Option<&'a Buffer<u8>>,
}

impl<S: Storage> ScanInputs<'_, S> {
    /// Checks that all arrays have this shape.
    pub(super) fn check(&self, operation: &'static str, shape: ScanShape) -> Result<(), Error> {
        shape.check(operation)?;
        check(operation, "u", self.u, shape.rows())?;
        check(operation, "delta", self.delta, shape.rows())?;
        check(operation, "A", self.a, shape.rates())?;
        self.b.check(operation, "B", shape)?;
        self.c.check(operation, "C", shape)?;
        check_optional(operation, "D", self.d, shape.per_channel())?;
        check_optional(operation, "delta_bias", self.delta_bias, shape.per_channel())?;
        check_optional(operation, "z", self.z, shape.rows())?;
        check_optional(operation, "initial", self.initial, shape.states())?;
        check_optional(operation, "restarts", self.restarts, shape.steps())
    }

    /// Returns whether each row of the inputs and of `out` (or its gradient) consists of vectors of
    /// 16 bytes that begin at multiples of 16 bytes.
    pub(super) fn have_whole_rows(&self, out: &Buffer<S>, shape: ScanShape) -> bool {
        let mut arrays = [self.u, self.delta, out].into_iter().chain(self.z);
        (shape.seq_len * S::ELEMENT.bytes()).is_multiple_of(16)
            && self.b.is_aligned_to(16)
            && self.c.is_aligned_to(16)
            && arrays.all(|array| array.is_aligned_to(16))
    }
}
