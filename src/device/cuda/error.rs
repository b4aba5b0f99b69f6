//! What the driver's codes mean, as sentences.

use std::ffi::c_int;

use cudarc::driver::sys::CUresult::{self, *};

use super::code::Failure;
use crate::Error;

/// Errors that a kernel causes, and that end the use of the device.
const OF_A_KERNEL: [c_int; 10] = [
    CUDA_ERROR_ILLEGAL_ADDRESS as c_int,
    CUDA_ERROR_MISALIGNED_ADDRESS as c_int,
    CUDA_ERROR_INVALID_ADDRESS_SPACE as c_int,
    CUDA_ERROR_ILLEGAL_INSTRUCTION as c_int,
    CUDA_ERROR_INVALID_PC as c_int,
    CUDA_ERROR_HARDWARE_STACK_ERROR as c_int,
    CUDA_ERROR_LAUNCH_FAILED as c_int,
    CUDA_ERROR_LAUNCH_TIMEOUT as c_int,
    CUDA_ERROR_ASSERT as c_int,
    721, // CUDA_ERROR_TENSOR_MEMORY_LEAK, of CUDA 12.8
];

/// Others that end it.
const OF_THE_DEVICE: [c_int; 6] = [
    CUDA_ERROR_ECC_UNCORRECTABLE as c_int,
    CUDA_ERROR_NVLINK_UNCORRECTABLE as c_int,
    CUDA_ERROR_CONTEXT_IS_DESTROYED as c_int,
    CUDA_ERROR_EXTERNAL_DEVICE as c_int,
    226, // CUDA_ERROR_CONTAINED, of CUDA 12.9
    810, // CUDA_ERROR_MPS_CLIENT_TERMINATED, of CUDA 12.0 with a multi-process server
];

/// What there is to say beyond the driver's own text.
const WORDS: [(CUresult, &str); 8] = [
    (CUDA_ERROR_ILLEGAL_ADDRESS, "a kernel read or wrote an address outside of every buffer"),
    (
        CUDA_ERROR_MISALIGNED_ADDRESS,
        "a kernel accessed an address that is no multiple of the access's size",
    ),
    (
        CUDA_ERROR_LAUNCH_TIMEOUT,
        "a kernel ran longer than the display's driver allows; give it less to do",
    ),
    (
        CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
        "the launch needs more registers or shared memory than an SM has; launch fewer threads per \
         block",
    ),
    (
        CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
        "the blocks of a cooperative launch are more than the device holds at once; launch fewer",
    ),
    (
        CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
        "the PTX is of a newer version than the driver knows; update the driver, or compile with an \
         older NVRTC",
    ),
    (
        CUDA_ERROR_NO_BINARY_FOR_GPU,
        "the PTX is for another architecture; the shipped kernels need compute capability 8.0 \
         (Ampere) or newer",
    ),
    (
        CUDA_ERROR_JIT_COMPILER_NOT_FOUND,
        "the driver's PTX compiler (libnvidia-ptxjitcompiler) was not found; install the whole \
         driver",
    ),
];

/// What follows an error that ends the use of a device.
const LOST: &str = "This device is lost to this process, with all that is on it; opening it again does \
                    not help, only a new process does";

/// An error about `operation`.
///
/// `last_kernel` is the kernel launched last: an error of a kernel shows only in what is done after
/// it.
pub(super) fn explain(
    device: &str,
    operation: &str,
    failure: &Failure,
    last_kernel: Option<&str>,
) -> Error {
    Error::device(device, sentence(operation, failure, last_kernel))
}

/// What went wrong in `operation`, as a sentence that does not name the device.
///
/// `last_kernel` is the kernel launched last: the sentence names it if the error is one of a
/// kernel.
pub(super) fn sentence(operation: &str, failure: &Failure, last_kernel: Option<&str>) -> String {
    let mut sentence = format!("{operation} failed: {}", describe(failure));
    if is_lost(failure) {
        if is_of_a_kernel(failure) {
            if let Some(kernel) = last_kernel {
                sentence += &format!("; the kernel launched last is `{kernel}`");
            }
            sentence += "; on the emulator the same launch says which line did it \
                         (LINREC_DEVICE=simt)";
        }
        sentence += &format!(". {LOST}");
    }
    sentence
}

/// What happened, and the code.
pub(super) fn describe(failure: &Failure) -> String {
    let code = match failure {
        Failure::Code(code) => code,
        Failure::Odd(what) => return format!("the driver says that all went well, but {what}"),
    };
    let words = WORDS.iter().find(|(known, _)| failure.is(*known));
    let words = words.map(|(_, words)| (*words).to_owned()).or_else(|| code.words());
    match words {
        Some(words) => format!("{words} ({code})"),
        None => format!("an error that the driver has no words for ({code})"),
    }
}

/// Whether nothing on the device can be used any more after this.
pub(super) fn is_lost(failure: &Failure) -> bool {
    is_of_a_kernel(failure) || is_in(&OF_THE_DEVICE, failure)
}

fn is_of_a_kernel(failure: &Failure) -> bool {
    is_in(&OF_A_KERNEL, failure)
}

fn is_in(list: &[c_int], failure: &Failure) -> bool {
    matches!(failure, Failure::Code(code) if list.contains(&code.number()))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Only codes that need none of the driver's words: there may be no driver here.

    #[test]
    fn a_kernel_that_failed_is_named_and_the_way_out_shown() {
        let failure = CUDA_ERROR_ILLEGAL_ADDRESS.into();
        let text = explain("cuda:0", "copying to the host", &failure, Some("scale")).to_string();
        for said in [
            "cuda:0: copying to the host failed: a kernel read or wrote an address outside",
            "code 700)",
            "launched last is `scale`",
            "LINREC_DEVICE=simt",
            "opening it again does not help, only a new process does",
        ] {
            assert!(text.contains(said), "`{said}` is not in: {text}");
        }
    }

    #[test]
    fn broken_hardware_is_not_blamed_on_a_kernel() {
        let failure = CUDA_ERROR_ECC_UNCORRECTABLE.into();
        let text = explain("cuda:0", "copying to the host", &failure, Some("scale")).to_string();
        assert!(!text.contains("scale") && text.contains("only a new process does"), "{text}");
    }

    #[test]
    fn a_refused_ptx_leaves_the_device_as_it_was() {
        let failure = CUDA_ERROR_UNSUPPORTED_PTX_VERSION.into();
        let text =
            explain("cuda:1", "loading PTX of version 9.5", &failure, Some("scale")).to_string();
        assert!(
            text.starts_with("cuda:1: loading PTX of version 9.5 failed: the PTX is of a newer")
        );
        assert!(!text.contains("lost") && !text.contains("scale"), "{text}");
        assert!(!is_lost(&failure) && is_lost(&CUDA_ERROR_LAUNCH_FAILED.into()));
    }

    #[test]
    fn what_cannot_be_is_said() {
        let text = explain("cuda:0", "making a stream", &Failure::odd("it is null"), None);
        assert_eq!(
            text.to_string(),
            "cuda:0: making a stream failed: the driver says that all went well, but it is null"
        );
    }
}
