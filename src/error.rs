//! What can go wrong, in sentences that name the operation and the values.

use std::fmt;

#[cfg(any(feature = "cuda", feature = "simt"))]
use crate::simt::Report;

/// An error of this library.
///
/// Its message says what was asked for and with which values:
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
    /// Arrays that must agree do not.
    ShapeMismatch {
        /// The operation that was asked for.
        operation: &'static str,
        /// The arrays' names and shapes, the one that sets the expectation first.
        arrays: Vec<(&'static str, Vec<usize>)>,
    },
    /// Arrays do not have the axis that was named.
    NoSuchAxis {
        /// The operation that was asked for.
        operation: &'static str,
        /// The axis, counted from 0.
        axis: usize,
        /// The arrays' shape.
        shape: Vec<usize>,
    },
    /// A text does not say what it should.
    Parse {
        /// What the text was taken for: a kernel, a device, a type of elements.
        what: &'static str,
        /// The text.
        text: String,
        /// What is wrong with it, or what would have been right.
        message: String,
    },
    /// The engine does not offer what was asked for.
    Unsupported {
        /// The engine's name.
        engine: String,
        /// What was asked for, with its value.
        what: String,
    },
    /// The result does not fit into memory.
    OutOfMemory {
        /// The operation that was asked for.
        operation: &'static str,
        /// The number of bytes that could not be had.
        bytes: usize,
    },
    /// A device, its driver or its compiler is missing, or could not do what was asked for.
    Device {
        /// Which one: `cuda:0`, `simt`, `CUDA`, `NVRTC`.
        device: String,
        /// What happened and what to do about it.
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
