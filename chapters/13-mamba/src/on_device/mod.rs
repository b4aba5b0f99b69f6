//! The dissection on a device: expansion, recurrence and contraction as three kernels over arrays
//! in the device's memory.
//!
//! The arrays between the kernels have the states' dimension, and all of them go through the
//! memory: see [`Traffic`].

mod arrays;
mod copying;
mod kernels;

pub use arrays::{Given, GradientScratch, Gradients, Scratch, Traffic};
pub use copying::{Computed, Differentiated, Held};

use linrec::Error;
use linrec::device::{
    BackwardOptions, Buffer, Choice, Device, ForwardOptions, Launched, Recurrence, Storage, Stream,
};

use crate::Real;
use kernels::Kernels;

/// The name and the outcome of each launch, in the order of the launches.
pub type Passes = Vec<(&'static str, Launched)>;

/// A selective scan on a device, pass by pass.
///
/// Passes are queued on a stream and wait only for each other. No sum depends on which thread
/// finishes first, so a GPU and the emulator give the same bits in every run, as long as the same
/// kernel computes the recurrence ([`Choice::FastestShipped`], or one by name).
#[derive(Debug, Clone)]
pub struct Scan<S> {
    recurrence: Recurrence<S>,
    kernels: Kernels,
}

impl<S: Real + Storage<Accum = S>> Scan<S> {
    /// Loads the kernels; `choice` selects the kernel of the recurrence.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Device`] if the device refuses a kernel.
    pub fn new(device: &Device, choice: impl Into<Choice>) -> Result<Self, Error> {
        let recurrence = Recurrence::new(device, choice)?;
        Ok(Scan { recurrence, kernels: Kernels::load(device, S::ELEMENT)? })
    }

    /// Returns the device that computes.
    pub fn device(&self) -> &Device {
        self.recurrence.device()
    }

    /// Computes `y` `[batch, channels, len]` and, if asked, the last state
    /// `[batch, channels, states]`. The states of all positions stay in `scratch`.
    ///
    /// # Errors
    ///
    /// Returns [`Error::ShapeMismatch`] with the array that does not fit; [`Error::Device`] of a
    /// device.
    // ANCHOR: forward
    pub fn forward_into(
        &self,
        given: &Given<S>,
        scratch: &mut Scratch<S>,
        y: &mut Buffer<S>,
        last_state: Option<&mut Buffer<S>>,
        stream: &Stream,
    ) -> Result<Passes, Error> {
        given.check(&[("y", y.len())], scratch)?;
        let mut passes = self.states(given, scratch, last_state, stream)?;
        let read = self.kernels.contract(given, &scratch.outputs, y, stream)?;
        passes.extend(read.map(|read| ("contract", read)));
        Ok(passes)
    }

    /// Computes the states of all positions: expansion and recurrence.
    fn states(
        &self,
        given: &Given<S>,
        scratch: &mut Scratch<S>,
        final_state: Option<&mut Buffer<S>>,
        stream: &Stream,
    ) -> Result<Passes, Error> {
        let Scratch { inputs, coeffs, outputs } = scratch;
        let expanded = self.kernels.expand(given, inputs, coeffs, stream)?;
        let stream = Some(stream);
        let options =
            ForwardOptions { initial: given.initial, final_state, stream, ..Default::default() };
        let rows = given.rows();
        let scanned = self.recurrence.forward_into(inputs, coeffs, outputs, rows, options)?;
        let passes = expanded.map(|expanded| ("expand", expanded));
        Ok(passes.into_iter().chain([("recurrence", scanned)]).collect())
    }
    // ANCHOR_END: forward

    /// Computes the gradients of a loss from its gradients with respect to the results: `d_y`
    /// `[batch, channels, len]` and, if the loss depends on the last states, `d_last`
    /// `[batch, channels, states]`.
    ///
    /// The states are computed again.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Scan::forward_into`].
    // ANCHOR: backward
    pub fn backward_into(
        &self,
        given: &Given<S>,
        d_y: &Buffer<S>,
        d_last: Option<&Buffer<S>>,
        scratch: &mut GradientScratch<S>,
        gradients: &mut Gradients<S>,
        stream: &Stream,
    ) -> Result<Passes, Error> {
        given.check_gradients(d_y, d_last, scratch, gradients)?;
        let kernels = &self.kernels;
        let mut passes = self.states(given, &mut scratch.states, None, stream)?;

        // The inputs are not needed again: the gradients of the outputs overwrite them.
        let Scratch { inputs: d_outputs, coeffs, outputs } = &mut scratch.states;
        let (d_sum, d_z) = (&mut scratch.d_sum, gradients.d_z.as_mut());
        let d = kernels.contract_back(
            given,
            (d_y, d_last),
            outputs,
            (d_outputs, d_sum, d_z),
            stream,
        )?;
        passes.extend(d.map(|d| ("contract, back", d)));
        let (d_sum, d_c) = (&scratch.d_sum, &mut gradients.d_c);
        passes.extend(kernels.sum_shared(given, given.c, d_sum, outputs, d_c, stream)?);

        let options = BackwardOptions {
            initial: given.initial,
            d_initial: Some(&mut gradients.d_initial),
            stream: Some(stream),
            ..Default::default()
        };
        let (d_inputs, d_coeffs) = (&mut scratch.d_inputs, &mut scratch.d_coeffs);
        let d = self.recurrence.backward_into(
            d_outputs,
            coeffs,
            outputs,
            d_inputs,
            d_coeffs,
            given.rows(),
            options,
        )?;
        passes.push(("recurrence, back", d));
        if let (0, Some(d_last)) = (given.sizes.len, d_last) {
            // Without steps the last states are the initial ones.
            passes.extend(kernels.copy(d_last, &mut gradients.d_initial, stream)?);
        }

        let received = [&*d_inputs, &*d_coeffs, &*coeffs, d_sum];
        let own = (&mut gradients.d_u, &mut gradients.d_delta);
        let weights = (&mut scratch.scaled, &mut scratch.steps);
        let d = kernels.expand_back(given, received, own, weights, stream)?;
        passes.extend(d.map(|d| ("expand, back", d)));
        let (scaled, steps) = (&scratch.scaled, &scratch.steps);
        passes.extend(kernels.sum_shared(
            given,
            given.b,
            scaled,
            d_inputs,
            &mut gradients.d_b,
            stream,
        )?);
        let d_exponents = (&*d_coeffs, Some(&*coeffs));
        passes.extend(kernels.sum_rows(
            given,
            Some(steps),
            d_exponents,
            &mut gradients.d_a,
            stream,
        )?);
        if let Some(d_d) = &mut gradients.d_d {
            passes.extend(kernels.sum_rows(given, Some(d_sum), (given.u, None), d_d, stream)?);
        }
        let d_delta = (&gradients.d_delta, None);
        passes.extend(kernels.sum_rows(
            given,
            None,
            d_delta,
            &mut gradients.d_delta_bias,
            stream,
        )?);
        Ok(passes)
    }
    // ANCHOR_END: backward
}
