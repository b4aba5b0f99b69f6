//! The driver's library, and the one table of its functions.
//!
//! The table exists only if the library has every function that is needed. A missing library or
//! function is an error, with its name, and nothing panics. `tests/suite/driver` takes every
//! function away in turn.

use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};
use std::sync::OnceLock;

use libloading::Library;

use super::sys::{
    CUcontext, CUdevice, CUdeviceptr, CUevent, CUfunction, CUgraph, CUgraphExec, CUipcMemHandle,
    CUmodule, CUresult, CUstream,
};

macro_rules! functions {
    (
        needed { $($needed:ident($($needs:ty),*);)* }
        optional { $($optional:ident($($takes:ty),*);)* }
    ) => {
        /// The driver's functions that this backend calls, by their names in the library.
        #[allow(non_snake_case)]
        pub(super) struct Functions {
            $(pub(super) $needed: unsafe extern "C" fn($($needs),*) -> CUresult,)*
            $(pub(super) $optional: Option<unsafe extern "C" fn($($takes),*) -> CUresult>,)*
        }

        impl Functions {
            /// Looks all of them up; an error holds the names of those that are missing.
            #[allow(non_snake_case)]
            fn of(library: &Library) -> Result<Functions, Vec<&'static str>> {
                $(let $needed: Option<unsafe extern "C" fn($($needs),*) -> CUresult> =
                    // SAFETY: (1) each name is one of the driver's, and every header since CUDA
                    // 12.0, or since the version that introduced it, declares it with this
                    // signature; a result is a C enum, and thus an integer of the size of a
                    // `CUresult`; (2) the library is never closed.
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
        // In all drivers; only groups on several GPUs call them.
        cuCtxEnablePeerAccess(CUcontext, c_uint);
        cuEventQuery(CUevent);
        // In all drivers; only mailboxes between processes call them.
        cuIpcCloseMemHandle(CUdeviceptr);
        cuIpcGetMemHandle(*mut CUipcMemHandle, CUdeviceptr);
        cuIpcOpenMemHandle_v2(*mut CUdeviceptr, CUipcMemHandle, c_uint);
        cuMemGetAddressRange_v2(*mut CUdeviceptr, *mut usize, CUdeviceptr);
        // Since CUDA 12.4.
        cuFuncGetParamInfo(CUfunction, usize, *mut usize, *mut usize);
        cuGetErrorName(CUresult, *mut *const c_char);
        cuGetErrorString(CUresult, *mut *const c_char);
    }
}

/// Why the driver's library cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unusable {
    NotFound,
    Lacks(Vec<&'static str>),
}

/// Returns the driver's functions; the library is loaded once, and stays.
pub(super) fn functions() -> Result<&'static Functions, Unusable> {
    static LOADED: OnceLock<Result<(Functions, Library), Unusable>> = OnceLock::new();
    let loaded = LOADED.get_or_init(|| {
        let library = load().ok_or(Unusable::NotFound)?;
        let functions = Functions::of(&library).map_err(Unusable::Lacks)?;
        Ok((functions, library))
    });
    loaded.as_ref().map(|(functions, _)| functions).map_err(Clone::clone)
}

/// Loads the library from where the system has it.
#[cfg(not(windows))]
fn load() -> Option<Library> {
    // Drivers install the first; some containers have only the second.
    let names = ["libcuda.so.1", "libcuda.so"];
    // SAFETY: (1) the linker looks for a bare name on its path, which is the system's and the
    // user's; (2) the library with this name is NVIDIA's driver, whose initialisation can run in
    // any program.
    names.into_iter().find_map(|name| unsafe { Library::new(name) }.ok())
}

/// Loads the library from the system's folder; without the flag Windows would also look in the
/// current folder.
#[cfg(windows)]
fn load() -> Option<Library> {
    use libloading::os::windows::{LOAD_LIBRARY_SEARCH_SYSTEM32, Library as WindowsLibrary};
    // SAFETY: the library with this name in the system's folder is NVIDIA's driver, whose
    // initialisation can run in any program.
    let library =
        unsafe { WindowsLibrary::load_with_flags("nvcuda.dll", LOAD_LIBRARY_SEARCH_SYSTEM32) };
    library.ok().map(Library::from)
}

/// Returns the function with this name, if the library has it.
///
/// # Safety
///
/// `F` is the function's signature, and the library stays loaded as long as it is called.
unsafe fn find<F: Copy>(library: &Library, name: &str) -> Option<F> {
    // SAFETY: as the caller promises; an `Option` of a function can hold a null pointer.
    unsafe { library.get::<Option<F>>(name) }.ok().and_then(|function| *function)
}
