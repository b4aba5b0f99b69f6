//! Modules and their kernels.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use super::cuda::{Gpu, GpuKernel, GpuModule};
use super::emulator::{self, Emulator};
use super::lock::lock;
use super::{Backend, Device, Dim, Launch};
use crate::Error;
use crate::kernels::Ptx;
use crate::simt::{self, Kernel, Param};

/// Kernels, ready to run on a device. Made by [`Device::module`]; a clone is the same module.
#[derive(Clone)]
pub struct Module {
    device: Device,
    loaded: Loaded,
    /// The kernels' names in C++ and in the PTX, as far as the PTX says.
    entries: Arc<[(String, String)]>,
}

/// What a backend makes of a PTX text.
#[derive(Clone)]
enum Loaded {
    Cuda(Arc<Gpu>, Arc<GpuModule>),
    Simt(Arc<simt::Module>),
}

/// What has been loaded on a device, by its text.
#[derive(Debug)]
pub(super) struct Modules<M>(Mutex<HashMap<String, Arc<M>>>);

/// A kernel, ready to launch. It keeps its module loaded; a clone is the same kernel.
#[derive(Clone)]
pub struct Function {
    pub(super) device: Device,
    pub(super) code: Code,
    attributes: FunctionAttributes,
}

#[derive(Clone)]
pub(super) enum Code {
    Cuda(Arc<Gpu>, Arc<GpuKernel>),
    Simt(Arc<Kernel>),
}

/// What a kernel takes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FunctionAttributes {
    /// 32-bit registers of every thread. The emulator has no register file.
    pub registers: Option<u32>,
    /// Bytes of local memory of every thread: arrays, and registers that did not fit.
    pub local_bytes: u32,
    /// Bytes of shared memory of every block, beside what a launch adds.
    pub shared_bytes: u32,
    /// The largest number of threads of a block.
    pub max_threads_per_block: u32,
}

impl<M> Default for Modules<M> {
    fn default() -> Self {
        Modules(Mutex::default())
    }
}

impl<M> Modules<M> {
    /// The module of this text, loaded if it is not there. Two threads that ask at the same time
    /// may both load it.
    fn get(&self, ptx: &str, load: impl FnOnce() -> Result<M, Error>) -> Result<Arc<M>, Error> {
        if let Some(module) = lock(&self.0).get(ptx) {
            return Ok(module.clone());
        }
        let module = Arc::new(load()?);
        Ok(lock(&self.0).entry(ptx.to_owned()).or_insert(module).clone())
    }
}

impl Module {
    pub(super) fn load(device: &Device, ptx: &str) -> Result<Module, Error> {
        let loaded = match &device.backend {
            Backend::Cuda(gpu) => {
                let module = gpu.modules.get(ptx, || GpuModule::load(gpu, ptx))?;
                Loaded::Cuda(gpu.clone(), module)
            }
            Backend::Simt(emulator) => {
                Loaded::Simt(emulator.modules.get(ptx, || emulator::load(ptx))?)
            }
        };
        let named = Ptx::from_text(ptx.to_owned());
        let entries = named.entries().map(|(name, symbol)| (name.to_owned(), symbol.to_owned()));
        Ok(Module { device: device.clone(), loaded, entries: entries.collect() })
    }

    /// The kernel with this name: as the PTX has it, or as C++ writes it if the PTX is from
    /// [`kernels`](crate::kernels) (`linrec_ref_fwd<float, false>`).
    ///
    /// # Errors
    ///
    /// [`Error::Device`] with the names that there are; on the emulator also if the kernel does
    /// what is not emulated, with the line of the PTX.
    pub fn function(&self, name: &str) -> Result<Function, Error> {
        let entry = self.entries.iter().find(|(entry, _)| entry == name);
        let symbol = entry.map_or(name, |(_, symbol)| symbol);
        self.functions().find(|function| function.name() == symbol).ok_or_else(|| {
            if let Loaded::Simt(module) = &self.loaded
                && let Some(refusal) = module.refusal(symbol)
            {
                let message = format!("the kernel `{name}` is not emulated: {refusal}");
                return Error::device(self.device.label(), message);
            }
            let shown = |function: Function| {
                let entry = self.entries.iter().find(|(_, symbol)| symbol == function.name());
                format!("`{}`", entry.map_or(function.name(), |(entry, _)| entry))
            };
            let names: Vec<_> = self.functions().map(shown).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let message = format!("the module has no kernel `{name}`; its kernels: {names}");
            Error::device(self.device.label(), message)
        })
    }

