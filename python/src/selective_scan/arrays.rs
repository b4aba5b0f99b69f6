//! The arrays of a selective scan as Python describes them, and their checks: one device, the right
//! types, and results that do not overlap other arrays. The library checks the shapes.

use linrec::kernels::ElementType;
use pyo3::exceptions::{PyNotImplementedError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::array::{Array, Dtype, Place, check_results};
use crate::capsule;

/// The arrays that both passes read, or the gradients with respect to them.
pub struct Arrays {
    pub u: Array,
    pub delta: Array,
    pub a: Array,
    pub b: Array,
    pub c: Array,
    pub d: Option<Array>,
    pub z: Option<Array>,
    pub delta_bias: Option<Array>,
    pub initial: Option<Array>,
}

/// The inputs of both passes.
pub struct Inputs {
    pub arrays: Arrays,
    pub restarts: Option<Array>,
    pub softplus: bool,
}

/// The results of the forward pass.
pub struct Results {
    pub out: Array,
    pub last: Option<Array>,
    pub checkpoints: Option<Array>,
}

/// The other arrays that the backward pass reads.
pub struct Derivatives {
    pub d_out: Array,
    pub d_last: Option<Array>,
    pub checkpoints: Array,
}

/// The stream of a GPU, and the number of threads of the CPU, 0 for all.
#[derive(Clone, Copy)]
pub struct Resources {
    pub stream: usize,
    pub threads: usize,
}

/// Arguments that are capsules, or `None`.
pub type Capsules<'py, const N: usize> = [Option<Bound<'py, PyCapsule>>; N];

/// The names of [`Arrays`] in error messages, in the order of the fields.
pub type Names = [&'static str; 9];
pub const INPUTS: Names = ["u", "delta", "A", "B", "C", "D", "z", "delta_bias", "initial"];
pub const GRADIENTS: Names =
    ["d_u", "d_delta", "d_A", "d_B", "d_C", "d_D", "d_z", "d_delta_bias", "d_initial"];

pub fn required(name: &'static str, capsule: &Option<Bound<'_, PyCapsule>>) -> PyResult<Array> {
    match capsule {
        Some(capsule) => capsule::read(name, capsule),
        None => Err(PyTypeError::new_err(format!("{name} is missing"))),
    }
}

impl Arrays {
    pub fn read(names: Names, capsules: &Capsules<'_, 9>) -> PyResult<Arrays> {
        let [u, delta, a, b, c, d, z, delta_bias, initial] = capsules;
        let optional =
            |number: usize, capsule: &Option<Bound<'_, PyCapsule>>| -> PyResult<Option<Array>> {
                capsule::read_optional(names[number], capsule.as_ref())
            };
        Ok(Arrays {
            u: required(names[0], u)?,
            delta: required(names[1], delta)?,
            a: required(names[2], a)?,
            b: required(names[3], b)?.in_groups(),
            c: required(names[4], c)?.in_groups(),
            d: optional(5, d)?,
            z: optional(6, z)?,
            delta_bias: optional(7, delta_bias)?,
            initial: optional(8, initial)?,
        })
    }

    pub fn all(&self) -> Vec<&Array> {
        let Arrays { u, delta, a, b, c, d, z, delta_bias, initial } = self;
        let optional = d.iter().chain(z).chain(delta_bias).chain(initial);
        [u, delta, a, b, c].into_iter().chain(optional).collect()
    }
}

impl Inputs {
    pub fn read(
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
    pub fn check(&self, others: &[&Array], results: &[&Array]) -> PyResult<Place> {
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
    pub fn element(&self) -> PyResult<ElementType> {
        match self.arrays.u.dtype {
            Dtype::Number(element) => Ok(element),
            Dtype::Flag => Err(unsupported(self.arrays.u.dtype)),
        }
    }
}

pub fn unsupported(dtype: Dtype) -> PyErr {
    PyNotImplementedError::new_err(format!("no selective scan has elements of {dtype} here"))
}
