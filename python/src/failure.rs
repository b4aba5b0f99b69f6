//! Errors as exceptions.

use std::panic::{AssertUnwindSafe, catch_unwind};

use linrec::Error;
use pyo3::exceptions::{PyMemoryError, PyNotImplementedError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// Returns the exception for an error of the library: its sentence, and the class that a Python
/// programmer expects.
pub fn exception(error: Error) -> PyErr {
    let message = error.to_string();
    match error {
        Error::ShapeMismatch { .. } | Error::NoSuchAxis { .. } | Error::Parse { .. } => {
            PyValueError::new_err(message)
        }
        Error::Unsupported { .. } => PyNotImplementedError::new_err(message),
        Error::OutOfMemory { .. } => PyMemoryError::new_err(message),
        _ => PyRuntimeError::new_err(message),
    }
}

/// Computes while other Python threads run. A panic, which is a mistake of this library, becomes a
/// `RuntimeError`.
// ANCHOR: compute
pub fn compute<R: Send>(py: Python<'_>, work: impl FnOnce() -> PyResult<R> + Send) -> PyResult<R> {
    let done = py.detach(|| catch_unwind(AssertUnwindSafe(work)));
    done.unwrap_or_else(|panic| {
        let why = panic.downcast_ref::<&str>().copied();
        let why = why.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let message =
            format!("a mistake of linrec, please report it: {}", why.unwrap_or("it panicked"));
        Err(PyRuntimeError::new_err(message))
    })
}
// ANCHOR_END: compute

/// Panics while it computes, for the test that a panic becomes an exception.
#[pyfunction]
pub fn panic(py: Python<'_>) -> PyResult<()> {
    compute(py, || panic!("as the test wants it"))
}
