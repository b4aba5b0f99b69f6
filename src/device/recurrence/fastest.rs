//! The fastest kernel for each call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::{OneKernel, Shape};
use crate::Error;
use crate::device::lock::lock;
use crate::device::{Device, Storage};
use crate::kernels::{KernelChoice, Pass, Query};

/// The number of shapes whose kernels are remembered. Then all are forgotten, since in some
/// programs shapes never repeat.
const MAX_SHAPES: usize = 4096;

/// The most static shared memory of a kernel that also takes much dynamic shared memory.
const OWN_SHARED_BYTES: u32 = 2 << 10;

/// The fastest kernels, each loaded at its first call; a clone shares them.
#[derive(Debug, Clone)]
pub(super) struct Fastest<S> {
    device: Device,
    shipped_only: bool,
    kernels: Arc<Mutex<LoadedKernels<S>>>,
}

/// The kernels that have been picked, loaded or refused.
#[derive(Debug)]
struct LoadedKernels<S> {
    by_case: HashMap<KernelCase, Arc<OneKernel<S>>>,
    loaded: HashMap<KernelChoice, Arc<OneKernel<S>>>,
    refused: HashMap<KernelChoice, Error>,
}

/// The cases that a kernel is picked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct KernelCase {
    pass: Pass,
    shape: Shape,
    /// True if all rows begin and end at multiples of 16 bytes.
    whole: bool,
}

impl<S> Default for LoadedKernels<S> {
    fn default() -> Self {
        let (by_case, loaded, refused) = (HashMap::new(), HashMap::new(), HashMap::new());
        LoadedKernels { by_case, loaded, refused }
    }
}

impl<S: Storage> Fastest<S> {
    /// Fastest kernels of which none is loaded yet.
    pub(super) fn new(device: &Device, shipped_only: bool) -> Fastest<S> {
        Fastest { device: device.clone(), shipped_only, kernels: Arc::default() }
    }

    /// Returns the kernels that could not be loaded, with the reasons.
    pub(super) fn refused(&self) -> Vec<(KernelChoice, Error)> {
        lock(&self.kernels).refused.iter().map(|(&choice, error)| (choice, error.clone())).collect()
    }

    /// Returns the kernel for arrays of this shape; `aligned` is true if they begin at multiples of
    /// 16 bytes.
    pub(super) fn kernel(
        &self,
        pass: Pass,
        shape: Shape,
        aligned: bool,
    ) -> Result<Arc<OneKernel<S>>, Error> {
        let vector = (16 / size_of::<S>()).max(1);
        let case =
            KernelCase { pass, shape, whole: aligned && shape.seq_len.is_multiple_of(vector) };
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

    /// Picks the fastest kernel that can be loaded.
    fn pick(&self, case: KernelCase) -> Result<Arc<OneKernel<S>>, Error> {
        let (num_seqs, seq_len) = (case.shape.num_seqs as u64, case.shape.seq_len as u64);
        let KernelCase { pass, whole, .. } = case;
        // Some devices do not hold a single large block.
        let limits = self.device.attributes();
        let fits = |choice: KernelChoice| {
            let geometry = choice.geometry(S::ELEMENT, pass, num_seqs, seq_len);
            let together = geometry.shared_out.is_some_and(|shared_out| !shared_out.one_tile);
            geometry.shared_bytes.saturating_add(OWN_SHARED_BYTES) <= limits.shared_bytes_opt_in
                && (limits.cooperative || !together)
        };
        let best = |shipped_only| {
            let element = S::ELEMENT;
            let query = Query { element, pass, num_seqs, seq_len, whole, shipped_only };
            KernelChoice::best_where(query, fits)
        };
        if !self.shipped_only {
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

    /// Loads a kernel once. Nothing is locked meanwhile, so two threads may both load it at the
    /// same time.
    fn load(&self, choice: KernelChoice) -> Result<Arc<OneKernel<S>>, Error> {
        if let Some(kernel) = lock(&self.kernels).loaded.get(&choice) {
            return Ok(kernel.clone());
        }
        let kernel = Arc::new(OneKernel::new(&self.device, choice, &choice.program(S::ELEMENT))?);
        Ok(lock(&self.kernels).loaded.entry(choice).or_insert(kernel).clone())
    }
}
