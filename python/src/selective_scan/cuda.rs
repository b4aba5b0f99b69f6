//! The selective scan on a GPU, as one kernel, over the caller's memory and on the caller's stream.

use linrec::device::{
    Buffer, Exponential, ScanBackwardOptions, ScanCoupling, ScanCouplingGradient,
    ScanForwardOptions, ScanGradients, ScanInputs, ScanShape, SelectiveScan, Storage,
};
use linrec::kernels::ElementType;
use pyo3::PyResult;

use super::arrays::{Arrays, Derivatives, Inputs, Resources, Results, unsupported};
use crate::array::Array;
use crate::cuda::{Lent, cached};
use crate::failure;

type Bf16 = half::bf16;
type F16 = half::f16;

pub fn forward(
    ordinal: usize,
    inputs: &Inputs,
    results: &Results,
    resources: Resources,
) -> PyResult<()> {
    let place = Lent::new(ordinal, resources.stream)?;
    match inputs.element()? {
        ElementType::F32 => forward_of::<f32>(&place, inputs, results),
        ElementType::Bf16 => forward_of::<Bf16>(&place, inputs, results),
        ElementType::F16 => forward_of::<F16>(&place, inputs, results),
        _ => Err(unsupported(inputs.arrays.u.dtype)),
    }
}

pub fn backward(
    ordinal: usize,
    inputs: &Inputs,
    given: &Derivatives,
    gradients: &Arrays,
    resources: Resources,
) -> PyResult<()> {
    let place = Lent::new(ordinal, resources.stream)?;
    match inputs.element()? {
        ElementType::F32 => backward_of::<f32>(&place, inputs, given, gradients),
        ElementType::Bf16 => backward_of::<Bf16>(&place, inputs, given, gradients),
        ElementType::F16 => backward_of::<F16>(&place, inputs, given, gradients),
        _ => Err(unsupported(inputs.arrays.u.dtype)),
    }
}

fn forward_of<S: Storage<Accum = f32>>(
    place: &Lent,
    inputs: &Inputs,
    results: &Results,
) -> PyResult<()> {
    let buffers = Buffers::<S>::of(place, &inputs.arrays)?;
    let restarts = place.optional(&inputs.restarts)?;
    let mut out = place.buffer::<S>(&results.out)?;
    let mut last = place.optional::<f32>(&results.last)?;
    let mut checkpoints = place.optional::<f32>(&results.checkpoints)?;
    let options = ScanForwardOptions {
        last: last.as_mut(),
        checkpoints: checkpoints.as_mut(),
        chunks: None,
        stream: Some(&place.stream),
    };
    let given = buffers.inputs(restarts.as_ref(), inputs.softplus);
    let launched = scan::<S>(place)?.forward_into(&given, &mut out, shape(inputs)?, options);
    launched.map(drop).map_err(failure::exception)
}

fn backward_of<S: Storage<Accum = f32>>(
    place: &Lent,
    inputs: &Inputs,
    given: &Derivatives,
    gradients: &Arrays,
) -> PyResult<()> {
    let buffers = Buffers::<S>::of(place, &inputs.arrays)?;
    let restarts = place.optional(&inputs.restarts)?;
    let d_out = place.buffer::<S>(&given.d_out)?;
    let (d_last, checkpoints) = (place.optional(&given.d_last)?, place.buffer(&given.checkpoints)?);
    let mut gradients = Buffers::<S>::of(place, gradients)?;
    let options = ScanBackwardOptions {
        d_last: d_last.as_ref(),
        stream: Some(&place.stream),
        ..Default::default()
    };
    let all = buffers.inputs(restarts.as_ref(), inputs.softplus);
    let (scan, shape) = (scan::<S>(place)?, shape(inputs)?);
    let launched =
        scan.backward_into(&all, &d_out, &checkpoints, gradients.gradients(), shape, options);
    launched.map(drop).map_err(failure::exception)
}

/// Returns the selective scan with the GPU's own exponential, as everywhere in PyTorch.
fn scan<S: Storage<Accum = f32>>(place: &Lent) -> PyResult<SelectiveScan<S>> {
    cached(&place.device, S::ELEMENT, || Ok(SelectiveScan::new(&place.device, Exponential::Fast)))
}

fn shape(inputs: &Inputs) -> PyResult<ScanShape> {
    let Arrays { u, a, b, c, .. } = &inputs.arrays;
    let (&[batch, channels, seq_len], &[_, states]) = (&*u.shape, &*a.shape) else {
        return Err(u.refused(&format!("does not fit A {:?}", a.shape)));
    };
    let groups = [b, c].into_iter().find(|coupling| coupling.shape.len() == 4);
    let groups = groups.map_or(1, |coupling| coupling.shape[1]);
    Ok(ScanShape { batch, channels, seq_len, states, groups })
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
    initial: Option<Buffer<f32>>,
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
            initial: place.optional(&arrays.initial)?,
        })
    }

    fn inputs<'a>(&'a self, restarts: Option<&'a Buffer<u8>>, softplus: bool) -> ScanInputs<'a, S> {
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
            initial: self.initial.as_ref(),
            restarts,
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
            initial: self.initial.as_mut(),
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