    /// All kernels; on the emulator those that it can run.
    pub fn functions(&self) -> impl Iterator<Item = Function> {
        let codes: Vec<Code> = match &self.loaded {
            Loaded::Cuda(gpu, module) => module
                .kernels
                .iter()
                .map(|kernel| Code::Cuda(gpu.clone(), kernel.clone()))
                .collect(),
            Loaded::Simt(module) => module.kernels().cloned().map(Code::Simt).collect(),
        };
        codes.into_iter().map(|code| Function {
            device: self.device.clone(),
            attributes: code.attributes(),
            code,
        })
    }
}

impl Function {
    /// The kernel's name in the PTX.
    pub fn name(&self) -> &str {
        match &self.code {
            Code::Cuda(_, kernel) => &kernel.name,
            Code::Simt(kernel) => kernel.name(),
        }
    }

    /// Its parameters, in order.
    pub fn params(&self) -> &[Param] {
        match &self.code {
            Code::Cuda(_, kernel) => &kernel.params,
            Code::Simt(kernel) => kernel.params(),
        }
    }

    /// What it takes of registers and memory.
    pub fn attributes(&self) -> &FunctionAttributes {
        &self.attributes
    }

    /// The device that it runs on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// How many blocks of `threads` threads, with `shared_bytes` bytes of dynamic shared memory, an
    /// SM holds at a time. `None` on the emulator.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the device does not take such blocks.
    pub fn occupancy(&self, threads: u32, shared_bytes: u32) -> Result<Option<u32>, Error> {
        match &self.code {
            Code::Cuda(gpu, kernel) => kernel.occupancy(gpu, threads, shared_bytes).map(Some),
            Code::Simt(_) => Ok(None),
        }
    }

    /// How many blocks of `threads` threads, with `shared_bytes` bytes of dynamic shared memory
    /// each, the whole device holds at once: as many as a [cooperative](Launch::cooperative) launch
    /// can have. On a GPU that is [`Function::occupancy`] times the number of SMs. The emulator
    /// says 8 whatever the blocks, since few are soon emulated; it takes more.
    ///
    /// Results must not depend on it: another GPU, another driver or a change of the kernel gives
    /// another number.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the device does not take such blocks, or takes no cooperative launches.
    pub fn resident_blocks(&self, threads: u32, shared_bytes: u32) -> Result<u32, Error> {
        let operation = || format!("asking how many blocks of `{}` fit at once", self.name());
        let refused = |why: String| {
            Err(Error::device(self.device.label(), format!("{}: {why}", operation())))
        };
        let limits = self.device.attributes();
        let most = limits.max_threads_per_block.min(self.attributes.max_threads_per_block);
        if threads == 0 || threads > most {
            return refused(format!("a block has 1 to {most} threads, not {threads}"));
        }
        let (fixed, most) = (self.attributes.shared_bytes, limits.shared_bytes_opt_in);
        if u64::from(shared_bytes) + u64::from(fixed) > u64::from(most) {
            return refused(format!(
                "{shared_bytes} bytes of shared memory beside the kernel's own {fixed} are too many; a \
                 block has {most} at most"
            ));
        }
        if !limits.cooperative {
            return refused("the device takes no cooperative launches".into());
        }
        match &self.code {
            Code::Cuda(gpu, kernel) => {
                let each = kernel.occupancy(gpu, threads, shared_bytes)?;
                Ok(each.saturating_mul(limits.multiprocessors))
            }
            Code::Simt(_) => Ok(Emulator::RESIDENT_BLOCKS),
        }
    }

    /// Begins a launch of `grid` blocks of `block` threads each; numbers or tuples.
    ///
    /// ```
    /// # use linrec::device::Device;
    /// # let ptx = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry nothing()\n{ ret; }";
    /// # let device = Device::simt();
    /// # let function = device.module(ptx)?.function("nothing")?;
    /// function.launch(100, 256).run(&device.stream())?;
    /// function.launch((10, 10), (16, 16)).run(&device.stream())?;
    /// # Ok::<(), linrec::Error>(())
    /// ```
    pub fn launch<'a>(&'a self, grid: impl Into<Dim>, block: impl Into<Dim>) -> Launch<'a> {
        Launch::new(self, grid.into(), block.into())
    }
}

impl Code {
    fn attributes(&self) -> FunctionAttributes {
        match self {
            Code::Cuda(_, kernel) => kernel.attributes.clone(),
            Code::Simt(kernel) => emulator::function_attributes(kernel),
        }
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.functions()).finish()
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.name(), self.device.label())
    }
}
