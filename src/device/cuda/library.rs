//! The driver's library, and the one table of its functions.
//!
//! Types and constants are cudarc's, but not its functions: it declares what they return as a Rust
//! enum of the codes that CUDA 12.0 knew, and a driver of any later version returns others, which
//! no Rust enum may hold. Here every result is a [`Status`], an integer, whatever the driver
//! returns.
//!
//! A library or a function that is not there is an error.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};
use std::sync::OnceLock;

use cudarc::driver::sys::{
    CUcontext, CUdevice, CUdeviceptr, CUevent, CUfunction, CUgraph, CUgraphExec, CUmodule, CUstream,
};
use libloading::Library;

use super::code::Status;

macro_rules! functions {
    (
        needed { $($needed:ident($($needs:ty),*);)* }
        optional { $($optional:ident($($takes:ty),*);)* }
    ) => {
        /// What is called of the driver, by the names that its library has.
        #[allow(non_snake_case)]
        pub(super) struct Functions {
            $(pub(super) $needed: unsafe extern "C" fn($($needs),*) -> Status,)*
            $(pub(super) $optional: Option<unsafe extern "C" fn($($takes),*) -> Status>,)*
        }

        impl Functions {
            /// Looks all of them up; an error holds the names that are not there.
            #[allow(non_snake_case)]
            fn of(library: &Library) -> Result<Functions, Vec<&'static str>> {
                // SAFETY: (1) each name is one of the driver's, and since CUDA 12.0 or the version
                // that brought it every header declares it with this signature, but for the result,
                // which is a C enum: an integer of the size of a `Status`; (2) the library is never
                // closed.
                $(let $needed: Option<unsafe extern "C" fn($($needs),*) -> Status> =
                    unsafe { find(library, stringify!($needed)) };)*
                let mut missing = Vec::new();
                $(if $needed.is_none() {
                    missing.push(stringify!($needed));
                })*
                Ok(Functions {
                    $($needed: $needed.ok_or_else(|| missing.clone())?,)*
                    // SAFETY: as above.
                    $($optional: unsafe { find(library, stringify!($optional)) },)*
                })
            }
        }
    };
}

functions! {
    needed {
        cuCtxGetCurrent(*mut CUcontext);
        cuCtxSetCurrent(CUcontext);
        cuCtxSynchronize();
        cuDeviceGet(*mut CUdevice, c_int);
        cuDeviceGetAttribute(*mut c_int, c_int, CUdevice);
        cuDeviceGetCount(*mut c_int);
        cuDeviceGetName(*mut c_char, c_int, CUdevice);
        cuDevicePrimaryCtxRelease_v2(CUdevice);
        cuDevicePrimaryCtxRetain(*mut CUcontext, CUdevice);
        cuDriverGetVersion(*mut c_int);
        cuEventCreate(*mut CUevent, c_uint);
        cuEventDestroy_v2(CUevent);
        cuEventElapsedTime(*mut f32, CUevent, CUevent);
        cuEventRecord(CUevent, CUstream);
        cuEventSynchronize(CUevent);
        cuFuncGetAttribute(*mut c_int, c_int, CUfunction);
        cuFuncSetAttribute(CUfunction, c_int, c_int);
        cuGraphDestroy(CUgraph);
        cuGraphExecDestroy(CUgraphExec);
        cuGraphInstantiateWithFlags(*mut CUgraphExec, CUgraph, c_ulonglong);
        cuGraphLaunch(CUgraphExec, CUstream);
        cuInit(c_uint);
        cuLaunchCooperativeKernel(
            CUfunction,
            c_uint, c_uint, c_uint,
            c_uint, c_uint, c_uint,
            c_uint,
            CUstream,
            *mut *mut c_void
        );
        cuLaunchKernel(
            CUfunction,
            c_uint, c_uint, c_uint,
            c_uint, c_uint, c_uint,
            c_uint,
            CUstream,
            *mut *mut c_void,
            *mut *mut c_void
        );
        cuMemAllocAsync(*mut CUdeviceptr, usize, CUstream);
        cuMemAlloc_v2(*mut CUdeviceptr, usize);
        cuMemFreeAsync(CUdeviceptr, CUstream);
        cuMemFree_v2(CUdeviceptr);
        cuMemGetInfo_v2(*mut usize, *mut usize);
        cuMemcpyDtoHAsync_v2(*mut c_void, CUdeviceptr, usize, CUstream);
        cuMemcpyHtoDAsync_v2(CUdeviceptr, *const c_void, usize, CUstream);
        cuMemsetD8Async(CUdeviceptr, u8, usize, CUstream);
        cuModuleGetFunction(*mut CUfunction, CUmodule, *const c_char);
        cuModuleLoadDataEx(*mut CUmodule, *const c_void, c_uint, *mut c_int, *mut *mut c_void);
        cuModuleUnload(CUmodule);
        cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
            *mut c_int, CUfunction, c_int, usize, c_uint
        );
        cuStreamBeginCapture_v2(CUstream, c_int);
        cuStreamCreate(*mut CUstream, c_uint);
        cuStreamDestroy_v2(CUstream);
        cuStreamEndCapture(CUstream, *mut CUgraph);
        cuStreamSynchronize(CUstream);
        cuStreamWaitEvent(CUstream, CUevent, c_uint);
    }
    optional {
        // Of all drivers; only a group on several GPUs asks.
        cuCtxEnablePeerAccess(CUcontext, c_uint);
        cuEventQuery(CUevent);
        // Of all drivers; only mailboxes between processes ask.
        cuIpcCloseMemHandle(CUdeviceptr);
        cuIpcGetMemHandle(*mut MemoryHandle, CUdeviceptr);
        cuIpcOpenMemHandle_v2(*mut CUdeviceptr, MemoryHandle, c_uint);
        cuMemGetAddressRange_v2(*mut CUdeviceptr, *mut usize, CUdeviceptr);
        // Since CUDA 12.4.
        cuFuncGetParamInfo(CUfunction, usize, *mut usize, *mut usize);
        cuGetErrorName(Status, *mut *const c_char);
        cuGetErrorString(Status, *mut *const c_char);
    }
}

