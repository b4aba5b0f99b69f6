//! Mamba's selective scan on a GPU, for Python.
//!
//! Both passes read the same eight arrays, and the backward pass writes a gradient for each
//! ([`Arrays`]). The functions check the arrays (one GPU, the right types, results that do not
//! overlap), lend them to the library as buffers of the caller's memory, and pass them to
//! `linrec::device::SelectiveScan`. `python/tests/test_selective_scan.py` tests the functions.
//! Arrays on the CPU never come here: the package composes their scan of recurrences.

use linrec::device::{
    Buffer, Exponential, ScanBackwardOptions, ScanCoupling, ScanCouplingGradient,
    ScanForwardOptions, ScanGradients, ScanInputs, ScanShape, SelectiveScan, Storage,
};
use linrec::kernels::ElementType;
use pyo3::exceptions::{PyNotImplementedError, PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::array::{Array, Dtype, Place, check_results};
use crate::capsule::{Capsule, read_optional as optional};
use crate::cuda::{Lent, cached};
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
}

/// Computes the outputs and, if they are requested, the last states and the checkpoints for the
/// backward pass.
///
/// Arrays with an axis of time are `[batch, channels, length]`, varying B and C `[batch, groups,
/// states, length]`. A and constant B and C are `[channels, states]`, D and the bias `[channels]`,
/// states `[batch, channels, states]`, all of them `float32`.
#[pyfunction]
#[pyo3(signature = (u, delta, a, b, c, d, z, delta_bias, softplus, out, last, checkpoints, *, stream))]
// The operation has this number of arguments.
#[allow(clippy::too_many_arguments)]
pub fn selective_scan_forward(
    py: Python<'_>,
    u: Capsule,
    delta: Capsule,
    a: Capsule,
    b: Capsule,
    c: Capsule,
    d: Option<Capsule>,
    z: Option<Capsule>,
    delta_bias: Option<Capsule>,
    softplus: bool,
    out: Capsule,
    last: Option<Capsule>,
    checkpoints: Option<Capsule>,
    stream: usize,
) -> PyResult<()> {
    let inputs = Arrays::read(INPUTS, [u, delta, a, b, c], [d, z, delta_bias])?;
    let out = capsule::read("out", out)?;
    let last = optional("last", last)?;
    let checkpoints = optional("checkpoints", checkpoints)?;
    let results: Vec<_> = [&out].into_iter().chain(&last).chain(&checkpoints).collect();
    let read = inputs.all();
    check_results(&read, &results)?;
    let place = (check(inputs.u.dtype, read.into_iter().chain(results))?, stream);
    let results = (&out, &last, &checkpoints);
    failure::compute(py, || match inputs.u.dtype {
        Dtype::F32 => forward::<f32>(place, &inputs, softplus, results),
        Dtype::Bf16 => forward::<Bf16>(place, &inputs, softplus, results),
        Dtype::F16 => forward::<F16>(place, &inputs, softplus, results),
        dtype => Err(unsupported(dtype)),
    })
}

/// Computes the gradients; each has the shape of its array.
#[pyfunction]
#[pyo3(signature = (
    u, delta, a, b, c, d, z, delta_bias, softplus, d_out, d_last, checkpoints,
    d_u, d_delta, d_a, d_b, d_c, d_d, d_z, d_delta_bias, *, stream
))]
// The operation has this number of arguments.
#[allow(clippy::too_many_arguments)]
pub fn selective_scan_backward(
    py: Python<'_>,
    u: Capsule,
    delta: Capsule,
    a: Capsule,
    b: Capsule,
    c: Capsule,
    d: Option<Capsule>,
    z: Option<Capsule>,
    delta_bias: Option<Capsule>,
    softplus: bool,
    d_out: Capsule,
    d_last: Option<Capsule>,
    checkpoints: Capsule,
    d_u: Capsule,
    d_delta: Capsule,
    d_a: Capsule,
    d_b: Capsule,
    d_c: Capsule,
    d_d: Option<Capsule>,
    d_z: Option<Capsule>,
    d_delta_bias: Option<Capsule>,
    stream: usize,
) -> PyResult<()> {
    let inputs = Arrays::read(INPUTS, [u, delta, a, b, c], [d, z, delta_bias])?;
    let d_out = capsule::read("d_out", d_out)?;
    let d_last = optional("d_last", d_last)?;
    let checkpoints = capsule::read("checkpoints", checkpoints)?;
    let results = Arrays::read(GRADIENTS, [d_u, d_delta, d_a, d_b, d_c], [d_d, d_z, d_delta_bias])?;
    let others = [&d_out, &checkpoints].into_iter().chain(&d_last);
    let read: Vec<_> = inputs.all().into_iter().chain(others).collect();
    check_results(&read, &results.all())?;
    let place = (check(inputs.u.dtype, read.into_iter().chain(results.all()))?, stream);
    let others = (&d_out, &d_last, &checkpoints);
    failure::compute(py, || match inputs.u.dtype {
        Dtype::F32 => backward::<f32>(place, &inputs, softplus, others, &results),
        Dtype::Bf16 => backward::<Bf16>(place, &inputs, softplus, others, &results),
        Dtype::F16 => backward::<F16>(place, &inputs, softplus, others, &results),
        dtype => Err(unsupported(dtype)),
    })
}

