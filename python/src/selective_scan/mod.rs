//! Mamba's selective scan, for Python.
//!
//! Both passes read the same nine arrays, and the backward pass writes a gradient for each
//! ([`Arrays`]). The functions here check the arrays: one device, the right types, results that do
//! not overlap. [`cuda`] and [`cpu`] lend them to the library, which checks the shapes.
//! `python/tests/test_selective_scan.py` and `test_cuda.py` test the functions.

mod cpu;
mod cuda;

use linrec::kernels::ElementType;
use pyo3::exceptions::{PyNotImplementedError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::array::{Array, Dtype, Place, check_results};
use crate::{capsule, failure};

/// The arrays that both passes read, or the gradients with respect to them.
struct Arrays {
    u: Array,
    delta: Array,
    a: Array,
    b: Array,
    c: Array,
    d: Option<Array>,
    z: Option<Array>,
    delta_bias: Option<Array>,
    initial: Option<Array>,
}

/// The inputs of both passes.
struct Inputs {
    arrays: Arrays,
    restarts: Option<Array>,
    softplus: bool,
}

/// The results of the forward pass.
struct Results {
    out: Array,
    last: Option<Array>,
    checkpoints: Option<Array>,
}

/// The other arrays that the backward pass reads.
struct Derivatives {
    d_out: Array,
    d_last: Option<Array>,
    checkpoints: Array,
}

/// The stream of a GPU, and the number of threads of the CPU, 0 for all.
#[derive(Clone, Copy)]
struct Resources {
    stream: usize,
    threads: usize,
}

/// Arguments that are capsules, or `None`.
type Capsules<'py, const N: usize> = [Option<Bound<'py, PyCapsule>>; N];

/// The names of [`Arrays`] in error messages, in the order of the fields.
type Names = [&'static str; 9];
const INPUTS: Names = ["u", "delta", "A", "B", "C", "D", "z", "delta_bias", "initial"];
const GRADIENTS: Names =
    ["d_u", "d_delta", "d_A", "d_B", "d_C", "d_D", "d_z", "d_delta_bias", "d_initial"];

/// Computes the outputs and, if they are requested, the last states and the checkpoints for the
/// backward pass.
///
/// `inputs` are u, delta, A, B, C, D, z, delta_bias and the initial states; `results` are the
/// outputs, the last states and the checkpoints. Arrays with an axis of time are `[batch, channels,
/// length]`, varying B and C `[batch, groups, states, length]`, of one type. A and constant B and C
/// are `[channels, states]`, D and the bias `[channels]`, states `[batch, channels, states]`, all of
/// them `float32`, or `float64` if u is. `restarts` are flags `[batch, length]`.
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

fn required(name: &'static str, capsule: &Option<Bound<'_, PyCapsule>>) -> PyResult<Array> {
    match capsule {
        Some(capsule) => capsule::read(name, capsule),
        None => Err(PyTypeError::new_err(format!("{name} is missing"))),
    }
}

impl Arrays {
    fn read(names: Names, capsules: &Capsules<'_, 9>) -> PyResult<Arrays> {
        let [u, delta, a, b, c, d, z, delta_bias, initial] = capsules;
        let optional =
            |number: usize, capsule: &Option<Bound<'_, PyCapsule>>| -> PyResult<Option<Array>> {
                capsule::read_optional(names[number], capsule.as_ref())
            };
        Ok(Arrays {
            u: required(names[0], u)?,
            delta: required(names[1], delta)?,
            a: required(names[2], a)?,
            b: required(names[3], b)?,
            c: required(names[4], c)?,
            d: optional(5, d)?,
            z: optional(6, z)?,
            delta_bias: optional(7, delta_bias)?,
            initial: optional(8, initial)?,
        })
    }

    fn all(&self) -> Vec<&Array> {
        let Arrays { u, delta, a, b, c, d, z, delta_bias, initial } = self;
        let optional = d.iter().chain(z).chain(delta_bias).chain(initial);
        [u, delta, a, b, c].into_iter().chain(optional).collect()
    }
}

impl Inputs {
    fn read(
        arrays: &Capsules<'_, 9>,
        restarts: Option<&Bound<'_, PyCapsule>>,
        softplus: bool,
    ) -> PyResult<Inputs> {
        let arrays = Arrays::read(INPUTS, arrays)?;
        Ok(Inputs { arrays, restarts: capsule::read_optional("restarts", restarts)?, softplus })
    }

    /// Returns the device that all arrays are on. Checks that arrays with an axis of time have the
    /// type of `u`, all others the type in which it is computed, and that no result overlaps
    /// another array.
    fn check(&self, others: &[&Array], results: &[&Array]) -> PyResult<Place> {
        let mut read = self.arrays.all();
        read.extend(others);
        let u = &self.arrays.u;
        for array in read.iter().chain(results) {
            let in_time = matches!(
                array.name,
                "u" | "delta" | "z" | "out" | "d_out" | "d_u" | "d_delta" | "d_z"
            ) || array.shape.len() == 4 && array.name != "checkpoints";
            let dtype = if in_time { u.dtype } else { u.dtype.accumulator() };
            if array.dtype != dtype {
                return Err(PyTypeError::new_err(format!(
                    "u is of {}, and {} of {}; it has to be of {dtype}",
                    u.dtype, array.name, array.dtype
                )));
            }
        }
        if let Some(restarts) = self.restarts.as_ref().filter(|array| array.dtype != Dtype::Flag) {
            return Err(PyTypeError::new_err(format!("restarts are of {}", restarts.dtype)));
        }
        read.extend(&self.restarts);
        if let Some(array) = read.iter().chain(results).find(|array| array.place != u.place) {
            let message = format!("{} is on {:?}, and u on {:?}", array.name, array.place, u.place);
            return Err(PyValueError::new_err(message));
        }
        check_results(&read, results)?;
        Ok(u.place)
    }

    /// Returns the type of the numbers, or an exception for flags.
    fn element(&self) -> PyResult<ElementType> {
        match self.arrays.u.dtype {
            Dtype::Number(element) => Ok(element),
            Dtype::Flag => Err(unsupported(self.arrays.u.dtype)),
        }
    }
}

fn unsupported(dtype: Dtype) -> PyErr {
    PyNotImplementedError::new_err(format!("no selective scan has elements of {dtype} here"))
}
