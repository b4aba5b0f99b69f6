//! The recurrence on a GPU, over the caller's memory and on the caller's stream.
#![allow(unsafe_code)]

use std::any::Any;
use std::collections::HashMap;
use std::env;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

use bytemuck::Pod;
use linrec::device::{Buffer, Choice, Device, Job, Recurrence, Shape, Storage, Stream, dispatch};
use linrec::kernels::ElementType;
use pyo3::PyResult;

use crate::array::{Array, Dtype};
use crate::failure::exception;
use crate::pass::{Kind, Pass, try_map};

/// The environment variable for the choice of kernels: `auto:shipped` (the default), `auto`, or a
/// kernel of the catalogue.
const KERNELS: &str = "LINREC_KERNELS";

/// Queues a pass whose arrays have been checked: all are on this device.
pub fn compute<K: Kind<I, O>, const I: usize, const O: usize>(
    ordinal: usize,
    pass: &Pass<K, I, O>,
) -> PyResult<()> {
    match pass.inputs[0].dtype {
        Dtype::Number(element) => dispatch(element, PassJob { ordinal, pass }),
        Dtype::Flag => Err(pass.inputs[0].refused("has no numbers")),
    }
}

struct PassJob<'a, K, const I: usize, const O: usize> {
    ordinal: usize,
    pass: &'a Pass<K, I, O>,
}

impl<K: Kind<I, O>, const I: usize, const O: usize> Job for PassJob<'_, K, I, O> {
    type Output = PyResult<()>;

    fn run<S: Storage>(self) -> PyResult<()> {
        let Pass { inputs, initial, results, states, arguments, .. } = self.pass;
        let first = &inputs[0];
        let shape = rows(first, arguments.axis)?;
        let lent = Lent::new(self.ordinal, arguments.stream)?;
        same_shape(first, inputs[1..].iter().chain(results))?;
        let initial = lent.states::<S>(first, initial.as_ref())?;
        let mut states = lent.states::<S>(first, states.as_ref())?;
        let inputs = try_map(inputs.each_ref(), |array| lent.buffer::<S>(array))?;
        let mut results = try_map(results.each_ref(), |array| lent.buffer::<S>(array))?;
        let launched = K::queue(
            &recurrence::<S>(&lent.device, arguments.in_order)?,
            inputs.each_ref(),
            results.each_mut(),
            shape,
            (initial.as_ref(), states.as_mut()),
            (*arguments, &lent.stream),
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

    /// An array of the caller, whose rows follow one another.
    pub fn buffer<T: Pod>(&self, array: &Array) -> PyResult<Buffer<T>> {
        let address = array.address()?;
        // SAFETY: (1) the array's owner keeps its elements until the call returns, and then until
        // the stream's work so far is done: memory used on a stream is freed in its order; (2) and
        // (3) the caller orders everything else that reads and writes there on the stream.
        unsafe { self.device.lent_buffer(address, array.len()) }.map_err(exception)
    }

    /// An array of the caller, if there is one.
    pub fn optional<T: Pod>(&self, array: &Option<Array>) -> PyResult<Option<Buffer<T>>> {
        array.as_ref().map(|array| self.buffer(array)).transpose()
    }

    /// States, of the shape of `rows` without its last axis, if they are given.
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

/// The shape of the rows, whose axis must be the last one.
fn rows(array: &Array, axis: usize) -> PyResult<Shape> {
    match array.shape.split_last() {
        Some((&seq_len, others)) if axis == others.len() => {
            Ok(Shape { num_seqs: others.iter().product(), seq_len })
        }
        _ => {
            let what = format!("has its sequences along axis {axis}; on a GPU it is the last");
            Err(array.refused(&what))
        }
    }
}

fn same_shape<'a>(first: &Array, mut others: impl Iterator<Item = &'a Array>) -> PyResult<()> {
    match others.find(|other| other.shape != first.shape) {
        None => Ok(()),
        Some(other) => {
            Err(other.refused(&format!("does not fit {} {:?}", first.name, first.shape)))
        }
    }
}

/// A recurrence that takes the steps in order.
#[derive(Clone)]
struct InOrder<S>(Recurrence<S>);

/// Returns the recurrence on a device, which is made at the first call.
fn recurrence<S: Storage>(device: &Device, in_order: bool) -> PyResult<Recurrence<S>> {
    if in_order {
        let make = || Recurrence::in_order(device).map(InOrder).map_err(exception);
        return cached(device, S::ELEMENT, make).map(|InOrder(recurrence)| recurrence);
    }
    cached(device, S::ELEMENT, || {
        let choice = match env::var(KERNELS) {
            Ok(name) => name.parse().map_err(exception)?,
            Err(_) => Choice::FastestShipped,
        };
        Recurrence::new(device, choice).map_err(exception)
    })
}

/// Returns a clone of the value for a device and a type of elements, which is made once.
pub fn cached<V: Any + Clone + Send + Sync>(
    device: &Device,
    element: ElementType,
    make: impl FnOnce() -> PyResult<V>,
) -> PyResult<V> {
    type Key = (String, ElementType, std::any::TypeId);
    type Cache = HashMap<Key, Arc<dyn Any + Send + Sync>>;
    static CACHE: Mutex<Option<Cache>> = Mutex::new(None);

    let key = (device.label().to_owned(), element, std::any::TypeId::of::<V>());
    let lock = || CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    let found = lock().get_or_insert_default().get(&key).cloned();
    if let Some(value) = found.as_ref().and_then(|value| value.downcast_ref::<V>()) {
        return Ok(value.clone());
    }
    // Nothing is locked meanwhile.
    let made = make()?;
    lock().get_or_insert_default().insert(key, Arc::new(made.clone()));
    Ok(made)
}
