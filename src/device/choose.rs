//! The opening of devices, and the choice of one by the environment and by what the machine has.

#[cfg(feature = "simt")]
use std::sync::OnceLock;

use super::Device;
#[cfg(feature = "cuda")]
use super::cuda::driver;
use crate::Error;

/// The environment variable that names the device to take.
const VARIABLE: &str = "LINREC_DEVICE";

/// The values of the variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// The first GPU, or else the emulator.
    Any,
    Cuda(usize),
    Simt,
}

impl Device {
    /// Opens the NVIDIA GPU with this ordinal, counted from 0. Calling it again returns the same
    /// device.
    ///
    /// In a process made by `fork`, do not call it if the parent has: see
    /// [after `fork`](super#after-fork).
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the driver or the GPU is missing, with what to do about it; if the
    /// process has lost this GPU by an earlier error; and without the feature `cuda`.
    #[cfg_attr(not(feature = "cuda"), expect(unused_variables))]
    pub fn cuda(ordinal: usize) -> Result<Device, Error> {
        #[cfg(feature = "cuda")]
        return Ok(Device { backend: super::cuda::Gpu::open(ordinal)? });
        #[cfg(not(feature = "cuda"))]
        Err(no_cuda())
    }

    /// Returns the emulator that takes all cores. There is one in a program.
    #[cfg(feature = "simt")]
    pub fn simt() -> Device {
        static EMULATOR: OnceLock<Device> = OnceLock::new();
        EMULATOR.get_or_init(|| Device { backend: super::simt::Emulator::new(None) }).clone()
    }

    /// Returns `count` further emulated devices, each with separate memory: `simt:0`, `simt:1`, …
    /// They take the place of the GPUs of a [`Group`](super::Group). Each does its work on the
    /// thread that calls it, so that devices which several threads use run side by side.
    ///
    /// ```
    /// use linrec::device::Device;
    ///
    /// let devices = Device::emulated(3);
    /// assert_eq!(devices[2].label(), "simt:2");
    /// assert!(devices[0] != devices[1] && devices[0] != Device::simt());
    /// ```
    #[cfg(feature = "simt")]
    pub fn emulated(count: usize) -> Vec<Device> {
        (0..count).map(Device::emulated_one).collect()
    }

    #[cfg(feature = "simt")]
    fn emulated_one(number: usize) -> Device {
        Device { backend: super::simt::Emulator::new(Some(number)) }
    }

    /// Returns the first NVIDIA GPU if it can be used, otherwise the emulator. Without the feature
    /// `cuda` it is the emulator, and without `simt` a GPU or an error.
    ///
    /// The environment variable `LINREC_DEVICE` chooses another: `simt`, `cuda`, `cuda:1`.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if `LINREC_DEVICE` has another value, or names a GPU that cannot be used.
    pub fn auto() -> Result<Device, Error> {
        let value = std::env::var_os(VARIABLE).unwrap_or_default();
        match wanted(&value.to_string_lossy())? {
            Wanted::Any => Device::cuda(0).or_else(|no_gpu| emulator(None).map_err(|_| no_gpu)),
            Wanted::Cuda(ordinal) => Device::cuda(ordinal),
            Wanted::Simt => emulator(None),
        }
    }

    /// Returns the device of a process that is one of several on its host: the GPU with its number,
    /// or an emulated device if there is no GPU or `LINREC_DEVICE` is `simt`.
    pub(super) fn of_process(local: usize) -> Result<Device, Error> {
        let value = std::env::var_os(VARIABLE).unwrap_or_default();
        let value = value.to_string_lossy();
        match wanted(&value)? {
            Wanted::Simt => emulator(Some(local)),
            Wanted::Cuda(ordinal) if value.contains(':') => Device::cuda(ordinal),
            Wanted::Any | Wanted::Cuda(_) => match gpu_count() {
                // A launcher of processes may show each of them one GPU.
                Ok(1) => Device::cuda(0),
                Err(no_gpu) if wanted(&value)? == Wanted::Any => {
                    emulator(Some(local)).map_err(|_| no_gpu)
                }
                _ => Device::cuda(local),
            },
        }
    }

