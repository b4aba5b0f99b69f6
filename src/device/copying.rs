//! Arrays of the host, computed with on a device: to it, and back.

use bytemuck::Pod;
use ndarray::{Array1, Array2, ArrayView2, Dimension};

use super::{
    AutoRecurrence, BackwardOptions, Buffer, Device, ForwardOptions, Launched, Recurrence, Shape,
    Storage,
};
use crate::{Error, Gradients, Options, Outputs, validate};

/// The recurrence over buffers, whichever kernel computes it.
pub(super) trait OverBuffers {
    /// What the arrays hold.
    type Storage: Storage;

    fn device(&self) -> &Device;

    fn forward_into(
        &self,
        inputs: &Buffer<Self::Storage>,
        coeffs: &Buffer<Self::Storage>,
        outputs: &mut Buffer<Self::Storage>,
        shape: Shape,
        options: ForwardOptions<<Self::Storage as Storage>::Accum>,
    ) -> Result<Launched, Error>;

    // As for the recurrence itself.
    #[allow(clippy::too_many_arguments)]
    fn backward_into(
        &self,
        d_outputs: &Buffer<Self::Storage>,
        coeffs: &Buffer<Self::Storage>,
        outputs: &Buffer<Self::Storage>,
        d_inputs: &mut Buffer<Self::Storage>,
        d_coeffs: &mut Buffer<Self::Storage>,
        shape: Shape,
        options: BackwardOptions<<Self::Storage as Storage>::Accum>,
    ) -> Result<Launched, Error>;
}

macro_rules! over_buffers {
    ($recurrence:ident) => {
        impl<S: Storage> OverBuffers for $recurrence<S> {
            type Storage = S;

            fn device(&self) -> &Device {
                self.device()
            }

            fn forward_into(
                &self,
                inputs: &Buffer<S>,
                coeffs: &Buffer<S>,
                outputs: &mut Buffer<S>,
                shape: Shape,
                options: ForwardOptions<S::Accum>,
            ) -> Result<Launched, Error> {
                self.forward_into(inputs, coeffs, outputs, shape, options)
            }

            fn backward_into(
                &self,
                d_outputs: &Buffer<S>,
                coeffs: &Buffer<S>,
                outputs: &Buffer<S>,
                d_inputs: &mut Buffer<S>,
                d_coeffs: &mut Buffer<S>,
                shape: Shape,
                options: BackwardOptions<S::Accum>,
            ) -> Result<Launched, Error> {
                self.backward_into(d_outputs, coeffs, outputs, d_inputs, d_coeffs, shape, options)
            }
        }
    };
}

over_buffers!(Recurrence);
over_buffers!(AutoRecurrence);

/// What is computed with.
type Accum<O> = <<O as OverBuffers>::Storage as Storage>::Accum;

/// The copying wrapper that the engines are, with the engine's name.
#[derive(Debug, Clone)]
pub(super) struct Copying<O> {
    pub(super) over_buffers: O,
    pub(super) name: String,
}

impl<O: OverBuffers> Copying<O> {
    /// As [`Engine::forward`](crate::Engine::forward).
    pub(super) fn forward(
        &self,
        inputs: ArrayView2<Accum<O>>,
        coeffs: ArrayView2<Accum<O>>,
        options: &Options<Accum<O>>,
    ) -> Result<Outputs<Accum<O>>, Error> {
        let shape = Shape::from(validate::forward(&inputs, &coeffs, options)?);
        self.refuse_logarithms(options)?;
        let len = inputs.len();
        let (inputs, coeffs) = (self.send("inputs", inputs)?, self.send("coeffs", coeffs)?);
        let initial = self.send_initial(options)?;
        let mut outputs = self.results("outputs", len)?;
        let mut final_state = self.results("final_state", shape.num_seqs)?;
        let options = ForwardOptions {
            direction: options.direction,
            initial: initial.as_ref(),
            final_state: Some(&mut final_state),
            stream: None,
        };
        self.over_buffers.forward_into(&inputs, &coeffs, &mut outputs, shape, options)?;
        let outputs = self.fetch(&outputs, shape)?;
        Ok(Outputs { outputs, final_state: Array1::from_vec(final_state.download()?) })
    }

    /// As [`Engine::backward`](crate::Engine::backward).
    pub(super) fn backward(
        &self,
        d_outputs: ArrayView2<Accum<O>>,
        coeffs: ArrayView2<Accum<O>>,
        outputs: ArrayView2<Accum<O>>,
        options: &Options<Accum<O>>,
    ) -> Result<Gradients<Accum<O>>, Error> {
        let shape = Shape::from(validate::backward(&d_outputs, &coeffs, &outputs, options)?);
        self.refuse_logarithms(options)?;
        let len = d_outputs.len();
        let (d_outputs, coeffs) =
            (self.send("d_outputs", d_outputs)?, self.send("coeffs", coeffs)?);
        let outputs = self.send("outputs", outputs)?;
        let initial = self.send_initial(options)?;
        let (mut d_inputs, mut d_coeffs) =
            (self.results("d_inputs", len)?, self.results("d_coeffs", len)?);
        let mut d_initial = self.results("d_initial", shape.num_seqs)?;
        let options = BackwardOptions {
            direction: options.direction,
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
            d_inputs: self.fetch(&d_inputs, shape)?,
            d_coeffs: self.fetch(&d_coeffs, shape)?,
            d_initial: Array1::from_vec(d_initial.download()?),
        })
    }

    fn refuse_logarithms(&self, options: &Options<Accum<O>>) -> Result<(), Error> {
        if options.log_coeffs {
            let what = String::from("log_coeffs: true; give it the coefficients themselves");
            return Err(Error::Unsupported { engine: self.name.clone(), what });
        }
        Ok(())
    }

    /// An array on the device, with what a view of any strides holds.
    fn send<D: Dimension>(
        &self,
        name: &'static str,
        array: ndarray::ArrayView<Accum<O>, D>,
    ) -> Result<Buffer<O::Storage>, Error> {
        self.copy(name, array.len(), array.iter().map(|&number| O::Storage::narrow(number)))
    }

    fn send_initial(&self, options: &Options<Accum<O>>) -> Result<Option<Buffer<Accum<O>>>, Error> {
        let copy =
            |state: &Array1<Accum<O>>| self.copy("initial", state.len(), state.iter().copied());
        options.initial.as_ref().map(copy).transpose()
    }

    fn copy<T: Pod>(
        &self,
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
        let mut buffer = self.over_buffers.device().allocate_named(name, len)?;
        buffer.upload(&values)?;
        Ok(buffer)
    }

    /// An array on the device full of NaN.
    fn results<T: Pod>(&self, name: &'static str, len: usize) -> Result<Buffer<T>, Error> {
        let mut buffer = self.over_buffers.device().allocate_named(name, len)?;
        buffer.poison()?;
        Ok(buffer)
    }

    fn fetch(&self, buffer: &Buffer<O::Storage>, shape: Shape) -> Result<Array2<Accum<O>>, Error> {
        let values: Vec<_> = buffer.download()?.into_iter().map(O::Storage::widen).collect();
        Array2::from_shape_vec((shape.num_seqs, shape.seq_len), values).map_err(|_| {
            let shape = vec![shape.num_seqs, shape.seq_len];
            let arrays = vec![("shape", shape), ("result", vec![buffer.len()])];
            Error::ShapeMismatch { operation: "download", arrays }
        })
    }
}
