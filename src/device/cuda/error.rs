//! The results of the driver's functions, and what they mean, as sentences.
//!
//! Any integer may come from a driver, so that a result is a number until it has been checked
//! ([`CUresult::check`]). A [`Failure`] is an error of the driver, or a success with an answer that
//! cannot be. Some errors end the use of a device, and the sentence then says so. The tests of all
//! codes at all calls are in `tests/suite/driver`.

use std::ffi::{CStr, c_char};
use std::fmt;

use super::library::{self, Functions};
use super::sys::*;
use crate::Error;

/// Why a call of the driver has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// It returned an error, known to this crate or not.
    Code(CUresult),
    /// It returned success, and with it an answer that cannot be: this.
    Odd(String),
}

impl CUresult {
    pub(super) fn check(self) -> Result<(), Failure> {
        if self.0 == 0 { Ok(()) } else { Err(Failure::Code(self)) }
    }

    /// Returns its name, if the driver has one for it: `CUDA_ERROR_NO_DEVICE`.
    fn name(self) -> Option<String> {
        self.look_up(|functions| functions.cuGetErrorName)
    }

    /// Returns the driver's own words for it.
    fn words(self) -> Option<String> {
        self.look_up(|functions| functions.cuGetErrorString)
    }

    fn look_up(
        self,
        function: impl FnOnce(
            &Functions,
        )
            -> Option<unsafe extern "C" fn(CUresult, *mut *const c_char) -> CUresult>,
    ) -> Option<String> {
        let look_up = function(library::functions().ok()?)?;
        let mut text = std::ptr::null();
        // SAFETY: (1) the function takes any number; (2) `text` may be written.
        unsafe { look_up(self, &mut text) }.check().ok()?;
        // SAFETY: the call succeeded, so that the pointer is null or to a constant string.
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    }
}

/// `CUDA_ERROR_NO_DEVICE, code 100`, or only the number if the driver has no name for it.
impl fmt::Display for CUresult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name}, code {}", self.0),
            None => write!(f, "code {}", self.0),
        }
    }
}

impl fmt::Debug for CUresult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CUresult({})", self.0)
    }
}

impl Failure {
    pub(super) fn odd(what: impl Into<String>) -> Failure {
        Failure::Odd(what.into())
    }

    pub(super) fn is(&self, known: CUresult) -> bool {
        *self == Failure::Code(known)
    }
}

/// An error that the driver did not return itself, but would have.
impl From<CUresult> for Failure {
    fn from(known: CUresult) -> Failure {
        Failure::Code(known)
    }
}

/// Errors that a kernel causes, and that end the use of the device.
const OF_A_KERNEL: [CUresult; 10] = [
    CUDA_ERROR_ILLEGAL_ADDRESS,
    CUDA_ERROR_MISALIGNED_ADDRESS,
    CUDA_ERROR_INVALID_ADDRESS_SPACE,
    CUDA_ERROR_ILLEGAL_INSTRUCTION,
    CUDA_ERROR_INVALID_PC,
    CUDA_ERROR_HARDWARE_STACK_ERROR,
    CUDA_ERROR_LAUNCH_FAILED,
    CUDA_ERROR_LAUNCH_TIMEOUT,
    CUDA_ERROR_ASSERT,
    CUDA_ERROR_TENSOR_MEMORY_LEAK,
];

/// Other errors that end the use of the device.
const OF_THE_DEVICE: [CUresult; 6] = [
    CUDA_ERROR_ECC_UNCORRECTABLE,
    CUDA_ERROR_NVLINK_UNCORRECTABLE,
    CUDA_ERROR_CONTEXT_IS_DESTROYED,
    CUDA_ERROR_EXTERNAL_DEVICE,
    CUDA_ERROR_CONTAINED,
    CUDA_ERROR_MPS_CLIENT_TERMINATED,
];

/// Texts that say more than the driver's own.
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

/// The end of a sentence about such an error.
const LOST: &str = "This device is lost to this process, with all that is on it; opening it again does \
                    not help, only a new process does";

/// Returns the error of a device about `operation`.
///
/// `last_kernel` is the kernel launched last: an error of a kernel shows only in later operations.
pub(super) fn explain(
    device: &str,
    operation: &str,
    failure: &Failure,
    last_kernel: Option<&str>,
) -> Error {
    Error::device(device, sentence(operation, failure, last_kernel))
}

/// Returns what went wrong in `operation`, as a sentence that does not name the device.
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

/// Returns what happened, and the code.
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

/// True if nothing on the device can be used after this failure.
pub(super) fn is_lost(failure: &Failure) -> bool {
    is_of_a_kernel(failure) || is_in(&OF_THE_DEVICE, failure)
}

fn is_of_a_kernel(failure: &Failure) -> bool {
    is_in(&OF_A_KERNEL, failure)
}

fn is_in(list: &[CUresult], failure: &Failure) -> bool {
    list.iter().any(|known| failure.is(*known))
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

    #[test]
    fn any_number_is_a_result() {
        assert_eq!(CUresult(0).check(), Ok(()));
        for number in [1, 36, 919, -1, i32::MAX, i32::MIN] {
            let Err(Failure::Code(code)) = CUresult(number).check() else { panic!("{number}") };
            assert!(format!("{code}").ends_with(&format!("code {number}")));
            assert_eq!(format!("{code:?}"), format!("CUresult({number})"));
        }
        let known = CUDA_ERROR_ILLEGAL_ADDRESS;
        assert!(CUresult(700).check().unwrap_err().is(known) && !Failure::odd("a").is(known));
    }
}
