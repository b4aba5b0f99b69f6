//! The recurrence on a GPU, in memory and on a stream of the caller's.
#![allow(unsafe_code)]

use std::any::Any;
use std::collections::HashMap;
use std::env;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

use linrec::device::{
    BackwardOptions, Buffer, Choice, Device, ForwardOptions, Job, Recurrence, Shape, Storage,
    Stream, dispatch,
};
use pyo3::PyResult;

use crate::array::{Array, Dtype};
use crate::failure::exception;
use crate::recurrence::{Asked, Backward, Forward};

/// The variable that names the kernels: `auto:shipped` (the default), `auto`, or one of the
/// catalogue.
const KERNELS: &str = "LINREC_KERNELS";

/// The arrays have been checked: all are on this device.
pub fn forward(ordinal: usize, arrays: &Forward, asked: Asked) -> PyResult<()> {
    dispatch(arrays.inputs.dtype, ForwardJob { ordinal, arrays, asked })
}

/// As `forward`.
pub fn backward(ordinal: usize, arrays: &Backward, asked: Asked) -> PyResult<()> {
    dispatch(arrays.d_outputs.dtype, BackwardJob { ordinal, arrays, asked })
}

struct ForwardJob<'a> {
    ordinal: usize,
    arrays: &'a Forward,
    asked: Asked,
}

impl Job for ForwardJob<'_> {
    type Output = PyResult<()>;

    fn run<S: Storage>(self) -> PyResult<()> {
        let ForwardJob { ordinal, arrays, asked } = self;
        let Forward { inputs, coeffs, initial, outputs } = arrays;
        let shape = rows(inputs, asked)?;
        let place = Lent::new(ordinal, asked.stream)?;
        same_shape(inputs, &[coeffs, outputs])?;
        let initial = place.states::<S>(inputs, initial.as_ref())?;
        let (inputs, coeffs) = (place.buffer::<S>(inputs)?, place.buffer::<S>(coeffs)?);
        let mut outputs = place.buffer::<S>(outputs)?;
        let options = ForwardOptions {
            direction: asked.direction,
            log_coeffs: asked.log_coeffs,
            initial: initial.as_ref(),
            final_state: None,
            stream: Some(&place.stream),
        };
        let recurrence = recurrence::<S>(&place.device)?;
        let launched = recurrence.forward_into(&inputs, &coeffs, &mut outputs, shape, options);
        launched.map(drop).map_err(exception)
    }
}

struct BackwardJob<'a> {
    ordinal: usize,
    arrays: &'a Backward,
    asked: Asked,
}

impl Job for BackwardJob<'_> {
    type Output = PyResult<()>;

    fn run<S: Storage>(self) -> PyResult<()> {
        let BackwardJob { ordinal, arrays, asked } = self;
        let Backward { d_outputs, coeffs, outputs, initial, d_inputs, d_coeffs, d_initial } =
            arrays;
        let shape = rows(d_outputs, asked)?;
        let place = Lent::new(ordinal, asked.stream)?;
        same_shape(d_outputs, &[coeffs, outputs, d_inputs, d_coeffs])?;
        let initial = place.states::<S>(d_outputs, initial.as_ref())?;
        let mut d_initial = place.states::<S>(d_outputs, Some(d_initial))?;
        let d_outputs = place.buffer::<S>(d_outputs)?;
        let (coeffs, outputs) = (place.buffer::<S>(coeffs)?, place.buffer::<S>(outputs)?);
        let (mut d_inputs, mut d_coeffs) =
            (place.buffer::<S>(d_inputs)?, place.buffer::<S>(d_coeffs)?);
        let options = BackwardOptions {
            direction: asked.direction,
            log_coeffs: asked.log_coeffs,
            initial: initial.as_ref(),
            d_initial: d_initial.as_mut(),
            stream: Some(&place.stream),
        };
        let recurrence = recurrence::<S>(&place.device)?;
        let launched = recurrence.backward_into(
            &d_outputs,
            &coeffs,
            &outputs,
            &mut d_inputs,
            &mut d_coeffs,
            shape,
            options,
        );
        launched.map(drop).map_err(exception)
    }
}

