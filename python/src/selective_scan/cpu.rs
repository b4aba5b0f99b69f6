//! The selective scan on the CPU, over arrays of any strides.
#![allow(unsafe_code)]

use linrec::cpu::{
    Coupling, CouplingView, CouplingViewMut, Cpu, ScanDerivatives, ScanReal, ScanResults,
    ScanViews, ScanViewsMut,
};
use linrec::kernels::ElementType;
use ndarray::{ArrayView, ArrayViewMut, Dimension};
use pyo3::PyResult;

use super::arrays::{Arrays, Derivatives, Inputs, Resources, Results, unsupported};
use crate::array::Array;
use crate::failure;

/// The products of states and steps below which one thread is enough.
const FEW: usize = 1 << 16;

pub fn forward(inputs: &Inputs, results: Results, resources: Resources) -> PyResult<()> {
    match inputs.element()? {
        ElementType::F32 => forward_in::<f32>(inputs, results, resources),
        ElementType::F64 => forward_in::<f64>(inputs, results, resources),
        _ => Err(unsupported(inputs.arrays.u.dtype)),
    }
}

pub fn backward(
    inputs: &Inputs,
    given: &Derivatives,
    gradients: Arrays,
    resources: Resources,
) -> PyResult<()> {
    match inputs.element()? {
        ElementType::F32 => backward_in::<f32>(inputs, given, gradients, resources),
        ElementType::F64 => backward_in::<f64>(inputs, given, gradients, resources),
        _ => Err(unsupported(inputs.arrays.u.dtype)),
    }
}

fn forward_in<T: ScanReal>(
    inputs: &Inputs,
    mut results: Results,
    resources: Resources,
) -> PyResult<()> {
    let results = ScanResults {
        out: written(&mut results.out)?,
        last: results.last.as_mut().map(written).transpose()?,
        checkpoints: results.checkpoints.as_mut().map(written).transpose()?,
    };
    let views = views::<T>(inputs)?;
    within(inputs, resources, |cpu| cpu.selective_scan(&views, results))
}

fn backward_in<T: ScanReal>(
    inputs: &Inputs,
    given: &Derivatives,
    mut gradients: Arrays,
    resources: Resources,
) -> PyResult<()> {
    let given = ScanDerivatives {
        d_out: read(&given.d_out)?,
        d_last: given.d_last.as_ref().map(read).transpose()?,
        checkpoints: read(&given.checkpoints)?,
    };
    let Arrays { u, delta, a, b, c, d, z, delta_bias, initial } = &mut gradients;
    let gradients = ScanViewsMut {
        u: written(u)?,
        delta: written(delta)?,
        a: written(a)?,
        b: written_coupling(b)?,
        c: written_coupling(c)?,
        d: d.as_mut().map(written).transpose()?,
        z: z.as_mut().map(written).transpose()?,
        delta_bias: delta_bias.as_mut().map(written).transpose()?,
        initial: initial.as_mut().map(written).transpose()?,
    };
    let views = views::<T>(inputs)?;
    within(inputs, resources, |cpu| cpu.selective_scan_backward(&views, &given, gradients))
}

/// Computes with the caller's number of threads; little work on this thread alone.
fn within(
    inputs: &Inputs,
    resources: Resources,
    compute: impl FnOnce(Cpu) -> Result<(), linrec::Error> + Send,
) -> PyResult<()> {
    let states = inputs.arrays.a.shape.last().copied().unwrap_or_default();
    let done = match inputs.arrays.u.len().saturating_mul(states) < FEW {
        true => compute(Cpu::new().single_threaded()),
        false => crate::cpu::within(resources.threads, || compute(Cpu::new())),
    };
    done.map_err(failure::exception)
}

fn views<T: ScanReal>(inputs: &Inputs) -> PyResult<ScanViews<'_, T>> {
    let Arrays { u, delta, a, b, c, d, z, delta_bias, initial } = &inputs.arrays;
    Ok(ScanViews {
        u: read(u)?,
        delta: read(delta)?,
        a: read(a)?,
        b: read_coupling(b)?,
        c: read_coupling(c)?,
        d: d.as_ref().map(read).transpose()?,
        z: z.as_ref().map(read).transpose()?,
        delta_bias: delta_bias.as_ref().map(read).transpose()?,
        softplus: inputs.softplus,
        initial: initial.as_ref().map(read).transpose()?,
        restarts: inputs.restarts.as_ref().map(read).transpose()?,
    })
}

fn read<T, D: Dimension>(array: &Array) -> PyResult<ArrayView<'_, T, D>> {
    // SAFETY: (1) `Inputs::check` has compared the types, and the device is the CPU; (2) it has
    // found that no result overlaps this array, and the caller lets no other thread write to it.
    let view = unsafe { array.view::<T>() };
    view.into_dimensionality().map_err(|_| axes::<D>(array))
}

fn written<T, D: Dimension>(array: &mut Array) -> PyResult<ArrayViewMut<'_, T, D>> {
    let wrong = axes::<D>(array);
    // SAFETY: as for `read`; and `check_results` has found no error.
    let view = unsafe { array.view_mut::<T>() };
    view.into_dimensionality().map_err(|_| wrong)
}

fn axes<D: Dimension>(array: &Array) -> pyo3::PyErr {
    array.refused(&format!("does not have {} axes", D::NDIM.unwrap_or_default()))
}

fn read_coupling<T>(array: &Array) -> PyResult<CouplingView<'_, T>> {
    Ok(match array.shape.len() {
        4 => Coupling::Varying(read(array)?),
        _ => Coupling::Constant(read(array)?),
    })
}

fn written_coupling<T>(array: &mut Array) -> PyResult<CouplingViewMut<'_, T>> {
    Ok(match array.shape.len() {
        4 => Coupling::Varying(written(array)?),
        _ => Coupling::Constant(written(array)?),
    })
}
