//! `B` and `C`, which vary along the sequence or are constants, and their gradients.

use super::ScanShape;
use super::shape::check;
use crate::Error;
use crate::device::argument::{Argument, IntoSlot, Slot};
use crate::device::{Buffer, Storage};

/// How states are coupled to the inputs (`B`) or to the outputs (`C`).
#[derive(Debug, Clone, Copy)]
pub enum ScanCoupling<'a, S> {
    /// Step by step, for a group of channels: `[batch, groups, states, seq_len]`.
    Varying(&'a Buffer<S>),
    /// The same at all steps and of all batches, for each channel: `[channels, states]`.
    Constant(&'a Buffer<f32>),
}

/// Where the gradient with respect to a [`ScanCoupling`] goes: of the same kind, and in the same
/// shape.
#[derive(Debug)]
pub enum ScanCouplingGradient<'a, S> {
    /// With respect to what varies.
    Varying(&'a mut Buffer<S>),
    /// With respect to constants.
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
    pub(super) fn is_aligned_to(&self, bytes: u64) -> bool {
        match self {
            ScanCouplingGradient::Varying(buffer) => buffer.is_aligned_to(bytes),
            ScanCouplingGradient::Constant(_) => true,
        }
    }

    /// An error unless it is of the kind and the shape of what it is the gradient of.
    pub(super) fn check(
        &self,
        operation: &'static str,
        name: &'static str,
        of: &ScanCoupling<S>,
        shape: ScanShape,
    ) -> Result<(), Error> {
        match (self, of) {
            (ScanCouplingGradient::Varying(buffer), ScanCoupling::Varying(_)) => {
                check(operation, name, buffer, shape.couplings())
            }
            (ScanCouplingGradient::Constant(buffer), ScanCoupling::Constant(_)) => {
                check(operation, name, buffer, shape.rates())
            }
            _ => Err(Error::Unsupported {
                engine: "selective scan".into(),
                what: format!(
                    "a {name} that varies where the input is constant, or the reverse, in {operation}"
                ),
            }),
        }
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
