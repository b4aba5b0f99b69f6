//! The recurrence on the CPU, over arrays of any strides.
#![allow(unsafe_code)]

use linrec::{Element, Options};
use ndarray::{ArrayD, Axis, IxDyn};
use num_complex::Complex;
use pyo3::PyResult;
use pyo3::exceptions::PyNotImplementedError;

use crate::array::{Array, Dtype};
use crate::recurrence::{Asked, Backward, Forward};
use crate::{failure, pool};

/// Calls a function for the elements' type.
macro_rules! for_element {
    ($dtype:expr, $function:ident($($argument:expr),*)) => {
        match $dtype {
            Dtype::F32 => $function::<f32>($($argument),*),
            Dtype::F64 => $function::<f64>($($argument),*),
            Dtype::Complex64 => $function::<Complex<f32>>($($argument),*),
            Dtype::Complex128 => $function::<Complex<f64>>($($argument),*),
            dtype => Err(PyNotImplementedError::new_err(format!(
                "the CPU does not compute with elements of {dtype}; convert them to f32"
            ))),
        }
    };
}

/// All arrays have been checked: their types, and that results lie by themselves.
pub fn forward(arrays: Forward, asked: Asked) -> PyResult<()> {
    for_element!(arrays.inputs.dtype, forward_of(arrays, asked))
}

/// As `forward`.
pub fn backward(arrays: Backward, asked: Asked) -> PyResult<()> {
    for_element!(arrays.d_outputs.dtype, backward_of(arrays, asked))
}

fn forward_of<T: Element>(mut arrays: Forward, asked: Asked) -> PyResult<()> {
    let Forward { inputs, coeffs, initial, outputs } = &mut arrays;
    let options = options::<T>(initial.as_ref(), asked);
    let axis = Axis(asked.axis);
    let mut last = states::<T>(&inputs.shape, axis);
    // SAFETY: (1) the arrays are of this type, on the CPU; (2) none that is written lies where
    // another one does, and the caller lets nobody write to those that are read.
    let (inputs, coeffs, outputs) = unsafe { (inputs.view(), coeffs.view(), outputs.view_mut()) };
    pool::within(|| {
        linrec::forward_along_into(inputs, coeffs, axis, &options, outputs, last.view_mut())
    })
    .map_err(failure::exception)
}

fn backward_of<T: Element>(mut arrays: Backward, asked: Asked) -> PyResult<()> {
    let Backward { d_outputs, coeffs, outputs, initial, d_inputs, d_coeffs, d_initial } =
        &mut arrays;
    let options = options::<T>(initial.as_ref(), asked);
    let axis = Axis(asked.axis);
    // SAFETY: as in `forward_of`.
    let (d_outputs, coeffs, outputs) = unsafe { (d_outputs.view(), coeffs.view(), outputs.view()) };
    // SAFETY: as in `forward_of`.
    let (d_inputs, d_coeffs, d_initial) =
        unsafe { (d_inputs.view_mut(), d_coeffs.view_mut(), d_initial.view_mut()) };
    pool::within(|| {
        linrec::backward_along_into(
            d_outputs, coeffs, outputs, axis, &options, d_inputs, d_coeffs, d_initial,
        )
    })
    .map_err(failure::exception)
}

fn options<T: Element>(initial: Option<&Array>, asked: Asked) -> Options<'_, T, IxDyn> {
    let Asked { direction, log_coeffs, .. } = asked;
    // SAFETY: as in `forward_of`.
    let initial = initial.map(|initial| unsafe { initial.view::<T>() }.into());
    Options { direction, initial, log_coeffs }
}

/// Room for the last states, which nobody asks for: they are the last outputs.
fn states<T: Element>(shape: &[usize], axis: Axis) -> ArrayD<T> {
    let mut shape = shape.to_vec();
    if axis.index() < shape.len() {
        shape.remove(axis.index());
    }
    ArrayD::zeros(shape)
}
