//! `B` and `C`, which vary along the sequence or are constant, and their gradients.

use super::ScanShape;
use super::shape::check;
use crate::Error;
use crate::device::argument::{Argument, IntoSlot, Slot};
use crate::device::{Buffer, Storage};

/// The coupling of the states to the inputs (`B`) or to the outputs (`C`).
#[derive(Debug, Clone, Copy)]
pub enum ScanCoupling<'a, S> {
    /// One for each step and group of channels: `[batch, groups, states, seq_len]`.
    Varying(&'a Buffer<S>),
    /// One for each channel, the same at all steps and in all batches: `[channels, states]`.
    Constant(&'a Buffer<f32>),
}

/// The array for the gradient with respect to a [`ScanCoupling`], of the same kind and shape.
#[derive(Debug)]
pub enum ScanCouplingGradient<'a, S> {
    /// The gradient of a varying coupling.
    Varying(&'a mut Buffer<S>),
    /// The gradient of a constant one.
    Constant(&'a mut Buffer<f32>),
}

impl<'a, S> From<&'a Buffer<S>> for ScanCoupling<'a, S> {
    fn from(varying: &'a Buffer<S>) -> Self {
        ScanCoupling::Varying(varying)
    }
}

impl<'a, S> From<&'a mut Buffer<S>> for ScanCouplingGradient<'a, S> {
    fn from(varying: &'a mut Buffer<S>) -> Self {
        ScanCouplingGradient::Varying(varying)
    }
}

impl<S: Storage> ScanCoupling<'_, S> {
    pub(super) fn varies(&self) -> bool {
        matches!(self, ScanCoupling::Varying(_))
    }

    pub(super) fn len(&self) -> usize {
        match self {
            ScanCoupling::Varying(buffer) => buffer.len(),
            ScanCoupling::Constant(buffer) => buffer.len(),
        }
    }

    pub(super) fn is_aligned_to(&self, bytes: u64) -> bool {
        match self {
            ScanCoupling::Varying(buffer) => buffer.is_aligned_to(bytes),
            ScanCoupling::Constant(_) => true, // is not read in vectors
        }
    }

    pub(super) fn check(
        &self,
        operation: &'static str,
        name: &'static str,
        shape: ScanShape,
    ) -> Result<(), Error> {
        match self {
            ScanCoupling::Varying(buffer) => check(operation, name, buffer, shape.couplings()),
            ScanCoupling::Constant(buffer) => check(operation, name, buffer, shape.rates()),
        }
    }
}

impl<S: Storage> ScanCouplingGradient<'_, S> {
    /// The array as one that is read.
    fn as_coupling(&self) -> ScanCoupling<'_, S> {
        match self {
            ScanCouplingGradient::Varying(buffer) => ScanCoupling::Varying(buffer),
            ScanCouplingGradient::Constant(buffer) => ScanCoupling::Constant(buffer),
        }
    }

    pub(super) fn is_aligned_to(&self, bytes: u64) -> bool {
        self.as_coupling().is_aligned_to(bytes)
    }

    /// Checks that it has the kind and the shape of its coupling.
    pub(super) fn check(
        &self,
        operation: &'static str,
        name: &'static str,
        of: &ScanCoupling<S>,
        shape: ScanShape,
    ) -> Result<(), Error> {
        let gradient = self.as_coupling();
        if gradient.varies() == of.varies() {
            return gradient.check(operation, name, shape);
        }
        Err(Error::Unsupported {
            engine: "selective scan".into(),
            what: format!(
                "a {name} that varies where the input is constant, or the reverse, in {operation}"
            ),
        })
    }
}

impl<'a, S> Argument<'a> for ScanCoupling<'a, S> {}
impl<'a, S> IntoSlot<'a> for ScanCoupling<'a, S> {
    fn into_slot(self) -> Slot {
        match self {
            ScanCoupling::Varying(buffer) => buffer.into_slot(),
            ScanCoupling::Constant(buffer) => buffer.into_slot(),
        }
    }
}

impl<'a, S> Argument<'a> for ScanCouplingGradient<'a, S> {}
impl<'a, S> IntoSlot<'a> for ScanCouplingGradient<'a, S> {
    fn into_slot(self) -> Slot {
        match self {
            ScanCouplingGradient::Varying(buffer) => buffer.into_slot(),
            ScanCouplingGradient::Constant(buffer) => buffer.into_slot(),
        }
    }
}
