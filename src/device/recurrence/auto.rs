//! The recurrence on a device, by the kernel that is the fastest for each call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::{BackwardOptions, ForwardOptions, Recurrence, Shape};
use crate::Error;
use crate::device::{Buffer, Device, Launched, Storage, lock};
use crate::kernels::{KernelChoice, Pass};

/// How many shapes are remembered with their kernels; then all are forgotten, for a program whose shapes
/// never repeat.
const MAX_SHAPES: usize = 4096;

/// The recurrence on a device, computed by the kernel that is the fastest for each call: its data stays
/// there.
///
/// Arrays and states are those of [`Recurrence`]. The kernel is that of [`KernelChoice::best`] for the
/// element type, the pass, the shape, and whether all rows are whole words of 16 bytes. It is loaded when it is
/// first needed, which may mean that it is compiled, and takes a second; later calls with the shape look it
/// up. Different kernels round in different orders, so that results of different shapes may differ in
/// their last bits.
///
/// On a GPU a kernel that is not shipped is compiled if NVRTC is found ([`nvrtc`](crate::device::nvrtc)) or
/// was compiled before. One that cannot be compiled is not tried again, and the fastest shipped one takes
/// its place. The emulator takes shipped kernels only. [`AutoRecurrence::compiling`] changes either.
///
/// ```
/// use linrec::device::{AutoRecurrence, Device};
///
/// let device = Device::auto()?;
/// let recurrence = AutoRecurrence::<f32>::new(&device);
/// let inputs = device.upload(&[1.0_f32, 2.0, 3.0, 4.0])?;
/// let coeffs = device.upload(&[0.0_f32, 1.0, 0.5, 0.5])?;
/// let mut outputs = device.allocate(4)?;
/// let launched =
///     recurrence.forward_into(&inputs, &coeffs, &mut outputs, (1, 4), Default::default())?;
/// assert_eq!(outputs.download()?, [1.0, 3.0, 4.5, 6.25]);
/// println!("computed by {}", launched.choice().unwrap());
/// # Ok::<(), linrec::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct AutoRecurrence<S> {
    device: Device,
    compiling: bool,
    kernels: Arc<Mutex<Kernels<S>>>,
}

/// What is known so far.
#[derive(Debug)]
struct Kernels<S> {
    by_case: HashMap<Case, Arc<Recurrence<S>>>,
    loaded: HashMap<KernelChoice, Arc<Recurrence<S>>>,
    refused: HashMap<KernelChoice, Error>,
}

/// What a kernel is picked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Case {
    pass: Pass,
    shape: Shape,
    /// Whether all rows begin and end at multiples of 16 bytes.
    whole: bool,
}

impl<S> Default for Kernels<S> {
    fn default() -> Self {
        let (by_case, loaded, refused) = (HashMap::new(), HashMap::new(), HashMap::new());
        Kernels { by_case, loaded, refused }
    }
}

impl<S: Storage> AutoRecurrence<S> {
    /// The recurrence on this device. Nothing is loaded yet; a clone shares what it loads.
    pub fn new(device: &Device) -> AutoRecurrence<S> {
        let (compiling, kernels) = (!device.is_simt(), Arc::default());
        AutoRecurrence { device: device.clone(), compiling, kernels }
    }

    /// The same, which takes kernels that have to be compiled, or shipped ones only. At first it is true on
    /// a GPU and false on the emulator.
    #[must_use]
    pub fn compiling(self, compiling: bool) -> AutoRecurrence<S> {
        AutoRecurrence { device: self.device, compiling, kernels: Arc::default() }
    }

    /// The device that it computes on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The kernel for a pass over arrays of this shape, loaded if it was not yet.
    ///
    /// `whole` says that all arrays begin at multiples of 16 bytes ([`Buffer::is_aligned_to`]), as whole buffers
    /// do. Which kernel a call took says [`Launched::choice`].
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the device refuses a kernel that is shipped.
    pub fn choice(
        &self,
        pass: Pass,
        shape: impl Into<Shape>,
        whole: bool,
    ) -> Result<KernelChoice, Error> {
        Ok(self.kernel(pass, shape.into(), whole)?.choice())
    }

