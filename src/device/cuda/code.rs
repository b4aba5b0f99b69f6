//! What the driver's functions return: integers, until somebody has looked.

use std::ffi::{CStr, c_char, c_int};
use std::fmt;

use cudarc::driver::sys::CUresult;

use super::library::{self, Functions};

/// What a function of the driver returned. Any number is one.
#[repr(transparent)]
#[derive(Debug, Clone, Copy)]
#[must_use]
pub(super) struct Status(c_int);

/// A code that is not success; known to this crate or not.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Code(c_int);

/// Why something could not be had of the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It returned an error.
    Code(Code),
    /// It returned success, and with it something that cannot be: this.
    Odd(String),
}

impl Status {
    pub(super) fn check(self) -> Result<(), Failure> {
        if self.0 == 0 { Ok(()) } else { Err(Failure::Code(Code(self.0))) }
    }
}

impl Failure {
    pub(super) fn odd(what: impl Into<String>) -> Failure {
        Failure::Odd(what.into())
    }

    pub(super) fn is(&self, known: CUresult) -> bool {
        *self == Failure::from(known)
    }
}

/// An error that the driver did not return itself, but would have.
impl From<CUresult> for Failure {
    fn from(known: CUresult) -> Failure {
        Failure::Code(Code(known as c_int))
    }
}

impl Code {
    /// The number, to be looked up in a list.
    pub(super) fn number(self) -> c_int {
        self.0
    }

    /// Its name, if the driver has one for it: `CUDA_ERROR_NO_DEVICE`.
    fn name(self) -> Option<String> {
        self.asked(|functions| functions.cuGetErrorName)
    }

    /// The driver's own words for it.
    pub(super) fn words(self) -> Option<String> {
        self.asked(|functions| functions.cuGetErrorString)
    }

    #[allow(unsafe_code)]
    fn asked(
        self,
        which: impl FnOnce(
            &Functions,
        )
            -> Option<unsafe extern "C" fn(Status, *mut *const c_char) -> Status>,
    ) -> Option<String> {
        let ask = which(library::functions().ok()?)?;
        let mut text = std::ptr::null();
        // SAFETY: (1) the function takes any number; (2) `text` may be written.
        unsafe { ask(Status(self.0), &mut text) }.check().ok()?;
        // SAFETY: the call succeeded, so that a pointer, if it is one, is to a constant string.
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    }
}

/// `CUDA_ERROR_NO_DEVICE, code 100`, or only the number where the driver has no name for it.
impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name}, code {}", self.0),
            None => write!(f, "code {}", self.0),
        }
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Code({})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_is_a_status() {
        assert_eq!(Status(0).check(), Ok(()));
        for number in [1, 36, 919, -1, i32::MAX, i32::MIN] {
            let Err(Failure::Code(code)) = Status(number).check() else { panic!("{number}") };
            assert!(format!("{code}").ends_with(&format!("code {number}")));
            assert_eq!(format!("{code:?}"), format!("Code({number})"));
        }
        let known = CUresult::CUDA_ERROR_ILLEGAL_ADDRESS;
        assert!(Status(700).check().unwrap_err().is(known) && !Failure::odd("a").is(known));
    }
}
