//! Both passes as functions that XLA calls: handlers of its foreign function interface, on the CPU
//! and on GPUs.
//!
//! The interface consists of C structures that begin with their sizes and only grow at their ends.
//! So the fields of version 0.0 have kept their places. This file declares the structures up to the
//! fields that it uses, exports the handlers as capsules, and turns buffers into arrays for
//! [`cpu::compute`] and [`cuda::compute`]. On a GPU the work is queued on XLA's stream, as the work
//! of PyTorch's callers is on PyTorch's. `python/tests/test_jax.py` tests it.
#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::mem::offset_of;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{ptr, slice};

use half::slice::HalfFloatSliceExt;
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use rayon::prelude::*;

use crate::array::{Array, Dtype, Place};
use crate::pass::{Arguments, Backward, Forward, Kind, Pass, try_map};
use crate::{cpu, cuda};

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
const IN_ORDER: i32 = 4;
/// The number of elements that one thread converts at a time.
const CHUNK: usize = 1 << 14;

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

impl Version {
    fn numbers(&self) -> (c_int, c_int) {
        (self.major, self.minor)
    }
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
    unused: [*const c_void; 3],
    get_stream: unsafe extern "C" fn(*mut StreamArgs) -> *mut c_void,
    unused_too: [*const c_void; 12],
    /// Only if `struct_size` reaches this far.
    get_ordinal: unsafe extern "C" fn(*mut OrdinalArgs) -> *mut c_void,
}

#[repr(C)]
struct StreamArgs {
    struct_size: usize,
    extensions: *mut Extension,
    context: *mut c_void,
    stream: *mut c_void,
}

