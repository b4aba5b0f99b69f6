//! Modules and kernels that the driver has compiled.

use std::sync::{Arc, Mutex};

use cudarc::driver::sys::CUfunction_attribute::{
    CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
    CU_FUNC_ATTRIBUTE_NUM_REGS, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
};

use super::Gpu;
use super::code::Failure;
use super::module::{RawFunction, RawModule};
use super::params;
use crate::Error;
use crate::device::function::FunctionAttributes;
use crate::device::lock::lock;
use crate::simt::{Declarations, Param};

/// Shared memory, static and dynamic, that every launch can have without asking.
const SHARED_BYTES: u32 = 48 << 10;
/// What no kernel's parameters can be larger than, in all.
const MOST_PARAM_BYTES: usize = 32 << 10;
/// Behind parameters whose sizes are known twice.
const SPARE_BYTES: usize = 4 << 10;

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
    /// Bytes to be kept zero behind the parameters of a launch, so that the driver reads nothing
    /// else even if a parameter has another size than the PTX seemed to declare: unless the driver
    /// has said what it compiled, as many as there can be at all.
    pub(crate) room: usize,
    pub(crate) attributes: FunctionAttributes,
    pub(super) function: RawFunction,
    /// Dynamic shared memory that launches have been allowed so far.
    allowed_shared: Mutex<u32>,
}

impl GpuModule {
    /// Has the driver compile a PTX text.
    pub(crate) fn load(gpu: &Gpu, ptx: &str) -> Result<GpuModule, Error> {
        let refused =
            |message: String| Error::device(gpu.label(), format!("loading PTX: {message}"));
        let declarations = Declarations::parse(ptx).map_err(|error| refused(error.to_string()))?;
        if ptx.contains('\0') {
            return Err(refused("the text holds a zero byte, where the driver would stop".into()));
        }
        let mut log = String::new();
        let module = RawModule::load(&gpu.context, ptx, &mut log);
        let module = gpu.check(&format!("loading PTX{}{log}", version(ptx)), module)?;
        let module = Arc::new(module);
        let mut kernels = Vec::new();
        for entry in declarations.entries() {
            let operation = format!("loading the kernel `{}`", entry.name());
            let function = gpu.check(&operation, RawFunction::new(&module, entry.name()))?;
            let attributes = gpu.check(&operation, attributes(&function))?;
            let params = entry.params().to_vec();
            let compiled = gpu.check(&operation, function.params(params.len() + 1))?;
            if let Some(compiled) = &compiled {
                params::compare(&params, compiled)
                    .map_err(|why| Error::device(gpu.label(), format!("{operation}: {why}")))?;
            }
            let room = if compiled.is_some() { SPARE_BYTES } else { MOST_PARAM_BYTES };
            kernels.push(Arc::new(GpuKernel {
                name: entry.name().into(),
                params,
                room,
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
        let operation = format!("asking for {bytes} bytes of shared memory per block");
        gpu.check(&operation, self.function.allow_shared(bytes))?;
        *allowed = bytes;
        Ok(())
    }

    /// How many blocks of a launch an SM holds at a time.
    pub(crate) fn occupancy(&self, gpu: &Gpu, threads: u32, shared: u32) -> Result<u32, Error> {
        self.allow_shared(gpu, shared)?;
        let operation = format!("asking for the occupancy of `{}`", self.name);
        gpu.check(&operation, self.function.occupancy(threads, shared))
    }
}

fn attributes(function: &RawFunction) -> Result<FunctionAttributes, Failure> {
    Ok(FunctionAttributes {
        registers: Some(function.attribute(CU_FUNC_ATTRIBUTE_NUM_REGS)?),
        local_bytes: function.attribute(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
        shared_bytes: function.attribute(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
        max_threads_per_block: function.attribute(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
    })
}

/// The version that a PTX text says it has, for messages.
fn version(ptx: &str) -> String {
    let version = ptx.lines().find_map(|line| line.trim_start().strip_prefix(".version"));
    version.map_or_else(String::new, |version| format!(" of version {}", version.trim()))
}
