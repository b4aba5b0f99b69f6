//! Mamba's selective scan, for Python.
//!
//! Both passes read the same nine arrays, and the backward pass writes a gradient for each
//! ([`Arrays`]). The functions here check the arrays, and [`cuda`] and [`cpu`] lend them to the
//! library. `python/tests/test_selective_scan.py` and `test_cuda.py` test the functions.

mod arrays;
mod cpu;
mod cuda;

use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::array::Place;
use crate::{capsule, failure};
use arrays::{Arrays, Capsules, Derivatives, GRADIENTS, Inputs, Resources, Results, required};

/// Computes the outputs and, if they are requested, the last states and the checkpoints for the
/// backward pass.
///
/// `inputs` are u, delta, A, B, C, D, z, delta_bias and the initial states; `results` are the
/// outputs, the last states and the checkpoints. Arrays with an axis of time are `[batch, channels,
/// length]`, varying B and C `[batch, groups, states, length]` or `[batch, states, length]`, of one
/// type. A and constant B and C are `[channels, states]`, D and the bias `[channels]`, states
/// `[batch, channels, states]`, all of them `float32`, or `float64` if u is. `restarts` are flags
/// `[batch, length]`.
#[pyfunction]
#[pyo3(signature = (inputs, restarts, softplus, results, *, stream=0, threads=0))]
pub fn selective_scan_forward(
    py: Python<'_>,
    inputs: Capsules<'_, 9>,
    restarts: Option<Bound<'_, PyCapsule>>,
    softplus: bool,
    results: Capsules<'_, 3>,
    stream: usize,
    threads: usize,
) -> PyResult<()> {
    let inputs = Inputs::read(&inputs, restarts.as_ref(), softplus)?;
    let [out, last, checkpoints] = &results;
    let results = Results {
        out: required("out", out)?,
        last: capsule::read_optional("last", last.as_ref())?,
        checkpoints: capsule::read_optional("checkpoints", checkpoints.as_ref())?,
    };
    let written: Vec<_> =
        [&results.out].into_iter().chain(&results.last).chain(&results.checkpoints).collect();
    let place = inputs.check(&[], &written)?;
    let resources = Resources { stream, threads };
    failure::compute(py, || match place {
        Place::Cpu => cpu::forward(&inputs, results, resources),
        Place::Cuda(ordinal) => cuda::forward(ordinal, &inputs, &results, resources),
    })
}

/// Computes the gradients, each of the shape of its array. `given` are the gradients of the outputs
/// and of the last states, and the checkpoints; `gradients` are in the order of `inputs`.
#[pyfunction]
#[pyo3(signature = (inputs, restarts, softplus, given, gradients, *, stream=0, threads=0))]
// The operation has this number of arguments.
#[allow(clippy::too_many_arguments)]
pub fn selective_scan_backward(
    py: Python<'_>,
    inputs: Capsules<'_, 9>,
    restarts: Option<Bound<'_, PyCapsule>>,
    softplus: bool,
    given: Capsules<'_, 3>,
    gradients: Capsules<'_, 9>,
    stream: usize,
    threads: usize,
) -> PyResult<()> {
    let inputs = Inputs::read(&inputs, restarts.as_ref(), softplus)?;
    let [d_out, d_last, checkpoints] = &given;
    let given = Derivatives {
        d_out: required("d_out", d_out)?,
        d_last: capsule::read_optional("d_last", d_last.as_ref())?,
        checkpoints: required("checkpoints", checkpoints)?,
    };
    let gradients = Arrays::read(GRADIENTS, &gradients)?;
    let read: Vec<_> =
        [&given.d_out, &given.checkpoints].into_iter().chain(&given.d_last).collect();
    let place = inputs.check(&read, &gradients.all())?;
    let resources = Resources { stream, threads };
    failure::compute(py, || match place {
        Place::Cpu => cpu::backward(&inputs, &given, gradients, resources),
        Place::Cuda(ordinal) => cuda::backward(ordinal, &inputs, &given, &gradients, resources),
    })
}
