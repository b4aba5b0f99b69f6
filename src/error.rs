//! Errors, as sentences with the operation and the values.

use std::fmt;

#[cfg(any(feature = "cuda", feature = "simt"))]
use crate::simt::Report;

/// An error of this library.
///
/// Its message has the operation and the values:
///
/// ```
/// use ndarray::Array2;
///
/// let (inputs, coeffs) = (Array2::<f32>::zeros((3, 100)), Array2::<f32>::zeros((3, 99)));
/// let error = linrec::forward(inputs.view(), coeffs.view(), &Default::default()).unwrap_err();
/// assert_eq!(error.to_string(), "shape mismatch in forward: inputs [3, 100], coeffs [3, 99]");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The shapes of arrays do not match.
    ShapeMismatch {
        /// The operation.
        operation: &'static str,
        /// The names and shapes of the arrays; the first one is what the others should match.
        arrays: Vec<(&'static str, Vec<usize>)>,
    },
    /// Arrays do not have the requested axis.
    NoSuchAxis {
        /// The operation.
        operation: &'static str,
        /// The axis, counted from 0.
        axis: usize,
        /// The shape of the arrays.
        shape: Vec<usize>,
    },
    /// A text cannot be read.
    Parse {
        /// The thing that the text should name: a kernel, a device, a type of elements.
        what: &'static str,
        /// The text.
        text: String,
        /// The reason, or an example of a correct text.
        message: String,
    },
    /// The engine does not support the request.
    Unsupported {
        /// The engine's name.
        engine: String,
        /// The unsupported option, with its value.
        what: String,
    },
    /// The result does not fit into memory.
    OutOfMemory {
        /// The operation.
        operation: &'static str,
        /// The number of bytes that could not be allocated.
        bytes: usize,
    },
    /// A device, its driver or its compiler is missing, or has failed.
    Device {
        /// The name: `cuda:0`, `simt`, `CUDA`, `NVRTC`.
        device: String,
        /// A sentence about the failure, with advice.
        message: String,
    },
    /// The emulator found a mistake in a kernel.
    #[cfg(any(feature = "cuda", feature = "simt"))]
    Kernel(Box<Report>),
}

impl Error {
    #[cfg(any(feature = "cuda", feature = "simt"))]
    pub(crate) fn device(device: impl Into<String>, message: impl Into<String>) -> Error {
        Error::Device { device: device.into(), message: message.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::ShapeMismatch { operation, arrays } => {
                write!(f, "shape mismatch in {operation}: ")?;
                for (i, (name, shape)) in arrays.iter().enumerate() {
                    let separator = if i == 0 { "" } else { ", " };
                    write!(f, "{separator}{name} {shape:?}")?;
                }
                Ok(())
            }
            Error::NoSuchAxis { operation, axis, shape } => {
                write!(f, "no axis {axis} in {operation}: arrays {shape:?}")
            }
            Error::Parse { what, text, message } => {
                write!(f, "`{text}` is no {what}: {message}")
            }
            Error::Unsupported { engine, what } => write!(f, "{engine} does not support {what}"),
            Error::OutOfMemory { operation, bytes } => {
                write!(f, "out of memory in {operation}: {bytes} bytes could not be allocated")
            }
            Error::Device { device, message } => write!(f, "{device}: {message}"),
            #[cfg(any(feature = "cuda", feature = "simt"))]
            Error::Kernel(report) => write!(f, "{report}"),
        }
    }
}

impl std::error::Error for Error {}
