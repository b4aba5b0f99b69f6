//! What a selective scan is given.

use super::shape::check;
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
    /// `A`, `[channels, states]`: rates of decay with a minus, at least -2e38 (a step of size 0
    /// times an infinite rate would be no number). States grow where they are positive.
    pub a: &'a Buffer<f32>,
    /// `B`.
    pub b: ScanCoupling<'a, S>,
    /// `C`.
    pub c: ScanCoupling<'a, S>,
    /// `D`, `[channels]`: how much of `u` goes straight to the output; `None` means nothing.
    pub d: Option<&'a Buffer<f32>>,
    /// `z`, `[batch, channels, seq_len]`: the outputs are multiplied by `z sigmoid(z)`.
    pub z: Option<&'a Buffer<S>>,
    /// What is added to `delta`, `[channels]`.
    pub delta_bias: Option<&'a Buffer<f32>>,
    /// Whether the softplus of that is taken.
    pub softplus: bool,
    /// The states before the first step, `[batch, channels, states]`; `None` means zero.
    pub initial: Option<&'a Buffer<f32>>,
    /// Where sequences begin within the rows of a batch, `[batch, seq_len]`: where it is not 0, the
    /// states before that step count as zero, whatever they were. So at the first step it overrules
    /// `initial`.
    pub restarts: Option<&'a Buffer<u8>>,
}

impl<S: Storage> ScanInputs<'_, S> {
    /// An error unless all arrays are of this shape.
    pub(super) fn check(&self, operation: &'static str, shape: ScanShape) -> Result<(), Error> {
        shape.check(operation)?;
        check(operation, "u", self.u, shape.rows())?;
        check(operation, "delta", self.delta, shape.rows())?;
        check(operation, "A", self.a, shape.rates())?;
        self.b.check(operation, "B", shape)?;
        self.c.check(operation, "C", shape)?;
        for (name, array) in [("D", self.d), ("delta_bias", self.delta_bias)] {
            array.map_or(Ok(()), |array| check(operation, name, array, shape.per_channel()))?;
        }
        self.z.map_or(Ok(()), |z| check(operation, "z", z, shape.rows()))?;
        self.initial
            .map_or(Ok(()), |initial| check(operation, "initial", initial, shape.states()))?;
        self.restarts
            .map_or(Ok(()), |restarts| check(operation, "restarts", restarts, shape.steps()))
    }
}
