//! The recurrence, for Python.

use linrec::Direction;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::array::{Array, Place, check_results};
use crate::{capsule, cpu, cuda, failure};

/// What a pass is asked for, beside its arrays.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    pub axis: usize,
    pub direction: Direction,
    pub log_coeffs: bool,
    pub stream: usize,
}

/// The arrays of a forward pass.
pub struct Forward {
    pub inputs: Array,
    pub coeffs: Array,
    pub initial: Option<Array>,
    pub outputs: Array,
}

/// The arrays of a backward pass.
pub struct Backward {
    pub d_outputs: Array,
    pub coeffs: Array,
    pub outputs: Array,
    pub initial: Option<Array>,
    pub d_inputs: Array,
    pub d_coeffs: Array,
    pub d_initial: Array,
}

/// Computes the outputs of the recurrence along an axis.
///
/// All arrays are DLPack capsules of one device and one type of elements; those of states are
/// `float32` where elements have 16 bits. On a GPU they lie row after row, the axis is the last
/// one, and `stream` is the handle of the stream.
#[pyfunction]
#[pyo3(signature = (inputs, coeffs, initial, outputs, *, axis, reverse, log_coeffs, stream=0))]
// As many arguments as the operation has.
#[allow(clippy::too_many_arguments)]
pub fn forward(
    py: Python<'_>,
    inputs: &Bound<'_, PyCapsule>,
    coeffs: &Bound<'_, PyCapsule>,
    initial: Option<&Bound<'_, PyCapsule>>,
    outputs: &Bound<'_, PyCapsule>,
    axis: usize,
    reverse: bool,
    log_coeffs: bool,
    stream: usize,
) -> PyResult<()> {
    let arrays = Forward {
        inputs: capsule::read("inputs", inputs)?,
        coeffs: capsule::read("coeffs", coeffs)?,
        initial: capsule::read_optional("initial", initial)?,
        outputs: capsule::read("outputs", outputs)?,
    };
    let Forward { inputs, coeffs, initial, outputs } = &arrays;
    let read: Vec<_> = [inputs, coeffs].into_iter().chain(initial).collect();
    let place = check(&[inputs, coeffs, outputs], initial.iter())?;
    check_results(&read, &[outputs])?;
    let direction = if reverse { Direction::Reverse } else { Direction::Forward };
    let asked = Asked { axis, direction, log_coeffs, stream };
    failure::compute(py, || match place {
        Place::Cpu => cpu::forward(arrays, asked),
        Place::Cuda(ordinal) => cuda::forward(ordinal, &arrays, asked),
    })
}

/// Computes the gradients of a loss from that with respect to the outputs; otherwise as `forward`.
#[pyfunction]
#[pyo3(signature = (
    d_outputs, coeffs, outputs, initial, d_inputs, d_coeffs, d_initial, *, axis, reverse, log_coeffs, stream=0
))]
// As many arguments as the operation has.
#[allow(clippy::too_many_arguments)]
pub fn backward(
    py: Python<'_>,
    d_outputs: &Bound<'_, PyCapsule>,
    coeffs: &Bound<'_, PyCapsule>,
    outputs: &Bound<'_, PyCapsule>,
    initial: Option<&Bound<'_, PyCapsule>>,
    d_inputs: &Bound<'_, PyCapsule>,
    d_coeffs: &Bound<'_, PyCapsule>,
    d_initial: &Bound<'_, PyCapsule>,
    axis: usize,
    reverse: bool,
    log_coeffs: bool,
    stream: usize,
) -> PyResult<()> {
    let arrays = Backward {
        d_outputs: capsule::read("d_outputs", d_outputs)?,
        coeffs: capsule::read("coeffs", coeffs)?,
        outputs: capsule::read("outputs", outputs)?,
        initial: capsule::read_optional("initial", initial)?,
        d_inputs: capsule::read("d_inputs", d_inputs)?,
        d_coeffs: capsule::read("d_coeffs", d_coeffs)?,
        d_initial: capsule::read("d_initial", d_initial)?,
    };
    let Backward { d_outputs, coeffs, outputs, initial, d_inputs, d_coeffs, d_initial } = &arrays;
    let read: Vec<_> = [d_outputs, coeffs, outputs].into_iter().chain(initial).collect();
    let states = initial.iter().chain([d_initial]);
    let place = check(&[d_outputs, coeffs, outputs, d_inputs, d_coeffs], states)?;
    check_results(&read, &[d_inputs, d_coeffs, d_initial])?;
    let direction = if reverse { Direction::Reverse } else { Direction::Forward };
    let asked = Asked { axis, direction, log_coeffs, stream };
    failure::compute(py, || match place {
        Place::Cpu => cpu::backward(arrays, asked),
        Place::Cuda(ordinal) => cuda::backward(ordinal, &arrays, asked),
    })
}

/// Where all of the arrays are; an exception unless they are on one device and of the types that
/// they have to be of.
pub fn check<'a>(arrays: &[&Array], states: impl Iterator<Item = &'a Array>) -> PyResult<Place> {
    let first = arrays[0];
    let accumulator = first.dtype.accumulator();
    let all = arrays.iter().map(|array| (*array, first.dtype));
    for (array, dtype) in all.chain(states.map(|state| (state, accumulator))) {
        if array.dtype != dtype {
            let message = format!(
                "{} is of {}, and {} of {}; it has to be of {dtype}",
                first.name, first.dtype, array.name, array.dtype
            );
            return Err(PyTypeError::new_err(message));
        }
        if array.place != first.place {
            let message = format!(
                "{} is on {:?}, and {} on {:?}",
                first.name, first.place, array.name, array.place
            );
            return Err(PyValueError::new_err(message));
        }
    }
    Ok(first.place)
}
