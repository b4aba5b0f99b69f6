//! The interface that every way of computing the recurrence has.

use ndarray::{Array1, Array2, ArrayView2};

use crate::{Element, Error, Options};

/// The result of a forward pass.
#[derive(Debug, Clone, PartialEq)]
pub struct Outputs<T> {
    /// `y`, of shape `[num_seqs, seq_len]`.
    pub outputs: Array2<T>,
    /// The last state computed, one per sequence: `y_{L-1}`, or `y_0` in reverse. For sequences of
    /// length zero it is the initial state.
    pub final_state: Array1<T>,
}

/// The gradients of a loss, given its gradient with respect to the outputs.
///
/// For complex elements they follow PyTorch's convention (the conjugate of the derivative that
/// treats the loss as holomorphic), so that a step against the gradient reduces a real loss.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradients<T> {
    /// With respect to the inputs, of shape `[num_seqs, seq_len]`.
    pub d_inputs: Array2<T>,
    /// With respect to the coefficients as they were given (`ln c` with
    /// [`Options::log_coeffs`]), of shape `[num_seqs, seq_len]`.
    pub d_coeffs: Array2<T>,
    /// With respect to the initial state, of shape `[num_seqs]`.
    pub d_initial: Array1<T>,
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
}