    /// Returns every device of the enabled features: the usable GPUs, then the emulator.
    pub fn all() -> Vec<Device> {
        Device::gpus().into_iter().chain(emulator(None)).collect()
    }

    /// Returns the usable GPUs: for a [`Group`](super::Group) of all of them.
    pub fn gpus() -> Vec<Device> {
        (0..gpu_count().unwrap_or(0)).filter_map(|ordinal| Device::cuda(ordinal).ok()).collect()
    }
}

/// Returns how many GPUs the driver offers.
fn gpu_count() -> Result<usize, Error> {
    #[cfg(feature = "cuda")]
    return driver().map(|driver| driver.devices);
    #[cfg(not(feature = "cuda"))]
    Err(no_cuda())
}

#[cfg(not(feature = "cuda"))]
fn no_cuda() -> Error {
    Error::device("CUDA", "linrec was built without the feature `cuda`")
}

/// Returns the emulator or, with a number, one of several; an error if this program has none.
#[cfg_attr(not(feature = "simt"), expect(unused_variables))]
fn emulator(number: Option<usize>) -> Result<Device, Error> {
    #[cfg(feature = "simt")]
    return Ok(number.map_or_else(Device::simt, Device::emulated_one));
    #[cfg(not(feature = "simt"))]
    Err(Error::device("simt", "linrec was built without the feature `simt`"))
}

fn wanted(value: &str) -> Result<Wanted, Error> {
    let ordinal = |text: &str| text.parse().ok().map(Wanted::Cuda);
    let wanted = match value.trim() {
        "" | "auto" => Some(Wanted::Any),
        "simt" => Some(Wanted::Simt),
        "cuda" => Some(Wanted::Cuda(0)),
        other => other.strip_prefix("cuda:").and_then(ordinal),
    };
    wanted.ok_or_else(|| {
        let message =
            format!("`{value}` is no device; choose from simt, cuda, cuda:0, cuda:1, ...");
        Error::device(VARIABLE, message)
    })
}

/// Returns the devices that a test runs on: all of them. Prints a line where there is no GPU.
///
/// # Panics
///
/// If the environment has `LINREC_REQUIRE_CUDA=1` and there is no GPU: for tests on a machine that
/// should have one.
#[cfg(feature = "contract")]
pub fn under_test() -> Vec<Device> {
    let devices = Device::all();
    if devices.iter().all(Device::is_simt) {
        let reason = match gpu_count().map(|_| Device::cuda(0)) {
            Ok(Ok(_)) => String::from("the first GPU came too late"),
            Ok(Err(error)) | Err(error) => error.to_string(),
        };
        let required = std::env::var("LINREC_REQUIRE_CUDA").is_ok_and(|value| value == "1");
        assert!(!required, "LINREC_REQUIRE_CUDA=1, and there is no GPU: {reason}");
        println!("on the emulator alone: {reason}");
    }
    devices
}

#[cfg(test)]
mod tests {
    use super::{Wanted, wanted};

    #[test]
    fn devices_are_chosen_by_name() {
        for (value, expected) in [
            ("", Wanted::Any),
            ("auto", Wanted::Any),
            ("simt", Wanted::Simt),
            ("cuda", Wanted::Cuda(0)),
            (" cuda:3 ", Wanted::Cuda(3)),
        ] {
            assert_eq!(wanted(value), Ok(expected));
        }
        for value in ["gpu", "cuda:", "cuda:-1", "cuda:x", "CUDA", "simt:0"] {
            let error = wanted(value).unwrap_err().to_string();
            assert!(error.starts_with("LINREC_DEVICE: `"), "{error}");
            assert!(error.contains(value) && error.contains("choose from simt, cuda"), "{error}");
        }
    }
}
