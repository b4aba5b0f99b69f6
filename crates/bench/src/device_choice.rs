//! What device is asked for, on a command line.

use std::fmt;
use std::str::FromStr;

use linrec::device::Device;

/// What device is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// `auto`: the first GPU, or else what does without: see [`Device::auto`].
    #[default]
    Auto,
    /// `cpu`: the processor, with the library's own engine.
    Cpu,
    /// `simt`: the emulator.
    Simt,
    /// `cuda:1`: a GPU by its number; `cuda` is the first.
    Cuda(usize),
}

impl DeviceChoice {
    /// The device that runs kernels.
    ///
    /// # Errors
    ///
    /// If there is no such device, or it is the processor: kernels do not run on it.
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
        let no_device = || format!("`{name}` is no device; write auto, cpu, simt, cuda or cuda:1");
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
            assert!(error.contains(&format!("`{name}` is no device")), "{error}");
        }
    }

    #[test]
    fn the_processor_runs_no_kernels() {
        let error = DeviceChoice::Cpu.open().unwrap_err().to_string();
        assert!(error.contains("`cpu`"), "{error}");
        assert!(DeviceChoice::Simt.open().unwrap().is_simt());
    }
}
