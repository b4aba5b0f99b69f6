//! Modules and their kernels.
//!
//! A backend makes a [`LoadedModule`] of a PTX text once and returns the same one for the same text
//! from then on. [`Module`] and [`Function`] are handles to it, with the names that C++ has for the
//! kernels. The tests are `loading` and `programs` in `tests/suite/device`.

use std::fmt;
use std::sync::{Arc, Mutex};

use super::backend::Handle;
use super::lock::lock;
use super::{Device, Dim, Launch};
use crate::Error;
use crate::kernels::Ptx;
use crate::simt::Param;

/// The number of blocks that the emulator reports to hold at once, whatever the blocks. They take
/// turns on one core, so few blocks are done soon. Eight are enough for a first block, a last one
/// and some between.
const EMULATED_RESIDENT_BLOCKS: u32 = 8;

/// Kernels, ready to run on a device. Made by [`Device::module`]; a clone is the same module.
#[derive(Clone)]
pub struct Module {
    device: Device,
    loaded: Arc<LoadedModule>,
    /// The kernels' names in C++ and in the PTX, as far as the PTX has the former.
    entries: Arc<[(String, String)]>,
}

/// A kernel, ready to launch. It keeps its module loaded; a clone is the same kernel.
#[derive(Clone)]
pub struct Function {
    pub(super) device: Device,
    pub(super) kernel: Arc<LoadedKernel>,
}

/// A module as a backend has loaded it.
#[derive(Debug)]
pub(super) struct LoadedModule {
    pub(super) kernels: Vec<Arc<LoadedKernel>>,
    /// The names of kernels that cannot run on this device, and why.
    pub(super) refused: Vec<(String, String)>,
}

/// A kernel of a loaded module.
#[derive(Debug)]
pub(super) struct LoadedKernel {
    /// The name in the PTX.
    pub(super) name: Arc<str>,
    pub(super) params: Vec<Param>,
    pub(super) attributes: FunctionAttributes,
    /// The backend's own object, which it launches.
    pub(super) code: Handle,
}

/// The modules that have been loaded on a device, with their texts.
///
/// They are compared one by one: most differ in their lengths, and a hash would read all of a text.
#[derive(Debug)]
pub(super) struct Modules(Mutex<Vec<(String, Arc<LoadedModule>)>>);

/// The registers and the memory that a kernel needs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FunctionAttributes {
    /// 32-bit registers of every thread. The emulator has no register file.
    pub registers: Option<u32>,
    /// Bytes of local memory of every thread: arrays, and registers that did not fit.
    pub local_bytes: u32,
    /// Bytes of shared memory of every block, without what a launch adds.
    pub shared_bytes: u32,
    /// The largest number of threads of a block.
    pub max_threads_per_block: u32,
}

impl Modules {
    pub(super) const fn new() -> Modules {
        Modules(Mutex::new(Vec::new()))
    }

    /// Returns the module of this text, and loads it first if it is missing. Two threads that call
    /// this at the same time may both load it.
    fn get(
        &self,
        ptx: &str,
        load: impl FnOnce() -> Result<LoadedModule, Error>,
    ) -> Result<Arc<LoadedModule>, Error> {
        let known = |loaded: &[(String, Arc<LoadedModule>)]| {
            loaded.iter().find(|(text, _)| text == ptx).map(|(_, module)| module.clone())
        };
        if let Some(module) = known(&lock(&self.0)) {
            return Ok(module);
        }
        let module = Arc::new(load()?);
        let mut loaded = lock(&self.0);
        Ok(known(&loaded).unwrap_or_else(|| {
            loaded.push((ptx.to_owned(), module.clone()));
            module
        }))
    }
}

impl Module {
    pub(super) fn load(device: &Device, ptx: &str) -> Result<Module, Error> {
        let backend = &device.backend;
        let loaded = backend.modules().get(ptx, || backend.load(ptx))?;
        let named = Ptx::from_text(ptx.to_owned());
        let entries = named.entries().map(|(name, symbol)| (name.to_owned(), symbol.to_owned()));
        Ok(Module { device: device.clone(), loaded, entries: entries.collect() })
    }

