//! Compiles kernels that are written in a cell.

use std::borrow::Cow;

use linrec::Error;
use linrec::device::nvrtc::Nvrtc;
use linrec::device::{Device, Function};
use linrec::kernels::{self, Program};

/// The file name of a cell's source in messages of the compiler and the emulator.
const FILE: &str = "notebook.cu";

/// Compiles the CUDA C++ in `source`, which may include the headers under `kernels/`, and returns
/// its kernel `entry` (`linrec_ref_fwd<float, false>`). Prints which kernel is returned.
///
/// NVRTC compiles the source. Without NVRTC, the kernel with the same entry in the shipped PTX of
/// the file `twin` (`linrec_ref.cu`) is returned instead.
///
/// # Errors
///
/// Returns [`Error::Device`] with the compiler's message, or if there is neither NVRTC nor such a
/// shipped kernel.
pub fn kernel(device: &Device, source: &str, entry: &str, twin: &str) -> Result<Function, Error> {
    if let Err(missing) = Nvrtc::find() {
        return match shipped(device, entry, twin) {
            Some(kernel) => {
                println!(
                    "Your source is NOT compiled: this is the shipped kernel of kernels/{twin}.\n{missing}"
                );
                Ok(kernel)
            }
            None => Err(Error::Device {
                device: "NVRTC".to_owned(),
                message: missing.message().to_owned(),
            }),
        };
    }
    let kernel = device.program(&program(source, entry))?.function(entry)?;
    println!("{entry} is compiled from your source.");
    Ok(kernel)
}

/// Gathers the source and all headers that it includes.
fn program(source: &str, entry: &str) -> Program {
    let read = |path: &str| match path {
        FILE => Some(Cow::Owned(source.to_owned())),
        path => kernels::sources().find(|one| one.0 == path).map(|one| Cow::Borrowed(one.1)),
    };
    // `read` always finds `FILE`, so gathering does not fail.
    let program = Program::gather(FILE, read);
    program.unwrap_or_else(|| Program::new(FILE, source.to_owned())).with_entries([entry])
}

/// Finds the entry in the shipped PTX of a file.
fn shipped(device: &Device, entry: &str, twin: &str) -> Option<Function> {
    let stem = twin.trim_end_matches(".cu");
    let named = kernels::shipped().filter(|(name, _)| name.split('-').next() == Some(stem));
    named.filter_map(|(_, ptx)| device.module(ptx.text()).ok()?.function(entry).ok()).next()
}

#[cfg(test)]
mod tests {
    use super::{program, shipped};
    use linrec::device::Device;

    const ENTRY: &str = "linrec_ref_fwd<float, false>";

    #[test]
    fn headers_of_the_kernels_are_known() {
        let program = program("#include \"element.cuh\"\n", ENTRY);
        assert!(program.headers.iter().any(|header| header.name == "element.cuh"));
        assert_eq!(program.entries, [ENTRY]);
    }

    #[test]
    fn the_shipped_twin_has_the_entry() {
        let device = Device::simt();
        assert_eq!(
            shipped(&device, ENTRY, "linrec_ref.cu").map(|kernel| kernel.params().len()),
            Some(7)
        );
        assert!(shipped(&device, "no_such_kernel", "linrec_ref.cu").is_none());
        assert!(shipped(&device, ENTRY, "linrec_tile.cu").is_none());
    }
}
