//! What can go wrong.

use std::fmt;

/// Why NVRTC could not be used, or what it refused, in a sentence.
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
    /// An error of this sentence.
    pub fn new(message: impl Into<String>) -> Error {
        Error { message: message.into() }
    }

    /// The sentence.
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// The sentence, after `NVRTC: `.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NVRTC: {}", self.message)
    }
}

impl std::error::Error for Error {}
