//! Modules and kernels that the driver has compiled.

use std::ffi::{CString, c_void};
use std::sync::{Arc, Mutex};

use cudarc::driver::sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
use cudarc::driver::{CudaFunction, DriverError, sys};
use cudarc::nvrtc::Ptx;

use super::Gpu;
use crate::Error;
use crate::device::function::FunctionAttributes;
use crate::device::lock;
use crate::device::signature::signatures;
use crate::simt::Param;

/// Shared memory, static and dynamic, that every launch can have without asking.
const SHARED_BYTES: u32 = 48 << 10;
const LOG_BYTES: usize = 8 << 10;

/// A module, compiled for the GPU.
#[derive(Debug)]
pub(crate) struct GpuModule {
    pub(crate) kernels: Vec<Arc<GpuKernel>>,
}

/// A kernel, ready to launch. It keeps its module.
#[derive(Debug)]
pub(crate) struct GpuKernel {
    pub(crate) name: Arc<str>,
    pub(crate) params: Vec<Param>,
    pub(crate) attributes: FunctionAttributes,
    pub(super) function: CudaFunction,
    /// Dynamic shared memory that launches have been allowed so far.
    allowed_shared: Mutex<u32>,
}

impl GpuModule {
    /// Has the driver compile a PTX text.
    pub(crate) fn load(gpu: &Gpu, ptx: &str) -> Result<GpuModule, Error> {
        let refused =
            |message: String| Error::device(gpu.label(), format!("loading PTX: {message}"));
        let signatures = signatures(ptx).map_err(refused)?;
        if ptx.contains('\0') {
            return Err(refused("the text holds a zero byte, where the driver would stop".into()));
        }
        let module = match gpu.context.load_module(Ptx::from_src(ptx)) {
            Ok(module) => module,
            Err(error) => {
                let log = compiler_log(gpu, ptx);
                return gpu.check(&format!("loading PTX{}{log}", version(ptx)), Err(error));
            }
        };
        let mut kernels = Vec::new();
        for signature in signatures {
            let operation = format!("loading the kernel `{}`", signature.name);
            let function = gpu.check(&operation, module.load_function(&signature.name))?;
            let attributes = gpu.check(&operation, attributes(&function))?;
            kernels.push(Arc::new(GpuKernel {
                name: signature.name.into(),
                params: signature.params,
                allowed_shared: Mutex::new(SHARED_BYTES.saturating_sub(attributes.shared_bytes)),
                attributes,
                function,
            }));
        }
        Ok(GpuModule { kernels })
    }
}

impl GpuKernel {
    /// Makes launches with this much dynamic shared memory possible.
    pub(crate) fn allow_shared(&self, gpu: &Gpu, bytes: u32) -> Result<(), Error> {
        let mut allowed = lock(&self.allowed_shared);
        if bytes <= *allowed {
            return Ok(());
        }
        let attribute = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        let set = gpu.context.bind_to_thread().and_then(|()| {
            self.function.set_attribute(attribute, i32::try_from(bytes).unwrap_or(i32::MAX))
        });
        gpu.check(&format!("asking for {bytes} bytes of shared memory per block"), set)?;
        *allowed = bytes;
        Ok(())
    }

    /// How many blocks of a launch a multiprocessor holds at a time.
    pub(crate) fn occupancy(&self, gpu: &Gpu, threads: u32, shared: u32) -> Result<u32, Error> {
        self.allow_shared(gpu, shared)?;
        let blocks = gpu.context.bind_to_thread().and_then(|()| {
            let shared = shared as usize;
            self.function.occupancy_max_active_blocks_per_multiprocessor(threads, shared, None)
        });
        gpu.check(&format!("asking for the occupancy of `{}`", self.name), blocks)
    }
}

fn attributes(function: &CudaFunction) -> Result<FunctionAttributes, DriverError> {
    let number = |value: i32| u32::try_from(value).unwrap_or(0);
    Ok(FunctionAttributes {
        registers: Some(number(function.num_regs()?)),
        local_bytes: number(function.local_size_bytes()?),
        shared_bytes: number(function.shared_size_bytes()?),
        max_threads_per_block: number(function.max_threads_per_block()?),
    })
}

/// The version that a PTX text says it has, for messages.
fn version(ptx: &str) -> String {
    let version = ptx.lines().find_map(|line| line.trim_start().strip_prefix(".version"));
    version.map_or_else(String::new, |version| format!(" of version {}", version.trim()))
}

/// What the driver's compiler says of a PTX text that it refused, ready to follow other words.
#[allow(unsafe_code)]
fn compiler_log(gpu: &Gpu, ptx: &str) -> String {
    let Ok(ptx) = CString::new(ptx) else { return String::new() };
    if gpu.context.bind_to_thread().is_err() {
        return String::new();
    }
    let mut log = vec![0_u8; LOG_BYTES];
    let mut options = [
        sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
        sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
    ];
    // The size is passed in place of a pointer, as the driver wants it.
    let mut values = [log.as_mut_ptr().cast::<c_void>(), LOG_BYTES as *mut c_void];
    let mut module = std::ptr::null_mut();
    // SAFETY: (1) the context is current; (2) the text ends in a zero byte; (3) both arrays have the
    // length that is passed; (4) the log is as long as its option says, and everything outlives
    // the call; (5) a module that loads after all is unloaded, and nothing has used it.
    unsafe {
        let code = sys::cuModuleLoadDataEx(
            &mut module,
            ptx.as_ptr().cast(),
            options.len() as u32,
            options.as_mut_ptr(),
            values.as_mut_ptr(),
        );
        if code == sys::CUresult::CUDA_SUCCESS {
            let _ = sys::cuModuleUnload(module);
        }
    }
    let end = log.iter().position(|&byte| byte == 0).unwrap_or(0);
    let text = String::from_utf8_lossy(&log[..end]);
    let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if lines.is_empty() { String::new() } else { format!(" ({})", lines.join("; ")) }
}
