//! The recurrence on a device as an engine over arrays of the host.

use ndarray::ArrayView2;

use super::copying::Copying;
use super::{Choice, Device, Recurrence, Storage};
use crate::kernels::{KernelChoice, Program};
use crate::{Engine, Error, Gradients, Options, Outputs};

/// The copying wrapper around a [`Recurrence`]: arrays go to the device and results come back.
///
/// Made for tests and for arrays at hand; where speed matters, data stays on the device. Results
/// are filled with NaN before a kernel writes them. Of storage narrower than the numbers computed
/// with, the arrays are rounded on their way. All options are supported
/// ([logarithms](Recurrence#logarithms) by a kernel of their own).
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
#[derive(Debug, Clone)]
pub struct KernelEngine<S> {
    copying: Copying<S>,
}

impl Device {
    /// The recurrence on this device over arrays of the host, by the fastest kernel for every
    /// shape.
    ///
    /// Arrays are copied to the device and back, which takes longer than the work itself: for data
    /// that is there already take a [`Recurrence`].
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

/// The engine around a recurrence that was made before.
impl<S: Storage> From<Recurrence<S>> for KernelEngine<S> {
    fn from(recurrence: Recurrence<S>) -> KernelEngine<S> {
        let name = format!("{}@{}", recurrence.choice(), recurrence.device().label());
        KernelEngine { copying: Copying { over_buffers: recurrence, name } }
    }
}

impl<S: Storage> KernelEngine<S> {
    /// An engine of a kernel on the device, or of the fastest ones ([`Choice::Fastest`]).
    ///
    /// # Errors
    ///
    /// As for [`Recurrence::new`].
    pub fn new(device: &Device, choice: impl Into<Choice>) -> Result<KernelEngine<S>, Error> {
        Recurrence::new(device, choice).map(KernelEngine::from)
    }

    /// An engine of another source with the kernel's entries: see [`Recurrence::from_program`].
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

    /// What it computes with.
    pub fn recurrence(&self) -> &Recurrence<S> {
        &self.copying.over_buffers
    }
}

impl<S: Storage> Engine<S::Accum> for KernelEngine<S> {
    fn name(&self) -> &str {
        &self.copying.name
    }

    fn forward(
        &self,
        inputs: ArrayView2<S::Accum>,
        coeffs: ArrayView2<S::Accum>,
        options: &Options<S::Accum>,
    ) -> Result<Outputs<S::Accum>, Error> {
        self.copying.forward(inputs, coeffs, options)
    }

    fn backward(
        &self,
        d_outputs: ArrayView2<S::Accum>,
        coeffs: ArrayView2<S::Accum>,
        outputs: ArrayView2<S::Accum>,
        options: &Options<S::Accum>,
    ) -> Result<Gradients<S::Accum>, Error> {
        self.copying.backward(d_outputs, coeffs, outputs, options)
    }
}