#[repr(C)]
struct OrdinalArgs {
    struct_size: usize,
    extensions: *mut Extension,
    context: *mut c_void,
    ordinal: i32,
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

/// The type of a handler.
type Handler = unsafe extern "C" fn(*mut Frame) -> *mut c_void;

/// Returns the handler of a pass on the CPU or on GPUs as a capsule, for
/// `jax.ffi.register_ffi_target`.
///
/// It takes the arrays that the pass reads, `[..., length]`, the initial states `[...]`, and the
/// attribute `flags` (1: reverse, 2: the coefficients are logarithms, 4: the steps in order). It
/// returns the arrays that the pass writes, and the final states or the gradient of the initial
/// ones. States are `float32` if elements have 16 bits.
#[pyfunction]
pub fn xla_handler(py: Python<'_>, backward: bool, cuda: bool) -> PyResult<Py<PyAny>> {
    let handler = match (backward, cuda) {
        (false, false) => handler::<Forward, 2, 1, false> as Handler,
        (false, true) => handler::<Forward, 2, 1, true>,
        (true, false) => handler::<Backward, 3, 2, false>,
        (true, true) => handler::<Backward, 3, 2, true>,
    };
    // SAFETY: (1) the pointer is not null; (2) the name lives as long as the program; (3) there is
    // nothing to free.
    let capsule = unsafe { ffi::PyCapsule_New(handler as *mut c_void, CAPSULE.as_ptr(), None) };
    // SAFETY: a new reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(py, capsule) }.map(Bound::unbind)
}

/// A handler, which XLA calls to read the version or to compute.
///
/// # Safety
///
/// The frame comes from XLA's foreign function interface 0, and everything that it points to is
/// valid. With `CUDA` the call is for a GPU.
unsafe extern "C" fn handler<K: Kind<I, O>, const I: usize, const O: usize, const CUDA: bool>(
    frame: *mut Frame,
) -> *mut c_void {
    // SAFETY: as the caller promises; extensions are a list.
    let frame = unsafe { &*frame };
    let mut extension = frame.extensions;
    // SAFETY: as above.
    while let Some(base) = unsafe { extension.as_ref() } {
        if base.kind == METADATA {
            // SAFETY: an extension of this kind has metadata, which the handler writes.
            let metadata = unsafe { &mut *(*extension.cast::<MetadataExtension>()).metadata };
            // The structures here are parts of those of every later version with the same first
            // number, and XLA refuses versions that are a year old.
            // SAFETY: XLA's interface has its version at this place, if there is an interface.
            let its = unsafe { (!frame.api.is_null()).then(|| (*frame.api).version.numbers()) };
            let version = its.filter(|(major, _)| *major == VERSION.0).unwrap_or(VERSION);
            (metadata.version.major, metadata.version.minor) = version;
            // A call may not be captured into a command buffer: it allocates scratch memory in the
            // order of the stream, and XLA makes a child graph of it, which may not allocate.
            metadata.traits = 0;
            return ptr::null_mut();
        }
        extension = base.next;
    }
    // SAFETY: as above: the frame is one for a call, on a GPU if it says so.
    let done = catch_unwind(AssertUnwindSafe(|| unsafe {
        let (place, stream) = if CUDA { gpu(frame)? } else { (Place::Cpu, 0) };
        compute::<K, I, O>(frame, place, stream).map_err(Failure::Ours)
    }));
    let message = match done {
        Ok(Ok(())) => return ptr::null_mut(),
        Ok(Err(Failure::Xla(error))) => return error,
        Ok(Err(Failure::Ours(error))) => Python::attach(|py| error.value(py).to_string()),
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

/// An error of XLA's functions, which the handler returns as it is, or an error of this package.
enum Failure {
    Xla(*mut c_void),
    Ours(PyErr),
}

/// Returns the GPU of a call and the handle of its stream.
///
/// # Safety
///
/// The frame is one for a call on a GPU.
unsafe fn gpu(frame: &Frame) -> Result<(Place, usize), Failure> {
    let (api, context, extensions) = (frame.api, frame.context, ptr::null_mut());
    // SAFETY: XLA's interface begins with its size.
    if unsafe { (*api).struct_size } <= offset_of!(Api, get_ordinal) {
        let message = "linrec on a GPU needs jaxlib 0.6 or later";
        return Err(Failure::Ours(PyValueError::new_err(message)));
    }
    let struct_size = size_of::<StreamArgs>();
    let mut of_stream = StreamArgs { struct_size, extensions, context, stream: ptr::null_mut() };
    let struct_size = offset_of!(OrdinalArgs, ordinal) + size_of::<i32>();
    let mut of_device = OrdinalArgs { struct_size, extensions, context, ordinal: 0 };
    // SAFETY: the functions are XLA's: `struct_size` reaches to both. They write to the arguments,
    // and return null or an error that belongs to the caller, here XLA.
    unsafe {
        let error = ((*api).get_stream)(&mut of_stream);
        let error = if error.is_null() { ((*api).get_ordinal)(&mut of_device) } else { error };
        if !error.is_null() {
            return Err(Failure::Xla(error));
        }
    }
    let place = Place::Cuda(usize::try_from(of_device.ordinal).unwrap_or(usize::MAX));
    Ok((place, of_stream.stream as usize))
}

/// # Safety
///
/// The frame is one for a call. Its buffers are in this place, and `stream` is the place's.
unsafe fn compute<K: Kind<I, O>, const I: usize, const O: usize>(
    frame: &Frame,
    place: Place,
    stream: usize,
) -> PyResult<()> {
    // SAFETY: XLA gives the number of each.
    let (arguments, results, flags) =
        unsafe { (buffers(&frame.arguments), buffers(&frame.results), flags(&frame.attributes)) };
    let wrong = || {
        let (reads, writes, given, taken) = (I + 1, O + 1, arguments.len(), results.len());
        PyValueError::new_err(format!(
            "linrec takes {reads} arrays and flags, and returns {writes}; here it takes {given} and \
             returns {taken}"
        ))
    };
    let ((initial, inputs), (states, results)) =
        arguments.split_last().zip(results.split_last()).ok_or_else(wrong)?;
    let inputs: [&Buffer; I] = inputs.try_into().map_err(|_| wrong())?;
    let results: [&Buffer; O] = results.try_into().map_err(|_| wrong())?;
    let flags = flags.ok_or_else(wrong)?;
    // SAFETY: XLA describes the buffers, and keeps them for the duration of the call; on a GPU
    // until the stream's work is done.
    let read = |name, buffer| unsafe { array(name, buffer, place) };
    let (mut reads, mut writes) = (K::INPUTS.into_iter(), K::RESULTS.into_iter());
    let inputs = try_map(inputs, |buffer| read(reads.next().unwrap_or_default(), buffer))?;
    let results = try_map(results, |buffer| read(writes.next().unwrap_or_default(), buffer))?;
    let (initial, states) = (Some(read("initial", initial)?), Some(read(K::STATES, states)?));
    let axis = inputs[0].shape.len().saturating_sub(1);
    let (reverse, log_coeffs) = (flags & REVERSE != 0, flags & LOG_COEFFS != 0);
    let in_order = flags & IN_ORDER != 0;
    let arguments = Arguments { stream, in_order, ..Arguments::new(axis, reverse, log_coeffs) };
    let pass = Pass { inputs, initial, results, states, arguments, kind: PhantomData::<K> };
    match (pass.check()?, pass.inputs[0].dtype) {
        (Place::Cuda(ordinal), _) => cuda::compute(ordinal, &pass),
        (Place::Cpu, Dtype::BF16) => compute_wide::<half::bf16, K, I, O>(pass),
        (Place::Cpu, Dtype::F16) => compute_wide::<half::f16, K, I, O>(pass),
        (Place::Cpu, _) => cpu::compute(pass),
    }
}

/// Computes a pass over numbers of 16 bits, which are one after the other, in `f32` on the CPU.
fn compute_wide<H: Send + Sync, K: Kind<I, O>, const I: usize, const O: usize>(
    mut pass: Pass<K, I, O>,
) -> PyResult<()>
where
    [H]: HalfFloatSliceExt,
{
    let mut inputs = try_map(pass.inputs.each_ref(), zeros)?;
    let mut results = try_map(pass.results.each_ref(), zeros)?;
    for (array, wide) in pass.inputs.iter().zip(&mut inputs) {
        // SAFETY: the array has been checked: it is of this type, on the CPU, and only read.
        let narrow = unsafe { array.view::<H>() };
        let narrow = narrow.as_slice().unwrap_or_default();
        let chunks = wide.par_chunks_mut(CHUNK).zip(narrow.par_chunks(CHUNK));
        cpu::within(0, || chunks.for_each(|(to, from)| from.convert_to_f32_slice(to)));
    }
    let mut memories = inputs.iter_mut().chain(&mut results);
    let mut wide = |array: &Array| {
        let memory = memories.next().map_or(ptr::null_mut(), |memory| memory.as_mut_ptr().cast());
        Array::new(array.name, memory, Place::Cpu, Dtype::F32, array.shape.clone(), None, false)
    };
    cpu::compute(Pass {
        inputs: try_map(pass.inputs.each_ref(), &mut wide)?,
        results: try_map(pass.results.each_ref(), &mut wide)?,
        initial: pass.initial,
        states: pass.states,
        arguments: pass.arguments,
        kind: pass.kind,
    })?;
    for (array, wide) in pass.results.iter_mut().zip(&results) {
        // SAFETY: as above; no array that is written overlaps another one.
        let mut narrow = unsafe { array.view_mut::<H>() };
        let narrow = narrow.as_slice_mut().unwrap_or_default();
        let chunks = narrow.par_chunks_mut(CHUNK).zip(wide.par_chunks(CHUNK));
        cpu::within(0, || chunks.for_each(|(to, from)| to.convert_from_f32_slice(from)));
    }
    Ok(())
}

fn zeros(like: &Array) -> PyResult<Vec<f32>> {
    let memory = bytemuck::allocation::try_zeroed_vec(like.len());
    memory.map_err(|()| {
        let message = format!("no memory for {} {:?} in f32", like.name, like.shape);
        PyMemoryError::new_err(message)
    })
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
unsafe fn array(name: &'static str, buffer: &Buffer, place: Place) -> PyResult<Array> {
    let dtype = match buffer.dtype {
        10 => Dtype::F16,
        11 => Dtype::F32,
        12 => Dtype::F64,
        15 => Dtype::COMPLEX64,
        16 => Dtype::BF16,
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
    Array::new(name, buffer.data, place, dtype, shape, None, false)
}
