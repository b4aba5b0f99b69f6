//! Solutions to the exercises that ask for code.

use ch04_gradient::shift::shift;
use linrec::{Direction, Error, Options, backward, forward};
use ndarray::{Array1, Array2, ArrayView2, s};

use crate::layout::Layout;

/// Returns a layout that the check by strides refuses although no two of its indices share an
/// element: steps of 2 and of 3 overlap in range but never meet.
// ANCHOR: refused
pub fn refused_in_vain() -> Layout {
    Layout { shape: vec![2, 3], strides: vec![3, 2], offset: 0 }
}
// ANCHOR_END: refused

/// Computes the change of the outputs from the changes of inputs and coefficients: forward mode.
///
/// # Errors
///
/// Returns an error if the shapes differ.
// ANCHOR: tangent
pub fn tangent(
    coeffs: ArrayView2<f64>,
    outputs: ArrayView2<f64>,
    inputs_change: ArrayView2<f64>,
    coeffs_change: ArrayView2<f64>,
) -> Result<Array2<f64>, Error> {
    let nothing = Array1::zeros(coeffs.nrows());
    let before = shift(outputs, Direction::Forward, nothing.view())?;
    let inputs = &inputs_change + &(&coeffs_change * &before);
    Ok(forward(inputs.view(), coeffs, &Options::default())?.outputs)
}
// ANCHOR_END: tangent

/// Computes the outputs in two halves, where the second continues from the state of the first, and
/// the gradient with respect to the inputs, back through both.
///
/// # Errors
///
/// Returns an error if the shapes differ.
// ANCHOR: halves
pub fn in_halves(
    inputs: ArrayView2<f64>,
    coeffs: ArrayView2<f64>,
    d_outputs: ArrayView2<f64>,
) -> Result<(Array2<f64>, Array2<f64>), Error> {
    let half = inputs.ncols() / 2;
    let (x, c, g) = (
        inputs.split_at(ndarray::Axis(1), half),
        coeffs.split_at(ndarray::Axis(1), half),
        d_outputs.split_at(ndarray::Axis(1), half),
    );
    let first = forward(x.0, c.0, &Options::default())?;
    let going_on = Options { initial: Some(first.final_state.view().into()), ..Options::default() };
    let second = forward(x.1, c.1, &going_on)?;
    let back = backward(g.1, c.1, second.outputs.view(), &going_on)?;
    // The second half's gradient of the state is a gradient of the first half's last output.
    let mut g_first = g.0.to_owned();
    if half > 0 {
        let mut last = g_first.column_mut(half - 1);
        last += &back.d_initial;
    }
    let front = backward(g_first.view(), c.0, first.outputs.view(), &Options::default())?;
    let mut outputs = Array2::zeros(inputs.raw_dim());
    outputs.slice_mut(s![.., ..half]).assign(&first.outputs);
    outputs.slice_mut(s![.., half..]).assign(&second.outputs);
    let mut d_inputs = Array2::zeros(inputs.raw_dim());
    d_inputs.slice_mut(s![.., ..half]).assign(&front.d_inputs);
    d_inputs.slice_mut(s![.., half..]).assign(&back.d_inputs);
    Ok((outputs, d_inputs))
}
// ANCHOR_END: halves
