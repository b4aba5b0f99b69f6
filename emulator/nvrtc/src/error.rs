//! The error of this crate.

use std::fmt;

/// The reason why NVRTC could not be used or refused a program, as a sentence.
///
/// ```
/// let error = nvrtc::Error::new("the CUDA compiler library was not found");
/// assert_eq!(error.to_string(), "NVRTC: the CUDA compiler library was not found");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    message: String,
}

impl Error {
    /// Makes an error of a sentence.
    pub fn new(message: impl Into<String>) -> Error {
        Error { message: message.into() }
    }

    /// Returns the sentence.
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// The sentence behind `NVRTC: `.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NVRTC: {}", self.message)
    }
}

impl std::error::Error for Error {}
