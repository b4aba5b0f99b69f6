//! The driver's library: whether it is there, whether it has what is needed, and what it says of
//! itself.
//!
//! cudarc panics where the library or one of its functions is missing, even when an error is printed.
//! So nothing of cudarc is called before [`driver`] has found both.

use std::path::PathBuf;
use std::sync::OnceLock;

use cudarc::driver::sys;

use crate::Error;

/// The oldest CUDA version whose PTX, 8.0, the shipped kernels are written in.
const OLDEST_CUDA: (u32, u32) = (12, 0);

/// Every function that this crate has cudarc call.
const FUNCTIONS: [&str; 44] = [
    "cuCtxGetCurrent",
    "cuCtxSetCurrent",
    "cuCtxSynchronize",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetCount",
    "cuDeviceGetName",
    "cuDevicePrimaryCtxRelease_v2",
    "cuDevicePrimaryCtxRetain",
    "cuDriverGetVersion",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventElapsedTime",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuFuncGetAttribute",
    "cuFuncSetAttribute",
    "cuGetErrorName",
    "cuGetErrorString",
    "cuGraphDestroy",
    "cuGraphExecDestroy",
    "cuGraphInstantiateWithFlags",
    "cuGraphLaunch",
    "cuInit",
    "cuLaunchKernel",
    "cuMemAllocAsync",
    "cuMemAlloc_v2",
    "cuMemFreeAsync",
    "cuMemFree_v2",
    "cuMemGetInfo_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyHtoDAsync_v2",
    "cuMemsetD8Async",
    "cuModuleGetFunction",
    "cuModuleLoadData",
    "cuModuleLoadDataEx",
    "cuModuleUnload",
    "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
    "cuStreamBeginCapture_v2",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamEndCapture",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
];

/// NVIDIA's driver, as it was found on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Driver {
    /// The newest CUDA version that it knows, as major and minor number.
    pub cuda_version: (u32, u32),
    /// How many devices it offers.
    pub devices: usize,
    /// The file of its library, where the system says it.
    pub file: Option<PathBuf>,
}

/// Finds the driver and its devices; the answer stays the same while the program runs.
///
/// # Errors
///
/// [`Error::Device`] if there is no driver, no device, or a driver that is too old, with what to do
/// about it.
pub fn driver() -> Result<Driver, Error> {
    static FOUND: OnceLock<Result<Driver, String>> = OnceLock::new();
    FOUND.get_or_init(find).clone().map_err(|message| Error::device("CUDA", message))
}

fn find() -> Result<Driver, String> {
    if !is_library_present() {
        return Err(absent_library());
    }
    has_all(&missing_functions())?;
    let cuda_version = cuda_version()?;
    is_new_enough(cuda_version)?;
    let devices = devices()?;
    Ok(Driver { cuda_version, devices, file: library_file() })
}

fn has_all(missing: &[&str]) -> Result<(), String> {
    if missing.is_empty() {
        return Ok(());
    }
    let missing = missing.join(", ");
    Err(format!(
        "the NVIDIA driver's library has no {missing}: it is older than CUDA 12.0; update the driver"
    ))
}

fn is_new_enough((major, minor): (u32, u32)) -> Result<(), String> {
    if (major, minor) >= OLDEST_CUDA {
        return Ok(());
    }
    Err(format!(
        "the NVIDIA driver knows CUDA {major}.{minor} at most, and the kernels need 12.0; update the \
         driver (525 or newer)"
    ))
}

#[allow(unsafe_code)]
fn is_library_present() -> bool {
    // SAFETY: (1) it loads the library under its usual names, which runs the library's own
    // initialisers, and nothing else; (2) those are NVIDIA's and made to be run in any program.
    unsafe { sys::is_culib_present() }
}

