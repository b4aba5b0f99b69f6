//! Modules and kernels that the driver has compiled.
//!
//! The driver reads the arguments of a launch from memory that the library passes, and it reads as
//! many bytes as the compiled kernel has. So a module is refused whose parameters it compiled in
//! another way than the PTX declares them, and every kernel has spare zeros behind its arguments.
//! The tests are `a_mistaken_size_reads_zeros` in `launch.rs`, and in `tests/suite/driver` the
//! tests of parameters and of PTX that is refused.

use std::ffi::{CString, c_int, c_uint, c_void};
use std::ptr;
use std::sync::{Arc, Mutex};

use super::Gpu;
use super::context::Context;
use super::error::Failure;
use super::params::{self, ParamPlace};
use super::sys::{
    Attribute, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
    CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, CU_FUNC_ATTRIBUTE_NUM_REGS,
    CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER,
    CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CUDA_ERROR_INVALID_VALUE, CUfunction, CUmodule,
};
use crate::Error;
use crate::device::function::{FunctionAttributes, LoadedKernel, LoadedModule};
use crate::device::lock::lock;
use crate::simt::Declarations;

/// The bytes of the log that the driver's compiler writes to.
const LOG_BYTES: usize = 8 << 10;
/// Shared memory, static and dynamic, that every launch can have without asking.
const SHARED_BYTES: u32 = 48 << 10;
/// The bytes that all parameters of a kernel may have together.
const MOST_PARAM_BYTES: usize = 32 << 10;
/// The spare bytes behind parameters whose sizes are known twice.
const SPARE_BYTES: usize = 4 << 10;

/// A kernel, ready to launch. It keeps its module.
#[derive(Debug)]
pub(super) struct GpuKernel {
    pub(super) name: Arc<str>,
    pub(super) raw: CUfunction,
    /// The number of zero bytes behind the parameters of a launch, so that the driver reads nothing
    /// else even if a parameter has another size than the PTX seems to declare. It is the most that
    /// parameters can have at all, unless the driver returned what it compiled.
    pub(super) spare_bytes: usize,
    module: Arc<RawModule>,
    /// The dynamic shared memory that launches are allowed so far.
    allowed_shared: Mutex<u32>,
}

/// A module as the driver has it, unloaded when it is dropped.
#[derive(Debug)]
struct RawModule {
    context: Arc<Context>,
    raw: CUmodule,
}

/// Has the driver compile a PTX text.
pub(super) fn load(gpu: &Gpu, ptx: &str) -> Result<LoadedModule, Error> {
    let refused = |message: String| Error::device(&*gpu.label, format!("loading PTX: {message}"));
    let declarations = Declarations::parse(ptx).map_err(|error| refused(error.to_string()))?;
    if ptx.contains('\0') {
        return Err(refused("the text holds a zero byte, where the driver would stop".into()));
    }
    let mut log = String::new();
    let module = RawModule::load(&gpu.context, ptx, &mut log);
    let module = Arc::new(gpu.check(&format!("loading PTX{}{log}", version(ptx)), module)?);
    let mut kernels = Vec::new();
    for entry in declarations.entries() {
        let operation = format!("loading the kernel `{}`", entry.name());
        let raw = gpu.check(&operation, module.function(entry.name()))?;
        let attributes = gpu.check(&operation, module.attributes(raw))?;
        let params = entry.params().to_vec();
        let compiled = gpu.check(&operation, module.params(raw, params.len() + 1))?;
        if let Some(compiled) = &compiled {
            params::compare(&params, compiled)
                .map_err(|why| Error::device(&*gpu.label, format!("{operation}: {why}")))?;
        }
        let name: Arc<str> = entry.name().into();
        let code = Arc::new(GpuKernel {
            name: name.clone(),
            raw,
            spare_bytes: if compiled.is_some() { SPARE_BYTES } else { MOST_PARAM_BYTES },
            module: module.clone(),
            allowed_shared: Mutex::new(SHARED_BYTES.saturating_sub(attributes.shared_bytes)),
        });
        kernels.push(Arc::new(LoadedKernel { name, params, attributes, code }));
    }
    Ok(LoadedModule { kernels, refused: Vec::new() })
}

impl GpuKernel {
    /// Allows launches with this much dynamic shared memory.
    pub(super) fn allow_shared(&self, gpu: &Gpu, bytes: u32) -> Result<(), Error> {
        let mut allowed = lock(&self.allowed_shared);
        if bytes <= *allowed {
            return Ok(());
        }
        let set = || {
            let cuda = self.module.context.bind()?;
            let attribute = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES.number;
            let bytes = c_int::try_from(bytes).map_err(|_| CUDA_ERROR_INVALID_VALUE)?;
            // SAFETY: (1) the context is current, and the function live; (2) the driver refuses a
            // number that is too large.
            unsafe { (cuda.cuFuncSetAttribute)(self.raw, attribute, bytes) }.check()
        };
        gpu.check(&format!("asking for {bytes} bytes of shared memory per block"), set())?;
        *allowed = bytes;
        Ok(())
    }

