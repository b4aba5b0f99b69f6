//! The forward pass as a function that XLA calls: a handler of its foreign function interface, on
//! the CPU.
//!
//! The interface consists of C structures that begin with their sizes and only grow at their ends.
//! So the fields of version 0.0 have kept their places. This file declares the structures up to the
//! fields that it uses, exports the handler as a capsule, and turns buffers into arrays for
//! [`cpu::compute`]. `python/tests/test_jax.py` tests it.
#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{ptr, slice};

use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::array::{Array, Dtype, Place};
use crate::cpu;
use crate::pass::{Arguments, Forward, Pass};

/// The name that XLA's capsules have.
const CAPSULE: &std::ffi::CStr = c"xla._CUSTOM_CALL_TARGET";
/// The version of the interface that these structures are from.
const VERSION: (c_int, c_int) = (0, 1);
/// The numbers of extensions, error codes, argument types and number types that are used here.
const METADATA: c_int = 1;
const INVALID_ARGUMENT: c_int = 3;
const SCALAR: c_int = 3;
const S32: c_int = 4;
/// Bits of the attribute `flags`.
const REVERSE: i32 = 1;
const LOG_COEFFS: i32 = 2;

#[repr(C)]
struct Extension {
    struct_size: usize,
    kind: c_int,
    next: *mut Extension,
}

#[repr(C)]
struct Version {
    struct_size: usize,
    extensions: *mut Extension,
    major: c_int,
    minor: c_int,
}

#[repr(C)]
struct Metadata {
    struct_size: usize,
    version: Version,
    traits: u32,
}

#[repr(C)]
struct MetadataExtension {
    base: Extension,
    metadata: *mut Metadata,
}

#[repr(C)]
struct ErrorArgs {
    struct_size: usize,
    extensions: *mut Extension,
    message: *const c_char,
    code: c_int,
}

#[repr(C)]
struct Api {
    struct_size: usize,
    extensions: *mut Extension,
    version: Version,
    internal: *const c_void,
    new_error: unsafe extern "C" fn(*mut ErrorArgs) -> *mut c_void,
}

#[repr(C)]
struct Values {
    struct_size: usize,
    extensions: *mut Extension,
    size: i64,
    kinds: *const c_int,
    values: *const *const Buffer,
}

#[repr(C)]
struct Attributes {
    struct_size: usize,
    extensions: *mut Extension,
    size: i64,
    kinds: *const c_int,
    names: *const *const c_void,
    values: *const *const Scalar,
}

#[repr(C)]
struct Scalar {
    dtype: c_int,
    value: *const i32,
}

#[repr(C)]
struct Buffer {
    struct_size: usize,
    extensions: *mut Extension,
    dtype: c_int,
    data: *mut u8,
    rank: i64,
    dims: *const i64,
}

#[repr(C)]
struct Frame {
    struct_size: usize,
    extensions: *mut Extension,
    api: *const Api,
    context: *mut c_void,
    stage: c_int,
    arguments: Values,
    results: Values,
    attributes: Attributes,
}

/// The handler as a capsule, for `jax.ffi.register_ffi_target`.
///
/// It takes inputs, coefficients `[..., length]` and initial states `[...]`, the attribute `flags`
/// (1: reverse, 2: the coefficients are logarithms), and returns the outputs.
#[pyfunction]
pub fn xla_forward(py: Python<'_>) -> PyResult<Py<PyAny>> {
    let handler = forward as unsafe extern "C" fn(*mut Frame) -> *mut c_void;
    // SAFETY: (1) the pointer is not null; (2) the name lives as long as the program; (3) there is
    // nothing to free.
    let capsule = unsafe { ffi::PyCapsule_New(handler as *mut c_void, CAPSULE.as_ptr(), None) };
    // SAFETY: a new reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(py, capsule) }.map(Bound::unbind)
}

