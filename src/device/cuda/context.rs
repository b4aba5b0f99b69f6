//! A context of the driver, and what it is asked for.

use std::ffi::{c_char, c_int};
use std::fmt;
use std::sync::Arc;

use super::error::Failure;
use super::library::{self, Functions};
use super::sys::{
    Attribute, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, CUDA_ERROR_INVALID_DEVICE,
    CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, CUcontext, CUdevice,
};

const NAME_BYTES: usize = 256;

/// The primary context of a GPU, held until this is dropped.
pub(super) struct Context {
    pub(super) functions: &'static Functions,
    /// True if memory can be allocated in a stream's order.
    pub(super) has_async_alloc: bool,
    device: CUdevice,
    raw: CUcontext,
}

impl Context {
    /// Lets kernels of this context reach memory that was allocated in another one, except for
    /// memory of pools.
    pub(super) fn reach(&self, other: &Context) -> Result<(), Failure> {
        self.bind()?;
        let missing = || Failure::odd("it has no cuCtxEnablePeerAccess");
        let enable = self.functions.cuCtxEnablePeerAccess.ok_or_else(missing)?;
        // SAFETY: (1) both contexts are live, and this one is current; (2) no flags are passed.
        match unsafe { enable(other.raw, 0) }.check() {
            Err(failure) if failure.is(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) => Ok(()),
            reached => reached,
        }
    }

    /// Returns the context of the GPU with this ordinal, current on this thread.
    pub(super) fn new(ordinal: usize) -> Result<Arc<Context>, Failure> {
        let functions = library::functions()
            .map_err(|why| Failure::odd(format!("its library has gone: {why:?}")))?;
        let ordinal =
            c_int::try_from(ordinal).map_err(|_| Failure::from(CUDA_ERROR_INVALID_DEVICE))?;
        let (mut device, mut raw) = (0, CUcontext::NULL);
        // SAFETY: (1) `cuInit` may be called any number of times; (2) `device` and `raw` may be
        // written; (3) the driver returned the device.
        unsafe {
            (functions.cuInit)(0).check()?;
            (functions.cuDeviceGet)(&mut device, ordinal).check()?;
            (functions.cuDevicePrimaryCtxRetain)(&mut raw, device).check()?;
        }
        if raw.is_null() {
            return Err(Failure::odd("the context is null"));
        }
        // If something fails from here on, dropping this releases it.
        let mut context = Context { functions, has_async_alloc: false, device, raw };
        context.has_async_alloc =
            context.attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)? > 0;
        context.bind()?;
        Ok(Arc::new(context))
    }

    /// Makes it current on this thread, and returns the functions that then work in it.
    pub(super) fn bind(&self) -> Result<&'static Functions, Failure> {
        let mut current = CUcontext::NULL;
        // SAFETY: (1) `current` may be written; (2) the context is held.
        unsafe {
            (self.functions.cuCtxGetCurrent)(&mut current).check()?;
            if current != self.raw {
                (self.functions.cuCtxSetCurrent)(self.raw).check()?;
            }
        }
        Ok(self.functions)
    }

    /// Waits for all work.
    pub(super) fn synchronize(&self) -> Result<(), Failure> {
        let cuda = self.bind()?;
        // SAFETY: the context is current.
        unsafe { (cuda.cuCtxSynchronize)() }.check()
    }

    pub(super) fn attribute(&self, attribute: Attribute) -> Result<c_int, Failure> {
        let mut value = 0;
        // SAFETY: (1) `value` may be written; (2) the driver refuses an attribute that it does not
        // know.
        let asked = unsafe {
            (self.functions.cuDeviceGetAttribute)(&mut value, attribute.number, self.device)
        };
        asked.check().map(|()| value)
    }

    pub(super) fn name(&self) -> Result<String, Failure> {
        let mut name = [0_u8; NAME_BYTES];
        let (start, len) = (name.as_mut_ptr().cast::<c_char>(), NAME_BYTES as c_int);
        // SAFETY: `name` has the length that is passed.
        unsafe { (self.functions.cuDeviceGetName)(start, len, self.device) }.check()?;
        let end = name.iter().position(|&byte| byte == 0).unwrap_or(NAME_BYTES);
        Ok(String::from_utf8_lossy(&name[..end]).into_owned())
    }

    /// Returns the free and the total bytes of memory.
    pub(super) fn memory(&self) -> Result<(u64, u64), Failure> {
        self.bind()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: (1) the context is current; (2) both numbers may be written.
        unsafe { (self.functions.cuMemGetInfo_v2)(&mut free, &mut total) }.check()?;
        Ok((free.min(total) as u64, total as u64))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: it was retained once, is released here, and not used again. An error means only
        // that the context has gone.
        let _ = unsafe { (self.functions.cuDevicePrimaryCtxRelease_v2)(self.device) };
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "context of device {}", self.device)
    }
}
