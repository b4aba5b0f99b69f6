//! Modules and kernels, as the driver has them.

use std::ffi::{CString, c_int, c_uint, c_void};
use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::CUfunction_attribute::{
    self as Attribute, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
};
use cudarc::driver::sys::CUjit_option::{
    CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
};
use cudarc::driver::sys::{CUfunction, CUmodule, CUresult};

use super::code::Failure;
use super::context::Context;

const LOG_BYTES: usize = 8 << 10;

/// A module as the driver has it, unloaded when it is dropped.
#[derive(Debug)]
pub(super) struct RawModule {
    context: Arc<Context>,
    raw: CUmodule,
}

/// A kernel as the driver has it. It keeps its module.
#[derive(Debug)]
pub(super) struct RawFunction {
    module: Arc<RawModule>,
    raw: CUfunction,
}

// SAFETY: the driver takes the handle on any thread on which its context is current, and every use
// makes it current.
#[allow(unsafe_code)]
unsafe impl Send for RawModule {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Sync for RawModule {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Send for RawFunction {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Sync for RawFunction {}

impl RawModule {
    /// Has the driver compile a PTX text. What its compiler says of one that it refuses is in `log`
    /// then, ready to follow other words.
    #[allow(unsafe_code)]
    pub(super) fn load(
        context: &Arc<Context>,
        ptx: &str,
        log: &mut String,
    ) -> Result<RawModule, Failure> {
        context.bind()?;
        let ptx = string(ptx)?;
        let mut text = vec![0_u8; LOG_BYTES];
        let mut options =
            [CU_JIT_ERROR_LOG_BUFFER as c_int, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES as c_int];
        // The size is passed in place of a pointer, as the driver wants it.
        let size = ptr::without_provenance_mut(LOG_BYTES);
        let mut values = [text.as_mut_ptr().cast::<c_void>(), size];
        let mut raw = ptr::null_mut();
        // SAFETY: (1) the context is current; (2) the text ends in a zero byte; (3) both arrays
        // have the length that is passed; (4) the log is as long as its option says, and everything
        // outlives the call.
        let loaded = unsafe {
            (context.functions.cuModuleLoadDataEx)(
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
            let lines: Vec<_> =
                text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
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
}

impl Drop for RawModule {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        let _ = self.context.bind();
        // SAFETY: (1) the handle is live and not used again; (2) work with the module's kernels is
        // finished first. An error shows in what is done next.
        let _ = unsafe { (self.context.functions.cuModuleUnload)(self.raw) };
    }
}

impl RawFunction {
    #[allow(unsafe_code)]
    pub(super) fn new(module: &Arc<RawModule>, name: &str) -> Result<RawFunction, Failure> {
        let context = &module.context;
        context.bind()?;
        let name = string(name)?;
        let mut raw = ptr::null_mut();
        // SAFETY: (1) the context is current, and the module live; (2) the name ends in a zero
        // byte; (3) `raw` may be written.
        unsafe { (context.functions.cuModuleGetFunction)(&mut raw, module.raw, name.as_ptr()) }
            .check()?;
        if raw.is_null() {
            return Err(Failure::odd("the kernel is null"));
        }
        Ok(RawFunction { module: module.clone(), raw })
    }

    /// The handle; it lives as long as this.
    pub(super) fn raw(&self) -> CUfunction {
        self.raw
    }

    /// Where it is loaded.
    pub(super) fn context(&self) -> &Context {
        &self.module.context
    }

    #[allow(unsafe_code)]
    pub(super) fn attribute(&self, attribute: Attribute) -> Result<u32, Failure> {
        let context = &self.module.context;
        context.bind()?;
        let mut value: c_int = 0;
        // SAFETY: (1) the context is current, and the function live; (2) `value` may be written.
        let asked = unsafe {
            (context.functions.cuFuncGetAttribute)(&mut value, attribute as c_int, self.raw)
        };
        asked.check()?;
        let odd = |_| Failure::odd(format!("{attribute:?} is {value}"));
        u32::try_from(value).map_err(odd)
    }

    /// Makes launches with this much dynamic shared memory possible.
    #[allow(unsafe_code)]
    pub(super) fn allow_shared(&self, bytes: u32) -> Result<(), Failure> {
        let context = &self.module.context;
        context.bind()?;
        let bytes = c_int::try_from(bytes)
            .map_err(|_| Failure::from(CUresult::CUDA_ERROR_INVALID_VALUE))?;
        let attribute = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES as c_int;
        // SAFETY: (1) the context is current, and the function live; (2) the driver refuses what is
        // too much.
        unsafe { (context.functions.cuFuncSetAttribute)(self.raw, attribute, bytes) }.check()
    }

    /// How many blocks an SM holds at a time.
    #[allow(unsafe_code)]
    pub(super) fn occupancy(&self, threads: u32, shared: u32) -> Result<u32, Failure> {
        let context = &self.module.context;
        context.bind()?;
        let threads = c_int::try_from(threads)
            .map_err(|_| Failure::from(CUresult::CUDA_ERROR_INVALID_VALUE))?;
        let mut blocks: c_int = 0;
        // SAFETY: (1) the context is current, and the function live; (2) `blocks` may be written;
        // (3) no flags are asked for.
        let asked = unsafe {
            (context.functions.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)(
                &mut blocks,
                self.raw,
                threads,
                shared as usize,
                0,
            )
        };
        asked.check()?;
        u32::try_from(blocks).map_err(|_| Failure::odd(format!("{blocks} blocks fit")))
    }
}

/// Text for the driver, which would stop at a zero byte.
fn string(text: &str) -> Result<CString, Failure> {
    CString::new(text).map_err(|_| Failure::from(CUresult::CUDA_ERROR_INVALID_VALUE))
}
