//! What the driver's codes mean, as sentences.

use cudarc::driver::{DriverError, sys::CUresult};

use crate::Error;

/// The name of a code: `CUDA_ERROR_NO_DEVICE`. Needs no library.
pub(crate) fn name(code: CUresult) -> String {
    format!("{code:?}")
}

/// An error of a context, about `operation`.
///
/// `last_kernel` is the kernel launched last: an error of a kernel shows only in what is done after
/// it.
pub(crate) fn explain(
    device: &str,
    operation: &str,
    error: DriverError,
    last_kernel: Option<&str>,
) -> Error {
    let code = error.0;
    let what = match describe(code) {
        Some(what) => what.to_owned(),
        None => driver_text(error),
    };
    let mut message = format!("{operation} failed: {what} ({})", name(code));
    if is_lost(code) {
        if let Some(kernel) = last_kernel {
            message += &format!("; the kernel launched last is `{kernel}`");
        }
        message += "; on the emulator the same launch says which line did it (LINREC_DEVICE=simt). \
                    Everything on this device is lost: drop it all, then open the device again";
    }
    Error::device(device, message)
}

/// Whether the context cannot be used any more after this code.
pub(crate) fn is_lost(code: CUresult) -> bool {
    use CUresult::*;
    matches!(
        code,
        CUDA_ERROR_ILLEGAL_ADDRESS
            | CUDA_ERROR_MISALIGNED_ADDRESS
            | CUDA_ERROR_INVALID_ADDRESS_SPACE
            | CUDA_ERROR_ILLEGAL_INSTRUCTION
            | CUDA_ERROR_INVALID_PC
            | CUDA_ERROR_HARDWARE_STACK_ERROR
            | CUDA_ERROR_LAUNCH_FAILED
            | CUDA_ERROR_LAUNCH_TIMEOUT
            | CUDA_ERROR_ASSERT
            | CUDA_ERROR_ECC_UNCORRECTABLE
            | CUDA_ERROR_CONTEXT_IS_DESTROYED
    )
}

/// What there is to say beyond the driver's own text.
fn describe(code: CUresult) -> Option<&'static str> {
    use CUresult::*;
    Some(match code {
        CUDA_ERROR_ILLEGAL_ADDRESS => "a kernel read or wrote an address outside of every buffer",
        CUDA_ERROR_MISALIGNED_ADDRESS => {
            "a kernel accessed an address that is no multiple of the access's size"
        }
        CUDA_ERROR_LAUNCH_TIMEOUT => {
            "a kernel ran longer than the display's driver allows; give it less to do"
        }
        CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES => {
            "the launch needs more registers or shared memory than a multiprocessor has; launch \
             fewer threads per block"
        }
        CUDA_ERROR_UNSUPPORTED_PTX_VERSION => {
            "the PTX is of a newer version than the driver knows; update the driver, or compile \
             with an older NVRTC"
        }
        CUDA_ERROR_NO_BINARY_FOR_GPU => {
            "the PTX is for another architecture; the shipped kernels need compute capability 8.0 \
             (Ampere) or newer"
        }
        CUDA_ERROR_JIT_COMPILER_NOT_FOUND => {
            "the driver's PTX compiler (libnvidia-ptxjitcompiler) was not found; install the whole \
             driver"
        }
        _ => return None,
    })
}

/// The driver's own words.
fn driver_text(error: DriverError) -> String {
    match error.error_string() {
        Ok(text) => text.to_string_lossy().into_owned(),
        Err(_) => String::from("an error that the driver has no words for"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Only codes that need none of the driver's words: there may be no driver here.

    #[test]
    fn a_kernel_that_failed_is_named_and_the_way_out_shown() {
        let error = DriverError(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
        let text = explain("cuda:0", "copying to the host", error, Some("scale")).to_string();
        for said in [
            "cuda:0: copying to the host failed: a kernel read or wrote an address outside",
            "(CUDA_ERROR_ILLEGAL_ADDRESS)",
            "launched last is `scale`",
            "LINREC_DEVICE=simt",
            "open the device again",
        ] {
            assert!(text.contains(said), "`{said}` is not in: {text}");
        }
    }

    #[test]
    fn a_refused_ptx_leaves_the_device_as_it_was() {
        let error = DriverError(CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
        let text =
            explain("cuda:1", "loading PTX of version 9.5", error, Some("scale")).to_string();
        assert!(
            text.starts_with("cuda:1: loading PTX of version 9.5 failed: the PTX is of a newer")
        );
        assert!(!text.contains("lost") && !text.contains("scale"), "{text}");
        assert!(!is_lost(error.0) && is_lost(CUresult::CUDA_ERROR_LAUNCH_FAILED));
    }
}
