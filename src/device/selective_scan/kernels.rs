//! The kernels of the selective scan, and those that are loaded.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex};

use crate::Error;
use crate::device::lock::lock;
use crate::device::{Device, Function, Storage};
use crate::kernels::program;

/// The way in which exponentials are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Exponential {
    /// The instruction of the GPU (`ex2.approx`), with an error of two units in the last place.
    /// The emulator has the bits of compute capability 9.0; those of other GPUs may differ.
    Fast,
    /// Multiply-adds, which are slower and give the same bits on every device.
    Exact,
}

/// The kernels for one type of elements, each loaded at its first call. A clone shares them.
#[derive(Debug, Clone)]
pub(super) struct ScanKernels<S> {
    exponential: Exponential,
    loaded: Arc<Mutex<HashMap<String, Function>>>,
    storage: PhantomData<fn() -> S>,
}

impl<S: Storage> ScanKernels<S> {
    pub(super) fn new(exponential: Exponential) -> ScanKernels<S> {
        ScanKernels { exponential, loaded: Arc::default(), storage: PhantomData }
    }

    pub(super) fn exponential(&self) -> Exponential {
        self.exponential
    }

    /// Returns the kernel `name<S, parameters…, exact>` of a source.
    pub(super) fn function(
        &self,
        device: &Device,
        source: &str,
        name: &str,
        parameters: &[String],
    ) -> Result<Function, Error> {
        let exact = self.exponential == Exponential::Exact;
        let parameters: String =
            parameters.iter().map(|parameter| format!(", {parameter}")).collect();
        self.entry(
            device,
            source,
            format!("{name}<{}{parameters}, {exact}>", S::ELEMENT.cuda_name()),
        )
    }

    /// Returns the kernel of a source whose entry C++ writes like this.
    pub(super) fn entry(
        &self,
        device: &Device,
        source: &str,
        entry: String,
    ) -> Result<Function, Error> {
        if let Some(function) = lock(&self.loaded).get(&entry) {
            return Ok(function.clone());
        }
        let program = program(source).ok_or_else(|| {
            Error::device(device.label(), format!("the library was built without `{source}`"))
        })?;
        let function = device.program(&program.with_entries([&entry]))?.function(&entry)?;
        Ok(lock(&self.loaded).entry(entry).or_insert(function).clone())
    }
}
