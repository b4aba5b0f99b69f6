//! DLPack capsules, in which the owner of an array describes it.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_void};
use std::{ptr, slice};

use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::prelude::*;
use pyo3::{ffi, types::PyCapsule};

use crate::array::{Array, Dtype, Place};

/// An argument of a Python function that is a capsule.
pub type Capsule<'a, 'py> = &'a Bound<'py, PyCapsule>;

/// The supported numbers of DLPack's `DLDeviceType` and `DLDataTypeCode`.
const CPU: i32 = 1;
const CUDA: i32 = 2;
const CUDA_HOST: i32 = 3;
const CUDA_MANAGED: i32 = 13;
const UNSIGNED: u8 = 1;
const FLOAT: u8 = 2;
const BFLOAT: u8 = 4;
const COMPLEX: u8 = 5;
const BOOL: u8 = 6;
/// The flag of an array that must not be written.
const READ_ONLY: u64 = 1;
/// More axes than any library has.
const MOST_AXES: i32 = 64;

/// `DLTensor` of DLPack 0.x and 1.x.
// ANCHOR: tensor
#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}
// ANCHOR_END: tensor

/// The beginning of `DLManagedTensorVersioned`.
#[repr(C)]
struct Versioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: *mut c_void,
    flags: u64,
    tensor: DlTensor,
}

/// Returns the array in a capsule. Its owner keeps it as long as the capsule exists and is not
/// consumed: `capsule` is an argument of the call, and nothing here consumes it.
pub fn read(name: &'static str, capsule: Capsule) -> PyResult<Array> {
    let (tensor, read_only) = if let Some(pointer) = pointer(capsule, c"dltensor") {
        // SAFETY: the capsule's name is the type that it points to (`DLManagedTensor` begins with
        // the tensor).
        (unsafe { &*pointer.cast::<DlTensor>() }, false)
    } else if let Some(pointer) = pointer(capsule, c"dltensor_versioned") {
        let versioned = pointer.cast::<Versioned>();
        // SAFETY: as above; all versions begin with the version.
        let major = unsafe { (*versioned).major };
        if major != 1 {
            let message = format!("{name} is an array of DLPack {major}; linrec reads 0 and 1");
            return Err(PyBufferError::new_err(message));
        }
        // SAFETY: as above.
        let versioned = unsafe { &*versioned };
        (&versioned.tensor, versioned.flags & READ_ONLY != 0)
    } else {
        let message = format!("{name} is no DLPack capsule, or one that was consumed");
        return Err(PyTypeError::new_err(message));
    };
    describe(name, tensor, read_only)
}

/// Returns the array in a capsule, if there is one.
pub fn read_optional(name: &'static str, capsule: Option<Capsule>) -> PyResult<Option<Array>> {
    capsule.map(|capsule| read(name, capsule)).transpose()
}

fn pointer(capsule: Capsule, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the object is alive, and the name ends with a zero.
    let pointer = unsafe {
        match ffi::PyCapsule_IsValid(capsule.as_ptr(), name.as_ptr()) {
            1 => ffi::PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr()),
            _ => ptr::null_mut(),
        }
    };
    (!pointer.is_null()).then_some(pointer)
}

fn describe(name: &'static str, tensor: &DlTensor, read_only: bool) -> PyResult<Array> {
    let refuse = |what: String| Err(PyBufferError::new_err(format!("{name} {what}")));
    let device = (tensor.device_type, tensor.device_id);
    let place = match device {
        (CPU | CUDA_HOST, _) => Place::Cpu,
        (CUDA | CUDA_MANAGED, id) if id >= 0 => Place::Cuda(id.unsigned_abs() as usize),
        (kind, id) => return refuse(format!("is on device {id} of DLPack's kind {kind}")),
    };
    let dtype = match (tensor.code, tensor.bits, tensor.lanes) {
        (FLOAT, 32, 1) => Dtype::F32,
        (FLOAT, 64, 1) => Dtype::F64,
        (FLOAT, 16, 1) => Dtype::F16,
        (BFLOAT, 16, 1) => Dtype::BF16,
        (COMPLEX, 64, 1) => Dtype::COMPLEX64,
        (COMPLEX, 128, 1) => Dtype::COMPLEX128,
        (UNSIGNED, 8, 1) | (BOOL, 8, 1) => Dtype::Flag,
        (code, bits, lanes) => {
            let what =
                format!("has elements of {bits} bits, {lanes} lanes, of DLPack's kind {code}");
            return refuse(what);
        }
    };
    if !(0..=MOST_AXES).contains(&tensor.ndim) || (tensor.ndim > 0 && tensor.shape.is_null()) {
        return refuse(format!("has {} axes", tensor.ndim));
    }
    let axes = tensor.ndim.unsigned_abs() as usize;
    let numbers = |from: *const i64| match axes {
        0 => &[][..],
        // SAFETY: by DLPack's rules there is one number per axis, as long as the tensor exists.
        _ => unsafe { slice::from_raw_parts(from, axes) },
    };
    let mut shape = Vec::with_capacity(axes);
    for &size in numbers(tensor.shape) {
        match usize::try_from(size) {
            Ok(size) => shape.push(size),
            Err(_) => return refuse(format!("has an axis of size {size}")),
        }
    }
    let strides = match tensor.strides.is_null() {
        true => None, // row after row
        false => Some(numbers(tensor.strides).iter().map(|&stride| stride as isize).collect()),
    };
    let (data, offset) = (tensor.data.cast::<u8>(), tensor.byte_offset);
    let begins = usize::try_from(offset).ok().filter(|&by| data.addr().checked_add(by).is_some());
    let data = match begins {
        _ if data.is_null() => data, // no memory, whatever the offset is
        Some(offset) => data.wrapping_add(offset),
        None => return refuse(format!("begins {offset} bytes after {data:?}, outside of memory")),
    };
    Array::new(name, data, place, dtype, shape, strides, read_only)
}
