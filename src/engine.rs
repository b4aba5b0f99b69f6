//! The interface of every engine that computes the recurrence.

use ndarray::{Array, Array1, ArrayView2, ArrayViewMut2, Dimension, Ix2};

use crate::{Element, Error, Options, validate};

/// The result of a forward pass.
#[derive(Debug, Clone, PartialEq)]
pub struct Outputs<T, D: Dimension = Ix2> {
    /// `y`, of the shape of the inputs: `[num_seqs, seq_len]`.
    pub outputs: Array<T, D>,
    /// The last state computed, one per sequence: `y_{L-1}`, or `y_0` in reverse, with the same
    /// bits. Sequences of length zero end with their initial state.
    pub final_state: Array<T, D::Smaller>,
}

/// The gradients of a loss, given its gradient with respect to the outputs.
///
/// For complex elements they follow PyTorch's convention (the conjugate of the derivative that
/// treats the loss as holomorphic), so that a step against the gradient reduces a real loss.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradients<T, D: Dimension = Ix2> {
    /// The gradient with respect to the inputs, of their shape: `[num_seqs, seq_len]`.
    pub d_inputs: Array<T, D>,
    /// The gradient with respect to the coefficients as they were given (`ln c` with
    /// [`Options::log_coeffs`]), of their shape.
    pub d_coeffs: Array<T, D>,
    /// The gradient with respect to the initial state, one per sequence: of shape `[num_seqs]`.
    pub d_initial: Array<T, D::Smaller>,
}

/// One way to compute the recurrence along the last axis of `[num_seqs, seq_len]` arrays.
///
/// Arrays may have any strides; zero sequences and zero length are valid. No argument makes an
/// engine panic: arrays that do not fit together give an [`Error`]. Every engine of this project
/// passes the same table of cases, [`contract`](crate::contract).
pub trait Engine<T: Element>: Sync {
    /// Returns the engine's name, for tables and reports.
    fn name(&self) -> &str;

    /// Computes the outputs `y_l = y_{l-1} * c_l + x_l` of every row.
    ///
    /// # Errors
    ///
    /// If `inputs` and `coeffs` differ in shape, if [`Options::initial`] does not have one entry
    /// per row, or if the engine does not support an option.
    fn forward(
        &self,
        inputs: ArrayView2<T>,
        coeffs: ArrayView2<T>,
        options: &Options<T>,
    ) -> Result<Outputs<T>, Error>;

    /// Computes the gradients of a loss from its gradient `d_outputs` with respect to the outputs.
    ///
    /// `outputs` are the outputs of the forward pass with the same `coeffs` and `options`. If the
    /// loss also depends on the final state, first add its gradient to the last computed entry of
    /// `d_outputs`.
    ///
    /// # Errors
    ///
    /// As for [`Engine::forward`]. By default the engine has no backward pass.
    fn backward(
        &self,
        d_outputs: ArrayView2<T>,
        coeffs: ArrayView2<T>,
        outputs: ArrayView2<T>,
        options: &Options<T>,
    ) -> Result<Gradients<T>, Error> {
        validate::backward(&d_outputs, &coeffs, &outputs, options)?;
        Err(forward_only(self.name()))
    }

    /// Computes the outputs into an array of the caller, of any strides; returns the final state.
    ///
    /// Every element of `outputs` is written, and none is read. By default this calls
    /// [`Engine::forward`] and copies the outputs.
    ///
    /// # Errors
    ///
    /// As for [`Engine::forward`], and if `outputs` differ from `inputs` in shape.
    fn forward_into(
        &self,
        inputs: ArrayView2<T>,
        coeffs: ArrayView2<T>,
        options: &Options<T>,
        mut outputs: ArrayViewMut2<T>,
    ) -> Result<Array1<T>, Error> {
        validate::outputs(&inputs, &outputs)?;
        let computed = self.forward(inputs, coeffs, options)?;
        outputs.assign(&computed.outputs);
        Ok(computed.final_state)
    }

    /// Computes the gradients into arrays of the caller, of any strides; returns the gradient with
    /// respect to the initial state.
    ///
    /// Every element of `d_inputs` and `d_coeffs` is written, and none is read. By default this
    /// calls [`Engine::backward`] and copies the gradients.
    ///
    /// # Errors
    ///
    /// As for [`Engine::backward`], and if `d_inputs` or `d_coeffs` differ from `d_outputs` in
    /// shape.
    fn backward_into(
        &self,
        d_outputs: ArrayView2<T>,
        coeffs: ArrayView2<T>,
        outputs: ArrayView2<T>,
        options: &Options<T>,
        mut d_inputs: ArrayViewMut2<T>,
        mut d_coeffs: ArrayViewMut2<T>,
    ) -> Result<Array1<T>, Error> {
        validate::gradients(&d_outputs, [&d_inputs, &d_coeffs])?;
        let computed = self.backward(d_outputs, coeffs, outputs, options)?;
        d_inputs.assign(&computed.d_inputs);
        d_coeffs.assign(&computed.d_coeffs);
        Ok(computed.d_initial)
    }
}

/// The error of an engine without a backward pass.
pub(crate) fn forward_only(engine: &str) -> Error {
    let what = String::from("backward: it goes forward only");
    Error::Unsupported { engine: engine.to_owned(), what }
}