    /// Returns how many blocks of a launch an SM holds at a time.
    pub(super) fn occupancy(&self, gpu: &Gpu, threads: u32, shared: u32) -> Result<u32, Error> {
        self.allow_shared(gpu, shared)?;
        let ask = || {
            let cuda = self.module.context.bind()?;
            let ask = cuda.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags;
            let threads = c_int::try_from(threads).map_err(|_| CUDA_ERROR_INVALID_VALUE)?;
            let mut blocks: c_int = 0;
            // SAFETY: (1) the context is current, and the function live; (2) `blocks` may be
            // written; (3) no flags are passed.
            unsafe { ask(&mut blocks, self.raw, threads, shared as usize, 0) }.check()?;
            u32::try_from(blocks).map_err(|_| Failure::odd(format!("{blocks} blocks fit")))
        };
        gpu.check(&format!("asking for the occupancy of `{}`", self.name), ask())
    }
}

impl RawModule {
    /// Has the driver compile a PTX text. If it refuses the text, `log` holds its compiler's
    /// messages, ready to follow other words.
    fn load(context: &Arc<Context>, ptx: &str, log: &mut String) -> Result<RawModule, Failure> {
        let cuda = context.bind()?;
        let ptx = string(ptx)?;
        let mut text = vec![0_u8; LOG_BYTES];
        let mut options = [CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
        // The driver takes the size in place of a pointer.
        let size = ptr::without_provenance_mut(LOG_BYTES);
        let mut values = [text.as_mut_ptr().cast::<c_void>(), size];
        let mut raw = CUmodule::NULL;
        // SAFETY: (1) the context is current; (2) the text ends in a zero byte; (3) both arrays
        // have the length that is passed; (4) the log is as long as its option says, and everything
        // outlives the call.
        let loaded = unsafe {
            (cuda.cuModuleLoadDataEx)(
                &mut raw,
                ptx.as_ptr().cast(),
                options.len() as c_uint,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        if let Err(failure) = loaded.check() {
            let end = text.iter().position(|&byte| byte == 0).unwrap_or(LOG_BYTES);
            let text = String::from_utf8_lossy(&text[..end]);
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            let lines: Vec<_> = lines.collect();
            if !lines.is_empty() {
                *log = format!(" ({})", lines.join("; "));
            }
            return Err(failure);
        }
        if raw.is_null() {
            return Err(Failure::odd("the module is null"));
        }
        Ok(RawModule { context: context.clone(), raw })
    }

    fn function(&self, name: &str) -> Result<CUfunction, Failure> {
        let cuda = self.context.bind()?;
        let name = string(name)?;
        let mut raw = CUfunction::NULL;
        // SAFETY: (1) the context is current, and the module live; (2) the name ends in a zero
        // byte; (3) `raw` may be written.
        unsafe { (cuda.cuModuleGetFunction)(&mut raw, self.raw, name.as_ptr()) }.check()?;
        if raw.is_null() { Err(Failure::odd("the kernel is null")) } else { Ok(raw) }
    }

    fn attributes(&self, function: CUfunction) -> Result<FunctionAttributes, Failure> {
        let attribute = |attribute: Attribute| {
            let cuda = self.context.bind()?;
            let mut value: c_int = 0;
            // SAFETY: (1) the context is current, and the function live; (2) `value` may be
            // written.
            let asked =
                unsafe { (cuda.cuFuncGetAttribute)(&mut value, attribute.number, function) };
            asked.check()?;
            let odd = |_| Failure::odd(format!("{} is {value}", attribute.name));
            u32::try_from(value).map_err(odd)
        };
        Ok(FunctionAttributes {
            registers: Some(attribute(CU_FUNC_ATTRIBUTE_NUM_REGS)?),
            local_bytes: attribute(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            shared_bytes: attribute(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
            max_threads_per_block: attribute(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        })
    }

    /// Returns the places of a function's parameters, of `most` at most; `None` if the driver does
    /// not return them, as before CUDA 12.4.
    fn params(
        &self,
        function: CUfunction,
        most: usize,
    ) -> Result<Option<Vec<ParamPlace>>, Failure> {
        let Some(ask) = self.context.functions.cuFuncGetParamInfo else { return Ok(None) };
        self.context.bind()?;
        let mut places = Vec::new();
        while places.len() < most {
            let (mut offset, mut bytes) = (0_usize, 0_usize);
            // SAFETY: (1) the context is current, and the function live; (2) both numbers may be
            // written.
            match unsafe { ask(function, places.len(), &mut offset, &mut bytes) }.check() {
                Ok(()) => places.push((offset, bytes)),
                // There are no more.
                Err(failure) if failure.is(CUDA_ERROR_INVALID_VALUE) => break,
                Err(failure) => return Err(failure),
            }
        }
        Ok(Some(places))
    }
}

impl Drop for RawModule {
    fn drop(&mut self) {
        let _ = self.context.bind();
        // SAFETY: (1) the handle is live and not used again; (2) the driver finishes work with the
        // module's kernels first. An error shows in the next operation.
        let _ = unsafe { (self.context.functions.cuModuleUnload)(self.raw) };
    }
}

/// Converts text for the driver, which would stop at a zero byte.
fn string(text: &str) -> Result<CString, Failure> {
    CString::new(text).map_err(|_| CUDA_ERROR_INVALID_VALUE.into())
}

/// Returns the version in a PTX text, for messages.
fn version(ptx: &str) -> String {
    let version = ptx.lines().find_map(|line| line.trim_start().strip_prefix(".version"));
    version.map_or_else(String::new, |version| format!(" of version {}", version.trim()))
}
