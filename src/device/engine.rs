//! A device's kernel as an engine over arrays of the host.

use bytemuck::Pod;
use ndarray::{Array1, Array2, ArrayView2, Dimension};

use super::{BackwardOptions, Buffer, Device, ForwardOptions, Recurrence, Shape, Storage};
use crate::kernels::{KernelChoice, Program};
use crate::{Engine, Error, Gradients, Options, Outputs, validate};

/// The copying wrapper around a [`Recurrence`]: arrays go to the device and results come back.
///
/// Made for tests and for arrays at hand; where speed matters, data stays on the device. Results are
/// filled with NaN before a kernel writes them. Coefficients as logarithms are not supported. Of
/// storage narrower than the numbers computed with, the arrays are rounded on their way.
///
/// ```
/// use linrec::device::{Device, KernelEngine};
/// use linrec::kernels::KernelChoice;
/// use linrec::{Engine, Options};
/// use ndarray::array;
///
/// let engine = KernelEngine::<f32>::new(&Device::simt(), KernelChoice::default())?;
/// assert_eq!(engine.name(), "ref@simt");
/// let (inputs, coeffs) = (array![[1.0, 2.0, 3.0]], array![[0.0, 1.0, 0.5]]);
/// let result = engine.forward(inputs.view(), coeffs.view(), &Options::default())?;
/// assert_eq!(result.outputs, array![[1.0, 3.0, 4.5]]);
/// # Ok::<(), linrec::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct KernelEngine<S> {
    recurrence: Recurrence<S>,
    name: String,
}

impl<S: Storage> KernelEngine<S> {
    /// An engine of the kernel on the device.
    ///
    /// # Errors
    ///
    /// As for [`Recurrence::new`].
    pub fn new(device: &Device, choice: KernelChoice) -> Result<KernelEngine<S>, Error> {
        KernelEngine::from_program(device, choice, &choice.program(S::ELEMENT))
    }

    /// The same with another source: see [`Recurrence::from_program`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn from_program(
        device: &Device,
        choice: KernelChoice,
        program: &Program,
    ) -> Result<KernelEngine<S>, Error> {
        let recurrence = Recurrence::from_program(device, choice, program)?;
        let name = format!("{}@{}", choice.label(), device.label());
        Ok(KernelEngine { recurrence, name })
    }

    /// What it computes with.
    pub fn recurrence(&self) -> &Recurrence<S> {
        &self.recurrence
    }

    /// What the engine takes, and how often it rounds.
    #[cfg(feature = "contract")]
    pub fn domain(&self) -> crate::contract::Domain {
        use crate::contract::Domain;
        let choice = self.recurrence.choice();
        let growing = S::ELEMENT != crate::kernels::ElementType::F16;
        let domain = Domain { growing, ..Domain::default() };
        match choice {
            // The loop of chapter 1, with one rounding a step.
            KernelChoice::Ref { .. } => Domain { levels: |_| 0, log_coeffs: false, ..domain },
            KernelChoice::Tile(config) | KernelChoice::Pipe(config) => Domain {
                levels: Domain::tree_levels,
                log_coeffs: false,
                tile: config.max_tile() as usize,
                max_len: choice.max_len(S::ELEMENT).map_or(domain.max_len, |len| len as usize),
                ..domain
            },
            KernelChoice::Rows(config) => Domain {
                levels: Domain::tree_levels,
                log_coeffs: false,
                tile: config.max_len(S::ELEMENT) as usize,
                max_len: config.max_len(S::ELEMENT) as usize,
                multiple_of: choice.multiple_of(S::ELEMENT) as usize,
                ..domain
            },
            KernelChoice::Wide(config) => Domain {
                levels: Domain::tree_levels,
                log_coeffs: false,
                tile: config.tile(S::ELEMENT) as usize,
                multiple_of: choice.multiple_of(S::ELEMENT) as usize,
                ..domain
            },
        }
    }

    fn refuse_logarithms(&self, options: &Options<S::Accum>) -> Result<(), Error> {
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
        array: ndarray::ArrayView<S::Accum, D>,
    ) -> Result<Buffer<S>, Error> {
        self.copy(name, array.len(), array.iter().map(|&number| S::narrow(number)))
    }

    fn send_initial(&self, options: &Options<S::Accum>) -> Result<Option<Buffer<S::Accum>>, Error> {
        let copy =
            |state: &Array1<S::Accum>| self.copy("initial", state.len(), state.iter().copied());
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
        let mut buffer = self.recurrence.device().allocate_named(name, len)?;
        buffer.upload(&values)?;
        Ok(buffer)
    }

    /// An array on the device full of NaN.
    fn results<T: Pod>(&self, name: &'static str, len: usize) -> Result<Buffer<T>, Error> {
        let mut buffer = self.recurrence.device().allocate_named(name, len)?;
        buffer.poison()?;
        Ok(buffer)
    }

    fn fetch(&self, buffer: &Buffer<S>, shape: Shape) -> Result<Array2<S::Accum>, Error> {
        let values: Vec<_> = buffer.download()?.into_iter().map(S::widen).collect();
        Array2::from_shape_vec((shape.num_seqs, shape.seq_len), values).map_err(|_| {
            let shape = vec![shape.num_seqs, shape.seq_len];
            let arrays = vec![("shape", shape), ("result", vec![buffer.len()])];
            Error::ShapeMismatch { operation: "download", arrays }
        })
    }
}

impl<S: Storage> Engine<S::Accum> for KernelEngine<S> {
    fn name(&self) -> &str {
        &self.name
    }

    fn forward(
        &self,
        inputs: ArrayView2<S::Accum>,
        coeffs: ArrayView2<S::Accum>,
        options: &Options<S::Accum>,
    ) -> Result<Outputs<S::Accum>, Error> {
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
        self.recurrence.forward_into(&inputs, &coeffs, &mut outputs, shape, options)?;
        let outputs = self.fetch(&outputs, shape)?;
        Ok(Outputs { outputs, final_state: Array1::from_vec(final_state.download()?) })
    }

    fn backward(
        &self,
        d_outputs: ArrayView2<S::Accum>,
        coeffs: ArrayView2<S::Accum>,
        outputs: ArrayView2<S::Accum>,
        options: &Options<S::Accum>,
    ) -> Result<Gradients<S::Accum>, Error> {
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
        self.recurrence.backward_into(
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
}
