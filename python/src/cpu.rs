//! The recurrence on the CPU, over arrays of any strides.
#![allow(unsafe_code)]

use linrec::cpu::Cpu;
use linrec::{Element, Options};
use ndarray::{ArrayD, Axis};
use num_complex::Complex;
use pyo3::PyResult;
use pyo3::exceptions::PyNotImplementedError;

use crate::array::Dtype;
use crate::pass::{Arguments, Kind, Pass};
use crate::{failure, pool};

/// The number of elements from which on several threads may compute.
const PARALLEL_ELEMENTS: usize = 1 << 16;

/// Computes a pass whose arrays have been checked: their types, and that results do not overlap
/// other arrays.
pub fn compute<K: Kind<I, O>, const I: usize, const O: usize>(pass: Pass<K, I, O>) -> PyResult<()> {
    match pass.inputs[0].dtype {
        Dtype::F32 => compute_in::<f32, K, I, O>(pass),
        Dtype::F64 => compute_in::<f64, K, I, O>(pass),
        Dtype::COMPLEX64 => compute_in::<Complex<f32>, K, I, O>(pass),
        Dtype::COMPLEX128 => compute_in::<Complex<f64>, K, I, O>(pass),
        dtype => Err(PyNotImplementedError::new_err(format!(
            "the CPU does not compute with elements of {dtype}; convert them to f32"
        ))),
    }
}

fn compute_in<T: Element, K: Kind<I, O>, const I: usize, const O: usize>(
    mut pass: Pass<K, I, O>,
) -> PyResult<()> {
    let Arguments { axis, direction, log_coeffs, in_order, threads, .. } = pass.arguments;
    // The last states are unused if the caller does not want them.
    let mut others = pass.inputs[0].shape.clone();
    others.truncate(axis);
    others.extend(pass.inputs[0].shape.iter().skip(axis + 1));
    let pass_elements = pass.inputs[0].len();
    let mut last = ArrayD::zeros(others);
    // SAFETY: (1) the arrays are of this type, on the CPU; (2) no array that is
    // written overlaps another array, and the caller lets no other thread write to the inputs.
    let inputs = pass.inputs.each_ref().map(|array| unsafe { array.view::<T>() });
    // SAFETY: as above.
    let initial = pass.initial.as_ref().map(|initial| unsafe { initial.view::<T>() }.into());
    // SAFETY: as above.
    let results = pass.results.each_mut().map(|array| unsafe { array.view_mut::<T>() });
    let states = match &mut pass.states {
        // SAFETY: as above.
        Some(states) => unsafe { states.view_mut::<T>() },
        None => last.view_mut(),
    };
    let options = Options { direction, initial, log_coeffs };
    // The library computes fewer elements on this thread. Other threads cost some microseconds.
    let threads = if pass_elements < PARALLEL_ELEMENTS { 0 } else { threads };
    if in_order {
        return Err(PyNotImplementedError::new_err("in_order=True on the CPU: not yet"));
    }
    let cpu = Cpu::new();
    pool::within(threads, || K::along(&cpu, inputs, Axis(axis), &options, results, states))
        .map_err(failure::exception)
}
