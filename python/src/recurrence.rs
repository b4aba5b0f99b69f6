//! The recurrence, for Python.

use pyo3::prelude::*;

use crate::array::Place;
use crate::capsule::Capsule;
use crate::pass::{Arguments, Backward, Forward, Kind, Pass};
use crate::{cpu, cuda, failure};

/// Computes the outputs of the recurrence along an axis.
///
/// All arrays are DLPack capsules of one device and one type of elements; states are `float32` if
/// elements have 16 bits. On a GPU the rows of an array follow one another, the axis is the last
/// one, and `stream` is the handle of the stream. On the CPU `threads` threads compute, or all of
/// them if it is 0. With `in_order` no products of coefficients are computed: every step is taken
/// after the step before it.
#[pyfunction]
#[pyo3(signature = (
    inputs, coeffs, initial, outputs, final_state=None, *, axis, reverse, log_coeffs,
    in_order=false, stream=0, threads=0
))]
// The operation has this number of arguments.
#[allow(clippy::too_many_arguments)]
pub fn forward(
    py: Python<'_>,
    inputs: Capsule,
    coeffs: Capsule,
    initial: Option<Capsule>,
    outputs: Capsule,
    final_state: Option<Capsule>,
    axis: usize,
    reverse: bool,
    log_coeffs: bool,
    in_order: bool,
    stream: usize,
    threads: usize,
) -> PyResult<()> {
    let arguments = Arguments::new(axis, reverse, log_coeffs);
    let arguments = Arguments { in_order, stream, threads, ..arguments };
    let inputs = [inputs, coeffs];
    let pass = Pass::<Forward, 2, 1>::read(inputs, initial, [outputs], final_state, arguments)?;
    compute(py, pass)
}

/// Computes the gradients of a loss from its gradient with respect to the outputs; everything else
/// is as in `forward`.
#[pyfunction]
#[pyo3(signature = (
    d_outputs, coeffs, outputs, initial, d_inputs, d_coeffs, d_initial,
    *, axis, reverse, log_coeffs, in_order=false, stream=0, threads=0
))]
// The operation has this number of arguments.
#[allow(clippy::too_many_arguments)]
pub fn backward(
    py: Python<'_>,
    d_outputs: Capsule,
    coeffs: Capsule,
    outputs: Capsule,
    initial: Option<Capsule>,
    d_inputs: Capsule,
    d_coeffs: Capsule,
    d_initial: Capsule,
    axis: usize,
    reverse: bool,
    log_coeffs: bool,
    in_order: bool,
    stream: usize,
    threads: usize,
) -> PyResult<()> {
    let arguments = Arguments::new(axis, reverse, log_coeffs);
    let arguments = Arguments { in_order, stream, threads, ..arguments };
    let inputs = [d_outputs, coeffs, outputs];
    let (results, d_initial) = ([d_inputs, d_coeffs], Some(d_initial));
    let pass = Pass::<Backward, 3, 2>::read(inputs, initial, results, d_initial, arguments)?;
    compute(py, pass)
}

fn compute<K: Kind<I, O>, const I: usize, const O: usize>(
    py: Python<'_>,
    pass: Pass<K, I, O>,
) -> PyResult<()> {
    let place = pass.check()?;
    failure::compute(py, || match place {
        Place::Cpu => cpu::compute(pass),
        Place::Cuda(ordinal) => cuda::compute(ordinal, &pass),
    })
}
