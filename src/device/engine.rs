//! Kernels as engines over arrays of the host.
//!
//! A kernel over arrays on a device implements [`OverBuffers`]: the library's [`Recurrence`], the
//! kernels of the tutorial's chapters, and whatever a benchmark measures. [`Copying`] makes each of
//! them an [`Engine`]: it copies arrays of any strides to the device row after row, and the results
//! back. A group of devices copies its arrays by the same functions. The tests are the contract's
//! table (`tests/suite/contract.rs`), which every kernel passes through this engine.

use std::fmt::Debug;

use bytemuck::Pod;
use ndarray::{Array1, Array2, ArrayView, ArrayView1, ArrayView2, Dimension};

use super::{BackwardOptions, Buffer, Choice, Device, ForwardOptions, Recurrence, Shape, Storage};
use crate::engine::forward_only;
use crate::kernels::{KernelChoice, Program};
use crate::{Engine, Error, Gradients, Options, Outputs, validate};

/// A kernel that computes the recurrence over arrays on a device: a [`Recurrence`], or one that is
/// not part of the library. [`Copying`] makes an [`Engine`] of it.
///
/// Arrays have shape `[num_seqs, seq_len]`, row after row, in the type
/// [`Stored`](OverBuffers::Stored); states have shape `[num_seqs]`, in its type of computation.
pub trait OverBuffers: Debug + Send + Sync {
    /// The type of the arrays' elements.
    type Stored: Storage;

    /// Returns the device that the kernel runs on.
    fn device(&self) -> &Device;

    /// Returns the name in records, without the device: `wide:2x128`.
    fn name(&self) -> String;

    /// Queues the forward pass.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if the kernel does not take the shape or an option, or another error
    /// if the device fails.
    fn forward_into(
        &self,
        inputs: &Buffer<Self::Stored>,
        coeffs: &Buffer<Self::Stored>,
        outputs: &mut Buffer<Self::Stored>,
        shape: Shape,
        options: ForwardOptions<Accum<Self>>,
    ) -> Result<(), Error>;

    /// Queues the backward pass. By default the kernel has none.
    ///
    /// # Errors
    ///
    /// As for [`OverBuffers::forward_into`].
    // The arrays of `Recurrence::backward_into`.
    #[allow(clippy::too_many_arguments, unused_variables)]
    fn backward_into(
        &self,
        d_outputs: &Buffer<Self::Stored>,
        coeffs: &Buffer<Self::Stored>,
        outputs: &Buffer<Self::Stored>,
        d_inputs: &mut Buffer<Self::Stored>,
        d_coeffs: &mut Buffer<Self::Stored>,
        shape: Shape,
        options: BackwardOptions<Accum<Self>>,
    ) -> Result<(), Error> {
        Err(forward_only(&self.name()))
    }
}

/// The type in which a kernel computes.
type Accum<K> = <<K as OverBuffers>::Stored as Storage>::Accum;

impl<S: Storage> OverBuffers for Recurrence<S> {
    type Stored = S;

    fn device(&self) -> &Device {
        self.device()
    }

    fn name(&self) -> String {
        self.choice().to_string()
    }

    fn forward_into(
        &self,
        inputs: &Buffer<S>,
        coeffs: &Buffer<S>,
        outputs: &mut Buffer<S>,
        shape: Shape,
        options: ForwardOptions<S::Accum>,
    ) -> Result<(), Error> {
        self.forward_into(inputs, coeffs, outputs, shape, options).map(drop)
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
    ) -> Result<(), Error> {
        self.backward_into(d_outputs, coeffs, outputs, d_inputs, d_coeffs, shape, options).map(drop)
    }
}

/// The engine around a kernel: arrays go to the device and results come back.
///
/// It is meant for tests and for arrays on the host; where speed matters, data stays on the device.
/// Results are filled with NaN before a kernel writes them. If the storage is narrower than the
/// numbers that kernels compute with, copying rounds the arrays. The engine's name is the kernel's
/// and the device's: `wide:2x128@simt`.
#[derive(Debug, Clone)]
pub struct Copying<K> {
    kernel: K,
    name: String,
}

/// The engine around a [`Recurrence`]. All options are supported
/// ([logarithms](Recurrence#logarithms) by another kernel).
///
/// ```
/// use linrec::device::{Device, KernelEngine};
/// use linrec::kernels::KernelChoice;
/// use linrec::{Engine, Options};
/// use ndarray::array;
///
/// let engine = KernelEngine::<f32>::new(&Device::simt(), KernelChoice::default())?;
/// assert_eq!(engine.name(), "ref:64@simt");
/// let (inputs, coeffs) = (array![[1.0, 2.0, 3.0]], array![[0.0, 1.0, 0.5]]);
/// let result = engine.forward(inputs.view(), coeffs.view(), &Options::default())?;
/// assert_eq!(result.outputs, array![[1.0, 3.0, 4.5]]);
/// # Ok::<(), linrec::Error>(())
/// ```
pub type KernelEngine<S> = Copying<Recurrence<S>>;

