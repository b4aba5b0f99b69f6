//! The interface that every way of computing the recurrence has.

use ndarray::{Array, Array1, ArrayView2, ArrayViewMut2, Dimension, Ix2};

use crate::validate::same_shape;
use crate::{Element, Error, Options};

/// The result of a forward pass.
#[derive(Debug, Clone, PartialEq)]
pub struct Outputs<T, D: Dimension = Ix2> {
    /// `y`, of the shape of the inputs: `[num_seqs, seq_len]`.
    pub outputs: Array<T, D>,
    /// The last state computed, one per sequence: `y_{L-1}`, or `y_0` in reverse, with the same
    /// bits. For sequences of length zero it is the initial state.
    pub final_state: Array<T, D::Smaller>,
}

/// The gradients of a loss, given its gradient with respect to the outputs.
///
/// For complex elements they follow PyTorch's convention (the conjugate of the derivative that
/// treats the loss as holomorphic), so that a step against the gradient reduces a real loss.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradients<T, D: Dimension = Ix2> {
    /// With respect to the inputs, of their shape: `[num_seqs, seq_len]`.
    pub d_inputs: Array<T, D>,
    /// With respect to the coefficients as they were given (`ln c` with
    /// [`Options::log_coeffs`]), of their shape.
    pub d_coeffs: Array<T, D>,
    /// With respect to the initial state, one per sequence: of shape `[num_seqs]`.
    pub d_initial: Array<T, D::Smaller>,
}

/// One way to compute the recurrence along the last axis of `[num_seqs, seq_len]` arrays.
///
/// Arrays may have any strides; zero sequences and zero length are valid. Nothing panics on what a
/// caller passes in: what does not fit is an [`Error`]. Every engine of this project passes the
/// same table of cases, [`contract`](crate::contract).
pub trait Engine<T: Element>: Sync {
    /// The engine's name, for tables and reports.
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
    /// `outputs` are those of the forward pass with the same `coeffs` and `options`. If the loss
    /// also depends on the final state, add its gradient to the last computed entry of `d_outputs`
    /// first.
    ///
    /// # Errors
    ///
    /// As for [`Engine::forward`].
    fn backward(
        &self,
        d_outputs: ArrayView2<T>,
        coeffs: ArrayView2<T>,
        outputs: ArrayView2<T>,
        options: &Options<T>,
    ) -> Result<Gradients<T>, Error>;

    /// [`Engine::forward`] into an array of the caller's, of any strides; returns the final state.
    ///
    /// Every element of `outputs` is written, none is read. An engine that says nothing else
    /// computes an array of its own and copies it.
    ///
    /// # Errors
    ///
    /// As [`Engine::forward`], and if `outputs` has another shape than `inputs`.
    fn forward_into(
        &self,
        inputs: ArrayView2<T>,
        coeffs: ArrayView2<T>,
        options: &Options<T>,
        mut outputs: ArrayViewMut2<T>,
    ) -> Result<Array1<T>, Error> {
        same_shape("forward", ("inputs", inputs.shape()), ("outputs", outputs.shape()))?;
        let computed = self.forward(inputs, coeffs, options)?;
        outputs.assign(&computed.outputs);
        Ok(computed.final_state)
    }

    /// [`Engine::backward`] into arrays of the caller's, of any strides; returns the gradient with
    /// respect to the initial state.
    ///
    /// Every element of `d_inputs` and `d_coeffs` is written, none is read.
    ///
    /// # Errors
    ///
    /// As [`Engine::backward`], and if `d_inputs` or `d_coeffs` has another shape than `d_outputs`.
    fn backward_into(
        &self,
        d_outputs: ArrayView2<T>,
        coeffs: ArrayView2<T>,
        outputs: ArrayView2<T>,
        options: &Options<T>,
        mut d_inputs: ArrayViewMut2<T>,
        mut d_coeffs: ArrayViewMut2<T>,
    ) -> Result<Array1<T>, Error> {
        let expected = ("d_outputs", d_outputs.shape());
        same_shape("backward", expected, ("d_inputs", d_inputs.shape()))?;
        same_shape("backward", expected, ("d_coeffs", d_coeffs.shape()))?;
        let computed = self.backward(d_outputs, coeffs, outputs, options)?;
        d_inputs.assign(&computed.d_inputs);
        d_coeffs.assign(&computed.d_coeffs);
        Ok(computed.d_initial)
    }
}