#[allow(unsafe_code)]
fn missing_functions() -> Vec<&'static str> {
    // SAFETY: (1) the library is present, so that cudarc does not panic; (2) the addresses are only
    // looked up and never called, so that the type given to them does not matter.
    let is_missing = |name: &&str| unsafe {
        sys::culib().get::<unsafe extern "C" fn()>(name.as_bytes()).is_err()
    };
    FUNCTIONS.into_iter().filter(|name| is_missing(name)).collect()
}

#[allow(unsafe_code)]
fn cuda_version() -> Result<(u32, u32), String> {
    let mut version = 0;
    // SAFETY: (1) the function is in the library; (2) it may be called before `cuInit`; (3) the
    // pointer is to a live integer.
    let code = unsafe { sys::cuDriverGetVersion(&mut version) };
    match code {
        sys::CUresult::CUDA_SUCCESS => {
            let version = u32::try_from(version).unwrap_or(0);
            Ok((version / 1000, version % 1000 / 10))
        }
        code => Err(refusal(code)),
    }
}

fn devices() -> Result<usize, String> {
    let count = cudarc::driver::CudaContext::device_count().map_err(|error| refusal(error.0))?;
    match usize::try_from(count) {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(refusal(sys::CUresult::CUDA_ERROR_NO_DEVICE)),
    }
}

/// Why there is no library.
fn absent_library() -> String {
    if cfg!(target_os = "macos") {
        return String::from("there are no drivers of NVIDIA GPUs for macOS");
    }
    let name = if cfg!(windows) { "nvcuda.dll" } else { "libcuda.so.1" };
    format!("no NVIDIA driver: {name} was not found; install the driver if there is an NVIDIA GPU")
}

/// Why the driver offers nothing, and what to do about it.
fn refusal(code: sys::CUresult) -> String {
    use sys::CUresult::*;
    match code {
        CUDA_ERROR_NO_DEVICE => match std::env::var("CUDA_VISIBLE_DEVICES") {
            Ok(visible) => format!(
                "the driver shows no device, as CUDA_VISIBLE_DEVICES is \"{visible}\"; unset it to \
                 see all"
            ),
            Err(_) => String::from("there is a driver, but no NVIDIA GPU that it can use"),
        },
        CUDA_ERROR_STUB_LIBRARY => String::from(
            "the library found is the stub of the CUDA toolkit and no driver; take the folder \
             `stubs` off the library path, or install the driver",
        ),
        CUDA_ERROR_SYSTEM_DRIVER_MISMATCH => String::from(
            "the driver's library and its kernel module are of different versions; restart the \
             machine",
        ),
        CUDA_ERROR_SYSTEM_NOT_READY => String::from(
            "the GPUs are not ready; on machines with NVSwitch the fabric manager must run",
        ),
        code => format!("the driver cannot be used: {}", super::code_name(code)),
    }
}

/// Where the loaded library lies, if the system lists what a program has loaded as a file.
fn library_file() -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let path = maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..]));
    path.filter(|path| path.contains("/libcuda.so")).map(PathBuf::from).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_or_the_reason_why_there_is_none() {
        match driver() {
            Ok(driver) => assert!(driver.devices > 0 && driver.cuda_version >= OLDEST_CUDA),
            Err(error) => {
                let text = error.to_string();
                assert!(text.starts_with("CUDA: ") && text.len() > 30, "{text}");
            }
        }
    }

    #[test]
    fn an_old_driver_is_to_be_updated() {
        assert!(has_all(&[]).is_ok() && is_new_enough((12, 0)).is_ok());
        let text = has_all(&["cuA", "cuB"]).unwrap_err();
        assert!(text.contains("has no cuA, cuB: it is older than CUDA 12.0; update the driver"));
        let text = is_new_enough((11, 8)).unwrap_err();
        assert!(text.contains("knows CUDA 11.8 at most"), "{text}");
    }

    #[test]
    fn no_visible_device_is_explained_without_the_library() {
        let text = refusal(sys::CUresult::CUDA_ERROR_NO_DEVICE);
        assert!(text.contains("no device") || text.contains("no NVIDIA GPU"), "{text}");
    }
}