impl Device {
    /// Returns the recurrence on this device over arrays of the host, by the fastest kernel for
    /// every shape.
    ///
    /// Copying arrays to the device and back takes longer than the work itself. For data that is
    /// there already use a [`Recurrence`].
    ///
    /// ```
    /// use linrec::device::Device;
    /// use linrec::{Engine, Options};
    /// use ndarray::array;
    ///
    /// let engine = Device::simt().engine::<f32>();
    /// assert_eq!(engine.name(), "auto@simt");
    /// let (inputs, coeffs) = (array![[1.0, 2.0, 3.0]], array![[0.0, 1.0, 0.5]]);
    /// let result = engine.forward(inputs.view(), coeffs.view(), &Options::default())?;
    /// assert_eq!(result.outputs, array![[1.0, 3.0, 4.5]]);
    /// # Ok::<(), linrec::Error>(())
    /// ```
    pub fn engine<S: Storage>(&self) -> KernelEngine<S> {
        KernelEngine::from(Recurrence::fastest(self))
    }
}

impl<K: OverBuffers> From<K> for Copying<K> {
    fn from(kernel: K) -> Copying<K> {
        let name = format!("{}@{}", kernel.name(), kernel.device().label());
        Copying { kernel, name }
    }
}

impl<S: Storage> KernelEngine<S> {
    /// Makes an engine of a kernel on the device, or of the fastest ones ([`Choice::Fastest`]).
    ///
    /// # Errors
    ///
    /// As for [`Recurrence::new`].
    pub fn new(device: &Device, choice: impl Into<Choice>) -> Result<KernelEngine<S>, Error> {
        Recurrence::new(device, choice).map(KernelEngine::from)
    }

    /// Makes an engine of another source with the kernel's entries: see
    /// [`Recurrence::from_program`].
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the source cannot be compiled, or the device refuses it.
    pub fn from_program(
        device: &Device,
        kernel: KernelChoice,
        program: &Program,
    ) -> Result<KernelEngine<S>, Error> {
        Recurrence::from_program(device, kernel, program).map(KernelEngine::from)
    }

    /// Returns the recurrence that the engine computes.
    pub fn recurrence(&self) -> &Recurrence<S> {
        &self.kernel
    }
}

impl<K: OverBuffers> Engine<Accum<K>> for Copying<K> {
    fn name(&self) -> &str {
        &self.name
    }

    fn forward(
        &self,
        inputs: ArrayView2<Accum<K>>,
        coeffs: ArrayView2<Accum<K>>,
        options: &Options<Accum<K>>,
    ) -> Result<Outputs<Accum<K>>, Error> {
        let shape = Shape::from(validate::forward(&inputs, &coeffs, options)?);
        let (device, len) = (self.kernel.device(), inputs.len());
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
        self.kernel.forward_into(&inputs, &coeffs, &mut outputs, shape, options)?;
        let outputs = fetch(&outputs, shape)?;
        Ok(Outputs { outputs, final_state: Array1::from_vec(final_state.download()?) })
    }

    fn backward(
        &self,
        d_outputs: ArrayView2<Accum<K>>,
        coeffs: ArrayView2<Accum<K>>,
        outputs: ArrayView2<Accum<K>>,
        options: &Options<Accum<K>>,
    ) -> Result<Gradients<Accum<K>>, Error> {
        let shape = Shape::from(validate::backward(&d_outputs, &coeffs, &outputs, options)?);
        let (device, len) = (self.kernel.device(), d_outputs.len());
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
        self.kernel.backward_into(
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

/// Copies a view of any strides to the device, row after row.
pub(super) fn send<S: Storage, D: Dimension>(
    device: &Device,
    name: &'static str,
    array: ArrayView<S::Accum, D>,
) -> Result<Buffer<S>, Error> {
    copy(device, name, array.len(), array.iter().map(|&number| S::narrow(number)))
}

/// Copies the initial state to the device, if there is one.
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

/// Allocates an array full of NaN on the device.
pub(super) fn results<T: Pod>(
    device: &Device,
    name: &'static str,
    len: usize,
) -> Result<Buffer<T>, Error> {
    let mut buffer = device.allocate_named(name, len)?;
    buffer.poison()?;
    Ok(buffer)
}

/// Copies an array of this shape to the host.
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
