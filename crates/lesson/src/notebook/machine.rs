//! The device that a notebook's code runs on.

use super::content::{Content, Show};
use crate::machine;
use linrec::Error;
use linrec::device::Device;
use linrec::device::nvrtc::Nvrtc;

/// This machine, as a notebook sees it.
#[derive(Debug, Clone)]
pub struct Machine {
    /// The device that [`Device::auto`] chooses: the first GPU, or else the emulator.
    pub device: Device,
}

/// Opens this machine's device and describes the machine. A notebook's first cell ends with `let
/// machine = begin();`.
///
/// evcxr needs some seconds for the first cell that defines a variable. This call moves those
/// seconds to the first cell, which is slow anyway.
///
/// # Panics
///
/// Panics if `LINREC_DEVICE` asks for a device that cannot be used; the cell then shows the error.
pub fn begin() -> Machine {
    let machine = Device::auto().map(|device| Machine { device });
    let machine = machine.unwrap_or_else(|error: Error| panic!("{error}"));
    println!("{}", machine.content().plain);
    machine
}

impl Show for Machine {
    fn content(&self) -> Content {
        let kernels = if self.device.is_simt() {
            "in the emulator: there is no GPU here, or it was not asked for".to_owned()
        } else {
            format!("on {}", self.device.name())
        };
        let compiler = match Nvrtc::find() {
            Ok(nvrtc) => {
                let (major, minor) = nvrtc.version();
                format!("compiled by NVRTC {major}.{minor}")
            }
            Err(_) => {
                "not compiled, since NVRTC is missing; a shipped kernel runs instead".to_owned()
            }
        };
        let plain = format!(
            "linrec {} on {}\nkernels run {kernels}\nyour own CUDA C++ is {compiler}",
            super::VERSION,
            machine::describe()
        );
        Content { plain, rich: None }
    }
}

#[cfg(test)]
mod tests {
    use super::{Machine, Show};
    use linrec::device::Device;

    #[test]
    fn a_machine_shows_where_kernels_run() {
        let plain = Machine { device: Device::simt() }.content().plain;
        assert!(plain.contains("\nkernels run in the emulator"), "{plain}");
        assert_eq!(plain.lines().count(), 3, "{plain}");
    }
}