    /// The kernel with this name: as the PTX has it, or as C++ writes it if the PTX is from
    /// [`kernels`](crate::kernels) (`linrec_ref_fwd<float, false>`).
    ///
    /// # Errors
    ///
    /// [`Error::Device`] with the names of the kernels; on the emulator also if the kernel has an
    /// instruction that is not emulated, with the line of the PTX.
    pub fn function(&self, name: &str) -> Result<Function, Error> {
        let entry = self.entries.iter().find(|(entry, _)| entry == name);
        let symbol = entry.map_or(name, |(_, symbol)| symbol);
        self.functions().find(|function| function.name() == symbol).ok_or_else(|| {
            let refused = self.loaded.refused.iter().find(|(refused, _)| refused == symbol);
            if let Some((_, refusal)) = refused {
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

    /// Returns all kernels; on the emulator the kernels that it can run.
    pub fn functions(&self) -> impl Iterator<Item = Function> {
        let function = |kernel: &Arc<LoadedKernel>| Function {
            device: self.device.clone(),
            kernel: kernel.clone(),
        };
        self.loaded.kernels.iter().map(function)
    }
}

impl Function {
    /// The kernel's name in the PTX.
    pub fn name(&self) -> &str {
        &self.kernel.name
    }

    /// Its parameters, in order.
    pub fn params(&self) -> &[Param] {
        &self.kernel.params
    }

    /// The registers and the memory that it needs.
    pub fn attributes(&self) -> &FunctionAttributes {
        &self.kernel.attributes
    }

    /// The device that it runs on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Returns how many blocks of `threads` threads, with `shared_bytes` bytes of dynamic shared
    /// memory, an SM holds at a time; `None` on the emulator.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the device does not take such blocks.
    pub fn occupancy(&self, threads: u32, shared_bytes: u32) -> Result<Option<u32>, Error> {
        self.device.backend.occupancy(&self.kernel, threads, shared_bytes)
    }

    /// Returns how many blocks of `threads` threads, with `shared_bytes` bytes of dynamic shared
    /// memory each, the whole device holds at once. A [cooperative](Launch::cooperative) launch can
    /// have that many blocks. On a GPU it is [`Function::occupancy`] times the number of SMs. The
    /// emulator returns 8 for all blocks, since few blocks are soon emulated; it takes more.
    ///
    /// Results must not depend on it: another GPU, another driver or a change of the kernel gives
    /// another number.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the device does not take such blocks, or takes no cooperative launches.
    pub fn resident_blocks(&self, threads: u32, shared_bytes: u32) -> Result<u32, Error> {
        let refused = |why: String| {
            let operation = format!("asking how many blocks of `{}` fit at once", self.name());
            Error::device(self.device.label(), format!("{operation}: {why}"))
        };
        let limits = self.device.attributes();
        let most = limits.max_threads_per_block.min(self.attributes().max_threads_per_block);
        if threads == 0 || threads > most {
            return Err(refused(format!("a block has 1 to {most} threads, not {threads}")));
        }
        self.check_shared(shared_bytes, limits.shared_bytes_opt_in).map_err(refused)?;
        if !limits.cooperative {
            return Err(refused("the device takes no cooperative launches".into()));
        }
        let each = self.occupancy(threads, shared_bytes)?;
        Ok(each
            .map_or(EMULATED_RESIDENT_BLOCKS, |each| each.saturating_mul(limits.multiprocessors)))
    }

    /// Refuses dynamic shared memory if a block has `most` bytes at most.
    pub(super) fn check_shared(&self, shared_bytes: u32, most: u32) -> Result<(), String> {
        let fixed = self.attributes().shared_bytes;
        if u64::from(shared_bytes) + u64::from(fixed) <= u64::from(most) {
            return Ok(());
        }
        Err(format!(
            "{shared_bytes} bytes of shared memory beside the kernel's own {fixed} are too many; a \
             block has {most} at most"
        ))
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