/// The caller's device and stream.
pub struct Lent {
    pub device: Device,
    pub stream: Stream,
}

impl Lent {
    // ANCHOR: lent
    pub fn new(ordinal: usize, stream: usize) -> PyResult<Lent> {
        let device = Device::cuda(ordinal).map_err(exception)?;
        // SAFETY: (1) the caller passes the handle of a stream of the device's primary context,
        // which outlives the call, and no clone does; (2) nothing is used on it but memory of the
        // caller's, who orders what else is done there, and what the library allocates for the
        // call.
        let stream = unsafe { device.lent_stream(stream as *mut c_void) }.map_err(exception)?;
        Ok(Lent { device, stream })
    }
    // ANCHOR_END: lent

    /// An array of the caller's, which lies row after row.
    pub fn buffer<S: Storage>(&self, array: &Array) -> PyResult<Buffer<S>> {
        let address = array.address()?;
        // SAFETY: (1) the array's owner says that its elements are there, and keeps them until the
        // call returns, and then until the stream's work so far is over: whoever works on a stream
        // frees in its order; (2) and (3) the caller orders on the stream what else reads and
        // writes there.
        unsafe { self.device.lent_buffer(address, array.len()) }.map_err(exception)
    }

    /// An array of the caller's, if there is one.
    pub fn optional<S: Storage>(&self, array: &Option<Array>) -> PyResult<Option<Buffer<S>>> {
        array.as_ref().map(|array| self.buffer(array)).transpose()
    }

    /// States, of the shape of `rows` without its last axis, if there are any.
    fn states<S: Storage>(
        &self,
        rows: &Array,
        states: Option<&Array>,
    ) -> PyResult<Option<Buffer<S::Accum>>> {
        let Some(states) = states else { return Ok(None) };
        if states.shape != rows.shape[..rows.shape.len() - 1] {
            return Err(states.refused(&format!("does not fit {} {:?}", rows.name, rows.shape)));
        }
        self.buffer::<S::Accum>(states).map(Some)
    }
}

/// The shape as the kernels see it.
fn rows(array: &Array, asked: Asked) -> PyResult<Shape> {
    match array.shape.split_last() {
        Some((&seq_len, others)) if asked.axis == others.len() => {
            Ok(Shape { num_seqs: others.iter().product(), seq_len })
        }
        _ => {
            let what =
                format!("has its sequences along axis {}; on a GPU it is the last", asked.axis);
            Err(array.refused(&what))
        }
    }
}

fn same_shape(first: &Array, others: &[&Array]) -> PyResult<()> {
    match others.iter().find(|other| other.shape != first.shape) {
        None => Ok(()),
        Some(other) => {
            Err(other.refused(&format!("does not fit {} {:?}", first.name, first.shape)))
        }
    }
}

/// The recurrence on a device, made when it is first needed.
fn recurrence<S: Storage>(device: &Device) -> PyResult<Recurrence<S>> {
    kept(device, S::ELEMENT, || {
        let choice = match env::var(KERNELS) {
            Ok(name) => name.parse().map_err(exception)?,
            Err(_) => Choice::FastestShipped,
        };
        Recurrence::new(device, choice).map_err(exception)
    })
}

/// What is loaded for a device and a type of elements: it is made once, and a clone of it is
/// returned.
pub fn kept<V: Any + Clone + Send + Sync>(
    device: &Device,
    element: Dtype,
    make: impl FnOnce() -> PyResult<V>,
) -> PyResult<V> {
    type Key = (String, Dtype, std::any::TypeId);
    type Kept = HashMap<Key, Arc<dyn Any + Send + Sync>>;
    static KEPT: Mutex<Option<Kept>> = Mutex::new(None);

    let key = (device.label().to_owned(), element, std::any::TypeId::of::<V>());
    let lock = || KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let found = lock().get_or_insert_default().get(&key).cloned();
    if let Some(value) = found.as_ref().and_then(|value| value.downcast_ref::<V>()) {
        return Ok(value.clone());
    }
    // Nothing is locked meanwhile.
    let made = make()?;
    lock().get_or_insert_default().insert(key, Arc::new(made.clone()));
    Ok(made)
}
