//! Arrays of the host, computed with on a device: to it, and back.

use bytemuck::Pod;
use ndarray::{Array1, Array2, ArrayView, ArrayView1, ArrayView2, Dimension};

use super::{BackwardOptions, Buffer, Device, ForwardOptions, Recurrence, Shape, Storage};
use crate::{Error, Gradients, Options, Outputs, validate};

/// The copying wrapper that the engine is, with the engine's name.
#[derive(Debug, Clone)]
pub(super) struct Copying<S> {
    pub(super) over_buffers: Recurrence<S>,
    pub(super) name: String,
}

impl<S: Storage> Copying<S> {
    /// As [`Engine::forward`](crate::Engine::forward).
    pub(super) fn forward(
        &self,
        inputs: ArrayView2<S::Accum>,
        coeffs: ArrayView2<S::Accum>,
        options: &Options<S::Accum>,
    ) -> Result<Outputs<S::Accum>, Error> {
        let shape = Shape::from(validate::forward(&inputs, &coeffs, options)?);
        let (device, len) = (self.over_buffers.device(), inputs.len());
        let (inputs, coeffs) = (send(device, "inputs", inputs)?, send(device, "coeffs", coeffs)?);
        let initial = send_state(device, options.initial.as_ref().map(|state| state.view()))?;
        let mut outputs = results(device, "outputs", len)?;
        let mut final_state = results(device, "final_state", shape.num_seqs)?;
        let options = ForwardOptions {
            direction: options.direction,
            log_coeffs: options.log_coeffs,
            initial: initial.as_ref(),
            final_state: Some(&mut final_state),
            stream: None,
        };
        self.over_buffers.forward_into(&inputs, &coeffs, &mut outputs, shape, options)?;
        let outputs = fetch(&outputs, shape)?;
        Ok(Outputs { outputs, final_state: Array1::from_vec(final_state.download()?) })
    }

    /// As [`Engine::backward`](crate::Engine::backward).
    pub(super) fn backward(
        &self,
        d_outputs: ArrayView2<S::Accum>,
        coeffs: ArrayView2<S::Accum>,
        outputs: ArrayView2<S::Accum>,
        options: &Options<S::Accum>,
    ) -> Result<Gradients<S::Accum>, Error> {
        let shape = Shape::from(validate::backward(&d_outputs, &coeffs, &outputs, options)?);
        let (device, len) = (self.over_buffers.device(), d_outputs.len());
        let (d_outputs, coeffs) =
            (send(device, "d_outputs", d_outputs)?, send(device, "coeffs", coeffs)?);
        let outputs = send(device, "outputs", outputs)?;
        let initial = send_state(device, options.initial.as_ref().map(|state| state.view()))?;
        let (mut d_inputs, mut d_coeffs) =
            (results(device, "d_inputs", len)?, results(device, "d_coeffs", len)?);
        let mut d_initial = results(device, "d_initial", shape.num_seqs)?;
        let options = BackwardOptions {
            direction: options.direction,
            log_coeffs: options.log_coeffs,
            initial: initial.as_ref(),
            d_initial: Some(&mut d_initial),
            stream: None,
        };
        self.over_buffers.backward_into(
            &d_outputs,
            &coeffs,
            &outputs,
            &mut d_inputs,
            &mut d_coeffs,
            shape,
            options,
        )?;
        Ok(Gradients {
            d_inputs: fetch(&d_inputs, shape)?,
            d_coeffs: fetch(&d_coeffs, shape)?,
            d_initial: Array1::from_vec(d_initial.download()?),
        })
    }
}

/// An array on the device, with what a view of any strides holds.
pub(super) fn send<S: Storage, D: Dimension>(
    device: &Device,
    name: &'static str,
    array: ArrayView<S::Accum, D>,
) -> Result<Buffer<S>, Error> {
    copy(device, name, array.len(), array.iter().map(|&number| S::narrow(number)))
}

/// The initial state on the device, if there is one.
pub(super) fn send_state<A: Storage<Accum = A>>(
    device: &Device,
    state: Option<ArrayView1<A>>,
) -> Result<Option<Buffer<A>>, Error> {
    state.map(|state| copy(device, "initial", state.len(), state.iter().copied())).transpose()
}

fn copy<T: Pod>(
    device: &Device,
    name: &'static str,
    len: usize,
    numbers: impl Iterator<Item = T>,
) -> Result<Buffer<T>, Error> {
    // A broadcast view can describe far more elements than memory holds.
    let mut values = Vec::new();
    values.try_reserve_exact(len).map_err(|_| Error::OutOfMemory {
        operation: "upload",
        bytes: len.saturating_mul(size_of::<T>()),
    })?;
    values.extend(numbers);
    let mut buffer = device.allocate_named(name, len)?;
    buffer.upload(&values)?;
    Ok(buffer)
}

/// An array on the device full of NaN.
pub(super) fn results<T: Pod>(
    device: &Device,
    name: &'static str,
    len: usize,
) -> Result<Buffer<T>, Error> {
    let mut buffer = device.allocate_named(name, len)?;
    buffer.poison()?;
    Ok(buffer)
}

/// What an array on the device holds, of this shape.
pub(super) fn fetch<S: Storage>(
    buffer: &Buffer<S>,
    shape: Shape,
) -> Result<Array2<S::Accum>, Error> {
    let values: Vec<_> = buffer.download()?.into_iter().map(S::widen).collect();
    Array2::from_shape_vec((shape.num_seqs, shape.seq_len), values).map_err(|_| {
        let shape = vec![shape.num_seqs, shape.seq_len];
        let arrays = vec![("shape", shape), ("result", vec![buffer.len()])];
        Error::ShapeMismatch { operation: "download", arrays }
    })
}
