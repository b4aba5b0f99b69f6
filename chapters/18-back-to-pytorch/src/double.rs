//! The gradients of the gradients.
//!
//! The backward pass is a function like any other: it makes `d_inputs` and `d_coeffs` from
//! `d_outputs`, `coeffs` and `outputs`. Second derivatives are *its* gradients.

use ch04_gradient::shift::shift;
use linrec::{Direction, Error, Options, forward};
use ndarray::{Array1, Array2, ArrayView2};

/// The gradients with respect to a backward pass's arguments, `[num_seqs, seq_len]` each.
#[derive(Debug, Clone, PartialEq)]
pub struct Second {
    /// With respect to `d_outputs`.
    pub of_d_outputs: Array2<f64>,
    /// With respect to the coefficients, as far as the backward pass itself used them.
    pub of_coeffs: Array2<f64>,
    /// With respect to the outputs.
    pub of_outputs: Array2<f64>,
}

/// The arguments of a double backward pass, `[num_seqs, seq_len]` each.
#[derive(Debug, Clone, Copy)]
pub struct Arguments<'a> {
    /// The coefficients.
    pub coeffs: ArrayView2<'a, f64>,
    /// The outputs of the forward pass.
    pub outputs: ArrayView2<'a, f64>,
    /// The result of the backward pass: `d_inputs`.
    pub d_inputs: ArrayView2<'a, f64>,
    /// The gradient of the loss with respect to `d_inputs`.
    pub of_d_inputs: ArrayView2<'a, f64>,
    /// The gradient of the loss with respect to `d_coeffs`.
    pub of_d_coeffs: ArrayView2<'a, f64>,
}

/// Computes the gradients with respect to the arguments of the backward pass of a recurrence
/// without initial state.
///
/// # Errors
///
/// Returns an error if the shapes differ.
// ANCHOR: double
pub fn double_backward(arguments: &Arguments) -> Result<Second, Error> {
    let Arguments { coeffs, outputs, d_inputs, of_d_inputs, of_d_coeffs } = *arguments;
    let arrays = [("outputs", outputs), ("d_inputs", d_inputs)];
    let gradients = [("of_d_inputs", of_d_inputs), ("of_d_coeffs", of_d_coeffs)];
    for (name, array) in arrays.into_iter().chain(gradients) {
        let (coeffs, array) = (coeffs.shape(), array.shape());
        linrec::validate::same_shape("double_backward", ("coeffs", coeffs), (name, array))?;
    }
    let nothing = Array1::zeros(coeffs.nrows());
    let before = |array: ArrayView2<f64>| shift(array, Direction::Forward, nothing.view());

    // d_inputs[l] counts itself, and as a factor of d_coeffs[l] = d_inputs[l] · y[l-1].
    let inputs = &of_d_inputs + &(&of_d_coeffs * &before(outputs)?);
    // d_inputs is a recurrence from the end, so its gradient is a forward pass.
    let of_d_outputs = forward(inputs.view(), coeffs, &Options::default())?.outputs;
    let of_coeffs = &d_inputs * &before(of_d_outputs.view())?;
    let of_states = &of_d_coeffs * &d_inputs;
    let of_outputs = shift(of_states.view(), Direction::Reverse, nothing.view())?;
    Ok(Second { of_d_outputs, of_coeffs, of_outputs })
}
// ANCHOR_END: double