type Bf16 = half::bf16;
type F16 = half::f16;

fn forward<S: Storage<Accum = f32>>(
    (ordinal, stream): (usize, usize),
    inputs: &Arrays,
    softplus: bool,
    (out, last, checkpoints): (&Array, &Option<Array>, &Option<Array>),
) -> PyResult<()> {
    let place = Lent::new(ordinal, stream)?;
    let shape = inputs.shape()?;
    let buffers = Buffers::<S>::of(&place, inputs)?;
    let mut out = place.buffer::<S>(out)?;
    let mut last = place.optional::<f32>(last)?;
    let mut checkpoints = place.optional::<f32>(checkpoints)?;
    let options = ScanForwardOptions {
        last: last.as_mut(),
        checkpoints: checkpoints.as_mut(),
        chunks: None,
        stream: Some(&place.stream),
    };
    let scan = scan::<S>(&place)?;
    let launched = scan.forward_into(&buffers.inputs(softplus), &mut out, shape, options);
    launched.map(drop).map_err(failure::exception)
}

fn backward<S: Storage<Accum = f32>>(
    (ordinal, stream): (usize, usize),
    inputs: &Arrays,
    softplus: bool,
    (d_out, d_last, checkpoints): (&Array, &Option<Array>, &Array),
    results: &Arrays,
) -> PyResult<()> {
    let place = Lent::new(ordinal, stream)?;
    let shape = inputs.shape()?;
    let buffers = Buffers::<S>::of(&place, inputs)?;
    let d_out = place.buffer::<S>(d_out)?;
    let (d_last, checkpoints) = (place.optional(d_last)?, place.buffer(checkpoints)?);
    let mut results = Buffers::<S>::of(&place, results)?;
    let options = ScanBackwardOptions {
        d_last: d_last.as_ref(),
        stream: Some(&place.stream),
        ..Default::default()
    };
    let (scan, all) = (scan::<S>(&place)?, buffers.inputs(softplus));
    let launched =
        scan.backward_into(&all, &d_out, &checkpoints, results.gradients(), shape, options);
    launched.map(drop).map_err(failure::exception)
}

/// Returns the selective scan with the GPU's own exponential, as everywhere in PyTorch.
fn scan<S: Storage<Accum = f32>>(place: &Lent) -> PyResult<SelectiveScan<S>> {
    cached(&place.device, S::ELEMENT, || Ok(SelectiveScan::new(&place.device, Exponential::Fast)))
}

