//! The device that a command line requests.

use std::fmt;
use std::str::FromStr;

use linrec::device::Device;

/// The requested device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// `auto`: the first GPU, or else the fallback of [`Device::auto`].
    #[default]
    Auto,
    /// `cpu`: the processor, with the library's own engine.
    Cpu,
    /// `simt`: the emulator.
    Simt,
    /// `cuda:1`: the GPU with this number; `cuda` is the first GPU.
    Cuda(usize),
}

impl DeviceChoice {
    /// Opens the device that runs kernels.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such device, or if it is the processor, which cannot run
    /// kernels.
    pub fn open(self) -> lesson::Result<Device> {
        match self {
            DeviceChoice::Auto => Ok(Device::auto()?),
            DeviceChoice::Cpu => {
                Err("kernels do not run on `cpu`; write simt, cuda or cuda:1".into())
            }
            DeviceChoice::Simt => Ok(Device::simt()),
            DeviceChoice::Cuda(ordinal) => Ok(Device::cuda(ordinal)?),
        }
    }
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(name: &str) -> Result<DeviceChoice, String> {
        let ordinal = match name {
            "auto" => return Ok(DeviceChoice::Auto),
            "cpu" => return Ok(DeviceChoice::Cpu),
            "simt" => return Ok(DeviceChoice::Simt),
            "cuda" => Some(0),
            other => other.strip_prefix("cuda:").and_then(|ordinal| ordinal.parse().ok()),
        };
        let no_device =
            || format!("`{name}` is not a device; write auto, cpu, simt, cuda or cuda:1");
        ordinal.map(DeviceChoice::Cuda).ok_or_else(no_device)
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceChoice::Auto => f.pad("auto"),
            DeviceChoice::Cpu => f.pad("cpu"),
            DeviceChoice::Simt => f.pad("simt"),
            DeviceChoice::Cuda(ordinal) => write!(f, "cuda:{ordinal}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::DeviceChoice;

    #[test]
    fn devices_are_read_as_they_are_written() {
        for name in ["auto", "cpu", "simt", "cuda:0", "cuda:17"] {
            assert_eq!(name.parse::<DeviceChoice>().unwrap().to_string(), name);
        }
        assert_eq!("cuda".parse(), Ok(DeviceChoice::Cuda(0)));
        for name in ["", "gpu", "cuda:", "cuda:x", "cuda:-1", "CPU"] {
            let error = name.parse::<DeviceChoice>().unwrap_err();
            assert!(error.contains(&format!("`{name}` is not a device")), "{error}");
        }
    }

    #[test]
    fn the_processor_runs_no_kernels() {
        let error = DeviceChoice::Cpu.open().unwrap_err().to_string();
        assert!(error.contains("`cpu`"), "{error}");
        assert!(DeviceChoice::Simt.open().unwrap().is_simt());
    }
}
