//! The driver of this machine, or what to do where there is none.

use std::ffi::c_int;
use std::path::PathBuf;
use std::sync::OnceLock;

use super::error::{self, Failure};
use super::library::{self, Functions, Unusable};
use super::sys::{
    CUDA_ERROR_NO_DEVICE, CUDA_ERROR_STUB_LIBRARY, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
    CUDA_ERROR_SYSTEM_NOT_READY,
};
use crate::Error;

/// The oldest CUDA version whose PTX, 8.0, the shipped kernels are written in.
const OLDEST_CUDA: (u32, u32) = (12, 0);

/// NVIDIA's driver, as it was found on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Driver {
    /// The newest CUDA version that it knows, as major and minor number.
    pub cuda_version: (u32, u32),
    /// The number of devices that it offers.
    pub devices: usize,
    /// The file of its library, if the system lists it.
    pub file: Option<PathBuf>,
}

/// Finds the driver and its devices; the answer stays the same while the program runs.
///
/// # Errors
///
/// [`Error::Device`] if the driver is missing or too old, or has no device, with what to do about
/// it.
pub fn driver() -> Result<Driver, Error> {
    static FOUND: OnceLock<Result<Driver, String>> = OnceLock::new();
    FOUND.get_or_init(find).clone().map_err(|message| Error::device("CUDA", message))
}

fn find() -> Result<Driver, String> {
    let functions = library::functions().map_err(|why| match why {
        Unusable::NotFound => absent_library(),
        Unusable::Lacks(missing) => lacks(&missing),
    })?;
    let cuda_version = cuda_version(functions)?;
    is_new_enough(cuda_version)?;
    let devices = devices(functions)?;
    Ok(Driver { cuda_version, devices, file: library_file() })
}

fn lacks(missing: &[&str]) -> String {
    let missing = missing.join(", ");
    format!(
        "the NVIDIA driver's library has no {missing}: it is older than CUDA 12.0; update the driver"
    )
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

fn cuda_version(functions: &Functions) -> Result<(u32, u32), String> {
    let mut version: c_int = 0;
    // SAFETY: (1) the function may be called before `cuInit`; (2) the pointer is to a live integer.
    let asked = unsafe { (functions.cuDriverGetVersion)(&mut version) }.check();
    asked.map_err(|failure| refusal("asking for its version", &failure))?;
    let version = u32::try_from(version).unwrap_or(0);
    Ok((version / 1000, version % 1000 / 10))
}

fn devices(functions: &Functions) -> Result<usize, String> {
    // SAFETY: the call passes no flags, and may be made any number of times.
    let initialised = unsafe { (functions.cuInit)(0) }.check();
    initialised.map_err(|failure| refusal("initialising it", &failure))?;
    let mut count: c_int = 0;
    // SAFETY: (1) the driver is initialised; (2) the pointer is to a live integer.
    let counted = unsafe { (functions.cuDeviceGetCount)(&mut count) }.check();
    counted.map_err(|failure| refusal("counting devices", &failure))?;
    match usize::try_from(count) {
        Ok(0) => Err(refusal("counting devices", &CUDA_ERROR_NO_DEVICE.into())),
        Ok(count) => Ok(count),
        Err(_) => {
            let failure = Failure::odd(format!("there are {count} devices"));
            Err(refusal("counting devices", &failure))
        }
    }
}

/// Returns why there is no library.
fn absent_library() -> String {
    if cfg!(target_os = "macos") {
        return String::from("there are no drivers of NVIDIA GPUs for macOS");
    }
    let name = if cfg!(windows) { "nvcuda.dll" } else { "libcuda.so.1" };
    format!("no NVIDIA driver: {name} was not found; install the driver if there is an NVIDIA GPU")
}

/// Returns why the driver offers nothing, and what to do about it.
fn refusal(operation: &str, failure: &Failure) -> String {
    if failure.is(CUDA_ERROR_NO_DEVICE) {
        return match std::env::var("CUDA_VISIBLE_DEVICES") {
            Ok(visible) => format!(
                "the driver shows no device, as CUDA_VISIBLE_DEVICES is \"{visible}\"; unset it to \
                 see all"
            ),
            Err(_) => String::from("there is a driver, but no NVIDIA GPU that it can use"),
        };
    }
    let known = [
        (
            CUDA_ERROR_STUB_LIBRARY,
            "the library found is the stub of the CUDA toolkit and no driver; take the folder \
             `stubs` off the library path, or install the driver",
        ),
        (
            CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
            "the driver's library and its kernel module are of different versions; restart the \
             machine",
        ),
        (
            CUDA_ERROR_SYSTEM_NOT_READY,
            "the GPUs are not ready; on machines with NVSwitch the fabric manager must run",
        ),
    ];
    let why = match known.iter().find(|(code, _)| failure.is(*code)) {
        Some((code, why)) => format!("{why} (code {})", code.0),
        None => error::describe(failure),
    };
    format!("the driver cannot be used: {operation} failed: {why}")
}

/// Returns the file of the loaded library, if the system lists the files that a program has mapped.
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
        assert!(is_new_enough((12, 0)).is_ok());
        let text = lacks(&["cuA", "cuB"]);
        assert!(text.contains("has no cuA, cuB: it is older than CUDA 12.0; update the driver"));
        let text = is_new_enough((11, 8)).unwrap_err();
        assert!(text.contains("knows CUDA 11.8 at most"), "{text}");
    }

    #[test]
    fn no_visible_device_is_explained_without_the_library() {
        let text = refusal("counting devices", &CUDA_ERROR_NO_DEVICE.into());
        assert!(text.contains("no device") || text.contains("no NVIDIA GPU"), "{text}");
    }
}
