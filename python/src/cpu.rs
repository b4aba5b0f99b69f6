//! The recurrence on the CPU, over arrays of any strides, and the threads that compute: as many as
//! the caller wants, also in a forked process.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::process;
use std::sync::{Mutex, OnceLock, PoisonError};

use linrec::cpu::Cpu;
use linrec::{Element, Options};
use ndarray::{ArrayD, Axis};
use num_complex::Complex;
use pyo3::PyResult;
use pyo3::exceptions::PyNotImplementedError;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::array::Dtype;
use crate::failure;
use crate::pass::{Arguments, Kind, Pass};

/// The number of elements from which on several threads may compute.
const PARALLEL_ELEMENTS: usize = 1 << 16;

/// Computes a pass whose arrays have been checked: their types, and that results do not overlap
/// other arrays.
pub fn compute<K: Kind<I, O>, const I: usize, const O: usize>(pass: Pass<K, I, O>) -> PyResult<()> {
    match pass.inputs[0].dtype {
        Dtype::F32 => compute_in::<f32, K, I, O>(pass),
        Dtype::F64 => compute_in::<f64, K, I, O>(pass),
        Dtype::COMPLEX64 => compute_in::<Complex<f32>, K, I, O>(pass),
        Dtype::COMPLEX128 => compute_in::<Complex<f64>, K, I, O>(pass),
        dtype => Err(PyNotImplementedError::new_err(format!(
            "the CPU does not compute with elements of {dtype}; convert them to f32"
        ))),
    }
}

fn compute_in<T: Element, K: Kind<I, O>, const I: usize, const O: usize>(
    mut pass: Pass<K, I, O>,
) -> PyResult<()> {
    let Arguments { axis, direction, log_coeffs, in_order, threads, .. } = pass.arguments;
    // The last states are unused if the caller does not want them.
    let mut others = pass.inputs[0].shape.clone();
    others.truncate(axis);
    others.extend(pass.inputs[0].shape.iter().skip(axis + 1));
    let pass_elements = pass.inputs[0].len();
    let mut last = ArrayD::zeros(others);
    // SAFETY: (1) the arrays are of this type, on the CPU; (2) no array that is
    // written overlaps another array, and the caller lets no other thread write to the inputs.
    let inputs = pass.inputs.each_ref().map(|array| unsafe { array.view::<T>() });
    // SAFETY: as above.
    let initial = pass.initial.as_ref().map(|initial| unsafe { initial.view::<T>() }.into());
    // SAFETY: as above.
    let results = pass.results.each_mut().map(|array| unsafe { array.view_mut::<T>() });
    let states = match &mut pass.states {
        // SAFETY: as above.
        Some(states) => unsafe { states.view_mut::<T>() },
        None => last.view_mut(),
    };
    let options = Options { direction, initial, log_coeffs };
    // The library computes fewer elements on this thread. Other threads cost some microseconds.
    let threads = if pass_elements < PARALLEL_ELEMENTS { 0 } else { threads };
    let cpu = if in_order { Cpu::new().in_order() } else { Cpu::new() };
    within(threads, || K::along(&cpu, inputs, Axis(axis), &options, results, states))
        .map_err(failure::exception)
}

/// Computes with `threads` threads, or with all of them if `threads` is 0.
///
/// All of them are rayon's, except in a process that `fork` made after they were started (such as a
/// worker of a data loader). It has none of the threads, and gets new ones.
pub fn within<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> R {
    static FIRST: OnceLock<u32> = OnceLock::new();

    let this = process::id();
    let is_first = *FIRST.get_or_init(|| this) == this;
    if is_first && threads == 0 {
        return work();
    }
    match pool(this, threads) {
        Some(pool) => pool.install(work),
        None => work(),
    }
}

/// Returns the pool of a process with this number of threads, which is made once.
///
/// A pool is never dropped: a drop waits for the threads, and in a forked process for threads that
/// do not exist.
fn pool(process: u32, threads: usize) -> Option<&'static ThreadPool> {
    type Pools = HashMap<(u32, usize), &'static ThreadPool>;
    static POOLS: Mutex<Option<Pools>> = Mutex::new(None);

    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    let pools = pools.get_or_insert_default();
    if let Some(pool) = pools.get(&(process, threads)) {
        return Some(pool);
    }
    let pool = ThreadPoolBuilder::new().num_threads(threads).build().ok()?;
    let pool: &'static ThreadPool = Box::leak(Box::new(pool));
    pools.insert((process, threads), pool);
    Some(pool)
}
