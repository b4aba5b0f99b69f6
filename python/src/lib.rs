//! The functions for Python: the recurrence and the selective scan over arrays of any library that
//! exports them as DLPack.
//!
//! Arrays come as capsules and are borrowed for the duration of a call. Every result is written
//! into an array of the caller, so that nothing is allocated here that Python would have to free.
//! Every error is an exception, a panic included. Other Python threads run while a call computes.

mod array;
mod capsule;
mod cpu;
mod cuda;
mod failure;
mod pass;
mod recurrence;
mod selective_scan;
mod xla;

use pyo3::prelude::*;

/// The native part of the package `linrec`; its functions are not for users.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::failure::panic;
    #[pymodule_export]
    use super::recurrence::{backward, forward};
    #[pymodule_export]
    use super::selective_scan::{selective_scan_backward, selective_scan_forward};
    #[pymodule_export]
    use super::xla::xla_handler;
}