/// The names of [`Arrays`] in error messages, in the order of the fields.
type Names = [&'static str; 8];
const INPUTS: Names = ["u", "delta", "A", "B", "C", "D", "z", "delta_bias"];
const GRADIENTS: Names = ["d_u", "d_delta", "d_A", "d_B", "d_C", "d_D", "d_z", "d_delta_bias"];

impl Arrays {
    fn read(
        names: Names,
        [u, delta, a, b, c]: [Capsule; 5],
        [d, z, delta_bias]: [Option<Capsule>; 3],
    ) -> PyResult<Arrays> {
        Ok(Arrays {
            u: capsule::read(names[0], u)?,
            delta: capsule::read(names[1], delta)?,
            a: capsule::read(names[2], a)?,
            b: capsule::read(names[3], b)?,
            c: capsule::read(names[4], c)?,
            d: optional(names[5], d)?,
            z: optional(names[6], z)?,
            delta_bias: optional(names[7], delta_bias)?,
        })
    }

    fn all(&self) -> Vec<&Array> {
        let Arrays { u, delta, a, b, c, d, z, delta_bias } = self;
        [u, delta, a, b, c].into_iter().chain(d).chain(z).chain(delta_bias).collect()
    }

    fn shape(&self) -> PyResult<ScanShape> {
        let (&[batch, channels, seq_len], &[_, states]) = (&*self.u.shape, &*self.a.shape) else {
            return Err(self.u.refused(&format!("does not fit A {:?}", self.a.shape)));
        };
        let groups = [&self.b, &self.c].into_iter().find(|coupling| coupling.shape.len() == 4);
        let groups = groups.map_or(1, |coupling| coupling.shape[1]);
        Ok(ScanShape { batch, channels, seq_len, states, groups })
    }
}

/// The arrays as buffers of the device.
struct Buffers<S> {
    u: Buffer<S>,
    delta: Buffer<S>,
    a: Buffer<f32>,
    b: Coupling<S>,
    c: Coupling<S>,
    d: Option<Buffer<f32>>,
    z: Option<Buffer<S>>,
    delta_bias: Option<Buffer<f32>>,
}

impl<S: Storage> Buffers<S> {
    fn of(place: &Lent, arrays: &Arrays) -> PyResult<Buffers<S>> {
        Ok(Buffers {
            u: place.buffer(&arrays.u)?,
            delta: place.buffer(&arrays.delta)?,
            a: place.buffer(&arrays.a)?,
            b: Coupling::of(place, &arrays.b)?,
            c: Coupling::of(place, &arrays.c)?,
            d: place.optional(&arrays.d)?,
            z: place.optional(&arrays.z)?,
            delta_bias: place.optional(&arrays.delta_bias)?,
        })
    }

    fn inputs(&self, softplus: bool) -> ScanInputs<'_, S> {
        ScanInputs {
            u: &self.u,
            delta: &self.delta,
            a: &self.a,
            b: self.b.read(),
            c: self.c.read(),
            d: self.d.as_ref(),
            z: self.z.as_ref(),
            delta_bias: self.delta_bias.as_ref(),
            softplus,
            initial: None,
            restarts: None,
        }
    }

    fn gradients(&mut self) -> ScanGradients<'_, S> {
        ScanGradients {
            u: &mut self.u,
            delta: &mut self.delta,
            a: &mut self.a,
            b: self.b.written(),
            c: self.c.written(),
            d: self.d.as_mut(),
            z: self.z.as_mut(),
            delta_bias: self.delta_bias.as_mut(),
            initial: None,
        }
    }
}

/// B or C, or its gradient.
enum Coupling<S> {
    Varying(Buffer<S>),
    Constant(Buffer<f32>),
}

impl<S: Storage> Coupling<S> {
    fn of(place: &Lent, array: &Array) -> PyResult<Coupling<S>> {
        match array.shape.len() {
            4 => place.buffer(array).map(Coupling::Varying),
            _ => place.buffer(array).map(Coupling::Constant),
        }
    }

    fn read(&self) -> ScanCoupling<'_, S> {
        match self {
            Coupling::Varying(buffer) => ScanCoupling::Varying(buffer),
            Coupling::Constant(buffer) => ScanCoupling::Constant(buffer),
        }
    }

    fn written(&mut self) -> ScanCouplingGradient<'_, S> {
        match self {
            Coupling::Varying(buffer) => ScanCouplingGradient::Varying(buffer),
            Coupling::Constant(buffer) => ScanCouplingGradient::Constant(buffer),
        }
    }
}

/// Returns the GPU that all arrays are on. Checks that arrays with an axis of time have the type of
/// `u`, and all others `float32`.
fn check<'a>(stored: ElementType, arrays: impl Iterator<Item = &'a Array>) -> PyResult<usize> {
    let mut place = None;
    for array in arrays {
        let in_time =
            matches!(array.name, "u" | "delta" | "z" | "out" | "d_out" | "d_u" | "d_delta" | "d_z")
                || array.shape.len() == 4 && array.name != "checkpoints";
        let dtype = if in_time { stored } else { Dtype::F32 };
        if array.dtype != dtype {
            return Err(PyTypeError::new_err(format!(
                "u is of {stored}, and {} of {}; it has to be of {dtype}",
                array.name, array.dtype
            )));
        }
        if *place.get_or_insert(array.place) != array.place {
            let message = format!("{} is on {:?}, and u is not", array.name, array.place);
            return Err(PyValueError::new_err(message));
        }
    }
    match place {
        Some(Place::Cuda(ordinal)) => Ok(ordinal),
        _ => Err(PyNotImplementedError::new_err("the fused selective scan is for arrays on a GPU")),
    }
}

fn unsupported(dtype: Dtype) -> PyErr {
    PyNotImplementedError::new_err(format!(
        "no kernel does a selective scan of elements of {dtype}"
    ))
}