/// The handler, which XLA calls to read the version or to compute.
///
/// # Safety
///
/// The frame comes from XLA's foreign function interface 0, and everything that it points to is
/// valid.
unsafe extern "C" fn forward(frame: *mut Frame) -> *mut c_void {
    // SAFETY: as the caller promises; extensions are a list.
    let frame = unsafe { &*frame };
    let mut extension = frame.extensions;
    // SAFETY: as above.
    while let Some(base) = unsafe { extension.as_ref() } {
        if base.kind == METADATA {
            // SAFETY: an extension of this kind has metadata, which the handler writes.
            let metadata = unsafe { &mut *(*extension.cast::<MetadataExtension>()).metadata };
            (metadata.version.major, metadata.version.minor) = VERSION;
            metadata.traits = 0;
            return ptr::null_mut();
        }
        extension = base.next;
    }
    // SAFETY: as above: the frame is one for a call.
    let done = catch_unwind(AssertUnwindSafe(|| unsafe { compute(frame) }));
    let message = match done {
        Ok(Ok(())) => return ptr::null_mut(),
        Ok(Err(error)) => Python::attach(|py| error.value(py).to_string()),
        Err(_) => String::from("a mistake of linrec, please report it: it panicked"),
    };
    let message = CString::new(message.replace('\0', " ")).unwrap_or_default();
    let mut error = ErrorArgs {
        struct_size: size_of::<ErrorArgs>(),
        extensions: ptr::null_mut(),
        message: message.as_ptr(),
        code: INVALID_ARGUMENT,
    };
    // SAFETY: the function is XLA's, and copies the message.
    unsafe { ((*frame.api).new_error)(&mut error) }
}

/// # Safety
///
/// The frame is one for a call.
unsafe fn compute(frame: &Frame) -> PyResult<()> {
    // SAFETY: XLA gives the number of each.
    let (arguments, results, flags) =
        unsafe { (buffers(&frame.arguments), buffers(&frame.results), flags(&frame.attributes)) };
    let ([inputs, coeffs, initial], [outputs], Some(flags)) = (arguments, results, flags) else {
        return Err(PyValueError::new_err("linrec takes three arrays and flags, and returns one"));
    };
    // SAFETY: XLA describes the buffers, and keeps them for the duration of the call.
    let (inputs, initial, results) = unsafe {
        (
            [array("inputs", inputs)?, array("coeffs", coeffs)?],
            Some(array("initial", initial)?),
            [array("outputs", outputs)?],
        )
    };
    let axis = inputs[0].shape.len().saturating_sub(1);
    let arguments = Arguments::new(axis, flags & REVERSE != 0, flags & LOG_COEFFS != 0);
    let kind = PhantomData::<Forward>;
    let pass = Pass { inputs, initial, results, states: None, arguments, kind };
    pass.check()?;
    cpu::compute(pass)
}

/// # Safety
///
/// There are `size` buffers.
unsafe fn buffers<'a>(values: &Values) -> &'a [&'a Buffer] {
    match usize::try_from(values.size) {
        // SAFETY: as the caller promises; a pointer to a buffer has the layout of a reference.
        Ok(size) if size > 0 => unsafe { slice::from_raw_parts(values.values.cast(), size) },
        _ => &[],
    }
}

/// # Safety
///
/// There are `size` attributes.
unsafe fn flags(attributes: &Attributes) -> Option<i32> {
    // SAFETY: as the caller promises; the kind determines the type of the value.
    unsafe {
        if attributes.size != 1 || *attributes.kinds != SCALAR {
            return None;
        }
        let scalar = &**attributes.values;
        (scalar.dtype == S32).then(|| *scalar.value)
    }
}

/// # Safety
///
/// The buffer and its elements are valid.
unsafe fn array(name: &'static str, buffer: &Buffer) -> PyResult<Array> {
    let dtype = match buffer.dtype {
        11 => Dtype::F32,
        12 => Dtype::F64,
        15 => Dtype::COMPLEX64,
        18 => Dtype::COMPLEX128,
        other => {
            let message = format!("{name} has elements of XLA's type {other}");
            return Err(PyValueError::new_err(message));
        }
    };
    let rank = usize::try_from(buffer.rank).unwrap_or_default();
    let dims = match rank {
        0 => &[][..],
        // SAFETY: as the caller promises.
        _ => unsafe { slice::from_raw_parts(buffer.dims, rank) },
    };
    let shape = dims.iter().map(|&size| usize::try_from(size).unwrap_or_default()).collect();
    Array::new(name, buffer.data, Place::Cpu, dtype, shape, None, false)
}