/// `CUipcMemHandle`: by what another process of this host finds memory of this one. Any bytes are
/// one; what is none of the driver's is an error of its own.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MemoryHandle(pub(super) [u8; 64]);

/// Why the driver's library is of no use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unusable {
    NotFound,
    Lacks(Vec<&'static str>),
}

/// The driver's functions; the library is loaded once, and stays.
pub(super) fn functions() -> Result<&'static Functions, Unusable> {
    static LOADED: OnceLock<Result<(Functions, Library), Unusable>> = OnceLock::new();
    let loaded = LOADED.get_or_init(|| {
        let library = load().ok_or(Unusable::NotFound)?;
        let functions = Functions::of(&library).map_err(Unusable::Lacks)?;
        Ok((functions, library))
    });
    loaded.as_ref().map(|(functions, _)| functions).map_err(Clone::clone)
}

/// The library, from where the system has it.
#[cfg(not(windows))]
fn load() -> Option<Library> {
    // The first is what drivers install; some containers have the second only.
    let names = ["libcuda.so.1", "libcuda.so"];
    // SAFETY: (1) a bare name is looked for on the linker's path, which is the system's and the
    // user's;
    // (2) what has this name is NVIDIA's driver, whose initialisation can run in any program.
    names.into_iter().find_map(|name| unsafe { Library::new(name) }.ok())
}

/// The library, from where the system has it: Windows would also look in the current folder, unless
/// told not to.
#[cfg(windows)]
fn load() -> Option<Library> {
    use libloading::os::windows::{LOAD_LIBRARY_SEARCH_SYSTEM32, Library as WindowsLibrary};
    // SAFETY: what has this name in the system's folder is NVIDIA's driver, whose initialisation
    // can run in any program.
    let library =
        unsafe { WindowsLibrary::load_with_flags("nvcuda.dll", LOAD_LIBRARY_SEARCH_SYSTEM32) };
    library.ok().map(Library::from)
}

/// The function with this name, if it is there.
///
/// # Safety
///
/// `F` is the function's signature, and the library stays loaded as long as it is called.
unsafe fn find<F: Copy>(library: &Library, name: &str) -> Option<F> {
    // SAFETY: as the caller promises; an `Option` of a function has room for a null pointer.
    unsafe { library.get::<Option<F>>(name) }.ok().and_then(|function| *function)
}
