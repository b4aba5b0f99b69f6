//! Mamba's selective scan on a GPU, for Python.
//!
//! Both passes read the same inputs ([`Inputs`]), and the backward pass also its own arrays and
//! results ([`Gradients`]). The arrays are checked (one GPU, the right types, results that do not
//! overlap), lent to the library as buffers of the caller's memory, and passed to
//! `linrec::device::SelectiveScan`. `python/tests/test_selective_scan.py` tests them.

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

/// The arrays that both passes read.
struct Inputs {
    u: Array,
    delta: Array,
    a: Array,
    b: Array,
    c: Array,
    d: Option<Array>,
    z: Option<Array>,
    delta_bias: Option<Array>,
    softplus: bool,
}

/// The other arrays that a backward pass reads, and the arrays that it writes.
struct Gradients {
    d_out: Array,
    d_last: Option<Array>,
    checkpoints: Array,
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
    let inputs = Inputs::read([u, delta, a, b, c], [d, z, delta_bias], softplus)?;
    let out = capsule::read("out", out)?;
    let last = optional("last", last)?;
    let checkpoints = optional("checkpoints", checkpoints)?;
    let results: Vec<_> = [&out].into_iter().chain(&last).chain(&checkpoints).collect();
    let read = inputs.all();
    check_results(&read, &results)?;
    let ordinal = check(inputs.u.dtype, read.into_iter().chain(results))?;
    failure::compute(py, || match inputs.u.dtype {
        Dtype::F32 => forward::<f32>(ordinal, &inputs, &out, &last, &checkpoints, stream),
        Dtype::Bf16 => forward::<Bf16>(ordinal, &inputs, &out, &last, &checkpoints, stream),
        Dtype::F16 => forward::<F16>(ordinal, &inputs, &out, &last, &checkpoints, stream),
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
    let inputs = Inputs::read([u, delta, a, b, c], [d, z, delta_bias], softplus)?;
    let gradients = Gradients {
        d_out: capsule::read("d_out", d_out)?,
        d_last: optional("d_last", d_last)?,
        checkpoints: capsule::read("checkpoints", checkpoints)?,
        u: capsule::read("d_u", d_u)?,
        delta: capsule::read("d_delta", d_delta)?,
        a: capsule::read("d_A", d_a)?,
        b: capsule::read("d_B", d_b)?,
        c: capsule::read("d_C", d_c)?,
        d: optional("d_D", d_d)?,
        z: optional("d_z", d_z)?,
        delta_bias: optional("d_delta_bias", d_delta_bias)?,
    };
    let read: Vec<_> = inputs.all().into_iter().chain(gradients.read()).collect();
    check_results(&read, &gradients.results())?;
    let ordinal = check(inputs.u.dtype, read.into_iter().chain(gradients.results()))?;
    failure::compute(py, || match inputs.u.dtype {
        Dtype::F32 => backward::<f32>(ordinal, &inputs, &gradients, stream),
        Dtype::Bf16 => backward::<Bf16>(ordinal, &inputs, &gradients, stream),
        Dtype::F16 => backward::<F16>(ordinal, &inputs, &gradients, stream),
        dtype => Err(unsupported(dtype)),
    })
}

type Bf16 = half::bf16;
type F16 = half::f16;

fn forward<S: Storage<Accum = f32>>(
    ordinal: usize,
    inputs: &Inputs,
    out: &Array,
    last: &Option<Array>,
    checkpoints: &Option<Array>,
    stream: usize,
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
    let launched = scan.forward_into(&buffers.inputs(inputs), &mut out, shape, options);
    launched.map(drop).map_err(failure::exception)
}

fn backward<S: Storage<Accum = f32>>(
    ordinal: usize,
    inputs: &Inputs,
    gradients: &Gradients,
    stream: usize,
) -> PyResult<()> {
    let place = Lent::new(ordinal, stream)?;
    let shape = inputs.shape()?;
    let buffers = Buffers::<S>::of(&place, inputs)?;
    let d_out = place.buffer::<S>(&gradients.d_out)?;
    let (d_last, checkpoints) =
        (place.optional(&gradients.d_last)?, place.buffer(&gradients.checkpoints)?);
    let (mut u, mut delta) = (place.buffer(&gradients.u)?, place.buffer(&gradients.delta)?);
    let mut a = place.buffer(&gradients.a)?;
    let (mut b, mut c) = (Coupling::of(&place, &gradients.b)?, Coupling::of(&place, &gradients.c)?);
    let (mut d, mut delta_bias) =
        (place.optional(&gradients.d)?, place.optional(&gradients.delta_bias)?);
    let mut z = place.optional(&gradients.z)?;
    let results = ScanGradients {
        u: &mut u,
        delta: &mut delta,
        a: &mut a,
        b: b.written(),
        c: c.written(),
        d: d.as_mut(),
        z: z.as_mut(),
        delta_bias: delta_bias.as_mut(),
        initial: None,
    };
    let options = ScanBackwardOptions {
        d_last: d_last.as_ref(),
        stream: Some(&place.stream),
        ..Default::default()
    };
    let (scan, all) = (scan::<S>(&place)?, buffers.inputs(inputs));
    let launched = scan.backward_into(&all, &d_out, &checkpoints, results, shape, options);
    launched.map(drop).map_err(failure::exception)
}

/// Returns the selective scan with the GPU's own exponential, as everywhere in PyTorch.
fn scan<S: Storage<Accum = f32>>(place: &Lent) -> PyResult<SelectiveScan<S>> {
    cached(&place.device, S::ELEMENT, || Ok(SelectiveScan::new(&place.device, Exponential::Fast)))
}

impl Inputs {
    fn read(
        [u, delta, a, b, c]: [Capsule; 5],
        [d, z, delta_bias]: [Option<Capsule>; 3],
        softplus: bool,
    ) -> PyResult<Inputs> {
        Ok(Inputs {
            u: capsule::read("u", u)?,
            delta: capsule::read("delta", delta)?,
            a: capsule::read("A", a)?,
            b: capsule::read("B", b)?,
            c: capsule::read("C", c)?,
            d: optional("D", d)?,
            z: optional("z", z)?,
            delta_bias: optional("delta_bias", delta_bias)?,
            softplus,
        })
    }

    fn all(&self) -> Vec<&Array> {
        let Inputs { u, delta, a, b, c, d, z, delta_bias, .. } = self;
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

impl Gradients {
    fn read(&self) -> Vec<&Array> {
        let Gradients { d_out, d_last, checkpoints, .. } = self;
        [d_out, checkpoints].into_iter().chain(d_last).collect()
    }

    fn results(&self) -> Vec<&Array> {
        let Gradients { u, delta, a, b, c, d, z, delta_bias, .. } = self;
        [u, delta, a, b, c].into_iter().chain(d).chain(z).chain(delta_bias).collect()
    }
}

/// The inputs as buffers of the device.
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
    fn of(place: &Lent, inputs: &Inputs) -> PyResult<Buffers<S>> {
        Ok(Buffers {
            u: place.buffer(&inputs.u)?,
            delta: place.buffer(&inputs.delta)?,
            a: place.buffer(&inputs.a)?,
            b: Coupling::of(place, &inputs.b)?,
            c: Coupling::of(place, &inputs.c)?,
            d: place.optional(&inputs.d)?,
            z: place.optional(&inputs.z)?,
            delta_bias: place.optional(&inputs.delta_bias)?,
        })
    }

    fn inputs(&self, inputs: &Inputs) -> ScanInputs<'_, S> {
        ScanInputs {
            u: &self.u,
            delta: &self.delta,
            a: &self.a,
            b: self.b.read(),
            c: self.c.read(),
            d: self.d.as_ref(),
            z: self.z.as_ref(),
            delta_bias: self.delta_bias.as_ref(),
            softplus: inputs.softplus,
            initial: None,
            restarts: None,
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
