//! A device's kernels as engines over arrays of the host.

use ndarray::ArrayView2;

use super::copying::Copying;
use super::{AutoRecurrence, Device, Recurrence, Storage};
use crate::kernels::{KernelChoice, Program};
use crate::{Engine, Error, Gradients, Options, Outputs};

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
    copying: Copying<Recurrence<S>>,
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
        Ok(KernelEngine { copying: Copying { over_buffers: recurrence, name } })
    }

    /// What it computes with.
    pub fn recurrence(&self) -> &Recurrence<S> {
        &self.copying.over_buffers
    }

    /// What the engine takes, and how often it rounds.
    #[cfg(feature = "contract")]
    pub fn domain(&self) -> crate::contract::Domain {
        use crate::contract::Domain;
        let choice = self.recurrence().choice();
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

/// The same around an [`AutoRecurrence`], which takes the fastest kernel for every shape. Made by
/// [`Device::engine`].
#[derive(Debug, Clone)]
pub struct AutoEngine<S> {
    copying: Copying<AutoRecurrence<S>>,
}

impl Device {
    /// The recurrence on this device over arrays of the host, by the fastest kernel for every shape.
    ///
    /// Arrays are copied to the device and back, which takes longer than the work itself: for data that
    /// is there already take an [`AutoRecurrence`].
    ///
    /// ```
    /// use linrec::device::Device;
    /// use linrec::{Engine, Options};
    /// use ndarray::array;
    ///
    /// let engine = Device::auto()?.engine::<f32>();
    /// let (inputs, coeffs) = (array![[1.0, 2.0, 3.0]], array![[0.0, 1.0, 0.5]]);
    /// let result = engine.forward(inputs.view(), coeffs.view(), &Options::default())?;
    /// assert_eq!(result.outputs, array![[1.0, 3.0, 4.5]]);
    /// # Ok::<(), linrec::Error>(())
    /// ```
    pub fn engine<S: Storage>(&self) -> AutoEngine<S> {
        AutoEngine::from(AutoRecurrence::new(self))
    }
}

/// The engine around a recurrence that was made before, to change what it may compile.
impl<S: Storage> From<AutoRecurrence<S>> for AutoEngine<S> {
    fn from(recurrence: AutoRecurrence<S>) -> AutoEngine<S> {
        let name = format!("auto@{}", recurrence.device().label());
        AutoEngine { copying: Copying { over_buffers: recurrence, name } }
    }
}

impl<S: Storage> AutoEngine<S> {
    /// What it computes with.
    pub fn recurrence(&self) -> &AutoRecurrence<S> {
        &self.copying.over_buffers
    }

    /// What the engine takes, and how often it rounds: any length, and at most as often as a tree.
    #[cfg(feature = "contract")]
    pub fn domain(&self) -> crate::contract::Domain {
        use crate::contract::Domain;
        use crate::kernels::WideConfig;
        Domain {
            levels: Domain::tree_levels,
            log_coeffs: false,
            tile: WideConfig::default().tile(S::ELEMENT) as usize,
            growing: S::ELEMENT != crate::kernels::ElementType::F16,
            ..Domain::default()
        }
    }
}

impl<S: Storage> Engine<S::Accum> for AutoEngine<S> {
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