    /// The kernels that would have been the fastest and could not be had, and why; shipped ones took their
    /// places.
    pub fn refused(&self) -> Vec<(KernelChoice, Error)> {
        lock(&self.kernels).refused.iter().map(|(&choice, error)| (choice, error.clone())).collect()
    }

    /// Computes the outputs of every sequence, asynchronously: see [`Recurrence::forward_into`]. Sequences of any
    /// length are taken, and arrays that begin anywhere.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn forward_into(
        &self,
        inputs: &Buffer<S>,
        coeffs: &Buffer<S>,
        outputs: &mut Buffer<S>,
        shape: impl Into<Shape>,
        options: ForwardOptions<S::Accum>,
    ) -> Result<Launched, Error> {
        let shape = shape.into();
        // Before a kernel is loaded for a shape that no array has.
        shape.check_arrays("forward_into", &[("inputs", inputs)])?;
        let whole = [inputs, coeffs, &*outputs].iter().all(|array| array.is_aligned_to(16));
        let kernel = self.kernel(Pass::Forward, shape, whole)?;
        kernel.forward_into(inputs, coeffs, outputs, shape, options)
    }

    /// Computes the gradients, asynchronously: see [`Recurrence::backward_into`]. Sequences of any length are
    /// taken, and arrays that begin anywhere.
    ///
    /// # Errors
    ///
    /// As there.
    // The arguments are those of the recurrence by one kernel.
    #[allow(clippy::too_many_arguments)]
    pub fn backward_into(
        &self,
        d_outputs: &Buffer<S>,
        coeffs: &Buffer<S>,
        outputs: &Buffer<S>,
        d_inputs: &mut Buffer<S>,
        d_coeffs: &mut Buffer<S>,
        shape: impl Into<Shape>,
        options: BackwardOptions<S::Accum>,
    ) -> Result<Launched, Error> {
        let shape = shape.into();
        shape.check_arrays("backward_into", &[("d_outputs", d_outputs)])?;
        let arrays = [d_outputs, coeffs, outputs, &*d_inputs, &*d_coeffs];
        let whole = arrays.iter().all(|array| array.is_aligned_to(16));
        let kernel = self.kernel(Pass::Backward, shape, whole)?;
        kernel.backward_into(d_outputs, coeffs, outputs, d_inputs, d_coeffs, shape, options)
    }

    fn kernel(&self, pass: Pass, shape: Shape, aligned: bool) -> Result<Arc<Recurrence<S>>, Error> {
        let words = (16 / size_of::<S>()).max(1);
        let case = Case { pass, shape, whole: aligned && shape.seq_len.is_multiple_of(words) };
        if let Some(kernel) = lock(&self.kernels).by_case.get(&case) {
            return Ok(kernel.clone());
        }
        let kernel = self.pick(case)?;
        let mut kernels = lock(&self.kernels);
        if kernels.by_case.len() >= MAX_SHAPES {
            kernels.by_case.clear();
        }
        kernels.by_case.insert(case, kernel.clone());
        Ok(kernel)
    }

    /// The fastest kernel that can be had.
    fn pick(&self, case: Case) -> Result<Arc<Recurrence<S>>, Error> {
        let (num_seqs, seq_len) = (case.shape.num_seqs as u64, case.shape.seq_len as u64);
        let best = |shipped_only| {
            KernelChoice::best(S::ELEMENT, case.pass, num_seqs, seq_len, case.whole, shipped_only)
        };
        if self.compiling {
            let choice = best(false);
            if !lock(&self.kernels).refused.contains_key(&choice) {
                match self.load(choice) {
                    Ok(kernel) => return Ok(kernel),
                    Err(error) => drop(lock(&self.kernels).refused.insert(choice, error)),
                }
            }
        }
        self.load(best(true))
    }

    /// A kernel, loaded once. Nothing is locked meanwhile: two threads that ask at the same time may both
    /// load it.
    fn load(&self, choice: KernelChoice) -> Result<Arc<Recurrence<S>>, Error> {
        if let Some(kernel) = lock(&self.kernels).loaded.get(&choice) {
            return Ok(kernel.clone());
        }
        let kernel = Arc::new(Recurrence::new(&self.device, choice)?);
        Ok(lock(&self.kernels).loaded.entry(choice).or_insert(kernel).clone())
    }
}
