//! One pass of the recurrence over arrays from Python, which reads `I` arrays and writes `O`. The
//! forward and the backward pass are its two [kinds](Kind).

use std::marker::PhantomData;

use linrec::cpu::Cpu;
use linrec::device::{
    BackwardOptions, Buffer, ForwardOptions, Launched, Recurrence, Shape, Storage, Stream,
};
use linrec::{Direction, Element, Error, Options};
use ndarray::{ArrayViewD, ArrayViewMutD, Axis, IxDyn};
use pyo3::PyResult;
use pyo3::exceptions::{PyTypeError, PyValueError};

use crate::array::{Array, Place, check_results};
use crate::capsule::{self, Capsule};

/// The arguments of a pass, except for its arrays.
#[derive(Debug, Clone, Copy)]
pub struct Arguments {
    pub axis: usize,
    pub direction: Direction,
    pub log_coeffs: bool,
    /// True if no products of coefficients may be computed.
    pub in_order: bool,
    /// The handle of a GPU's stream.
    pub stream: usize,
    /// The number of threads on the CPU; 0 for all.
    pub threads: usize,
}

impl Arguments {
    /// Returns the arguments for any order of the steps, with the default stream and all threads.
    pub fn new(axis: usize, reverse: bool, log_coeffs: bool) -> Arguments {
        let direction = if reverse { Direction::Reverse } else { Direction::Forward };
        Arguments { axis, direction, log_coeffs, in_order: false, stream: 0, threads: 0 }
    }
}

/// The arrays and the arguments of a pass.
pub struct Pass<K, const I: usize, const O: usize> {
    pub inputs: [Array; I],
    pub initial: Option<Array>,
    pub results: [Array; O],
    /// The states that the pass writes, if the caller wants them: the final states, or the
    /// gradient of the initial ones.
    pub states: Option<Array>,
    pub arguments: Arguments,
    pub kind: PhantomData<K>,
}

impl<K: Kind<I, O>, const I: usize, const O: usize> Pass<K, I, O> {
    /// Reads the arrays from their capsules.
    pub fn read(
        inputs: [Capsule; I],
        initial: Option<Capsule>,
        results: [Capsule; O],
        states: Option<Capsule>,
        arguments: Arguments,
    ) -> PyResult<Self> {
        Ok(Pass {
            inputs: read_all(K::INPUTS, inputs)?,
            initial: capsule::read_optional("initial", initial)?,
            results: read_all(K::RESULTS, results)?,
            states: capsule::read_optional(K::STATES, states)?,
            arguments,
            kind: PhantomData,
        })
    }

    /// Checks the types of all arrays and the memory of the results; returns the device that all
    /// arrays are on.
    pub fn check(&self) -> PyResult<Place> {
        let Pass { inputs, initial, results, states, .. } = self;
        let first = &inputs[0];
        let accumulator = first.dtype.accumulator();
        let arrays = inputs.iter().chain(results).map(|array| (array, first.dtype));
        let all_states = initial.iter().chain(states).map(|state| (state, accumulator));
        for (array, dtype) in arrays.chain(all_states) {
            if array.dtype != dtype {
                let message = format!(
                    "{} is of {}, and {} of {}; it has to be of {dtype}",
                    first.name, first.dtype, array.name, array.dtype
                );
                return Err(PyTypeError::new_err(message));
            }
            if array.place != first.place {
                let message = format!(
                    "{} is on {:?}, and {} on {:?}",
                    first.name, first.place, array.name, array.place
                );
                return Err(PyValueError::new_err(message));
            }
        }
        let read: Vec<_> = inputs.iter().chain(initial).collect();
        let written: Vec<_> = results.iter().chain(states).collect();
        check_results(&read, &written)?;
        Ok(first.place)
    }
}

fn read_all<const N: usize>(
    names: [&'static str; N],
    capsules: [Capsule; N],
) -> PyResult<[Array; N]> {
    let mut names = names.into_iter();
    try_map(capsules, |array| capsule::read(names.next().unwrap_or_default(), array))
}

/// The states that a pass reads, and those that it writes.
type States<'a, A> = (Option<&'a Buffer<A>>, Option<&'a mut Buffer<A>>);

/// A kind of pass: the names of its arrays, and its functions in the library.
pub trait Kind<const I: usize, const O: usize>: Send + Sync {
    const INPUTS: [&'static str; I];
    const RESULTS: [&'static str; O];
    /// The name of the states that the pass writes.
    const STATES: &'static str;

    /// Computes the pass on the CPU; `states` is the final state, or the gradient of the initial
    /// state.
    fn along<T: Element>(
        cpu: &Cpu,
        inputs: [ArrayViewD<T>; I],
        axis: Axis,
        options: &Options<T, IxDyn>,
        results: [ArrayViewMutD<T>; O],
        states: ArrayViewMutD<T>,
    ) -> Result<(), Error>;

    /// Queues the pass on a GPU.
    fn queue<S: Storage>(
        recurrence: &Recurrence<S>,
        inputs: [&Buffer<S>; I],
        results: [&mut Buffer<S>; O],
        shape: Shape,
        states: States<S::Accum>,
        arguments: (Arguments, &Stream),
    ) -> Result<Launched, Error>;
}

/// The forward pass.
pub struct Forward;

impl Kind<2, 1> for Forward {
    const INPUTS: [&'static str; 2] = ["inputs", "coeffs"];
    const RESULTS: [&'static str; 1] = ["outputs"];
    const STATES: &'static str = "final_state";

    fn along<T: Element>(
        cpu: &Cpu,
        [inputs, coeffs]: [ArrayViewD<T>; 2],
        axis: Axis,
        options: &Options<T, IxDyn>,
        [outputs]: [ArrayViewMutD<T>; 1],
        final_state: ArrayViewMutD<T>,
    ) -> Result<(), Error> {
        cpu.forward_along_into(inputs, coeffs, axis, options, outputs, final_state)
    }

    fn queue<S: Storage>(
        recurrence: &Recurrence<S>,
        [inputs, coeffs]: [&Buffer<S>; 2],
        [outputs]: [&mut Buffer<S>; 1],
        shape: Shape,
        (initial, final_state): States<S::Accum>,
        (Arguments { direction, log_coeffs, .. }, stream): (Arguments, &Stream),
    ) -> Result<Launched, Error> {
        let stream = Some(stream);
        let options = ForwardOptions { direction, log_coeffs, initial, final_state, stream };
        recurrence.forward_into(inputs, coeffs, outputs, shape, options)
    }
}

/// The backward pass.
pub struct Backward;

impl Kind<3, 2> for Backward {
    const INPUTS: [&'static str; 3] = ["d_outputs", "coeffs", "outputs"];
    const RESULTS: [&'static str; 2] = ["d_inputs", "d_coeffs"];
    const STATES: &'static str = "d_initial";

    fn along<T: Element>(
        cpu: &Cpu,
        [d_outputs, coeffs, outputs]: [ArrayViewD<T>; 3],
        axis: Axis,
        options: &Options<T, IxDyn>,
        [d_inputs, d_coeffs]: [ArrayViewMutD<T>; 2],
        d_initial: ArrayViewMutD<T>,
    ) -> Result<(), Error> {
        cpu.backward_along_into(
            d_outputs, coeffs, outputs, axis, options, d_inputs, d_coeffs, d_initial,
        )
    }

    fn queue<S: Storage>(
        recurrence: &Recurrence<S>,
        [d_outputs, coeffs, outputs]: [&Buffer<S>; 3],
        [d_inputs, d_coeffs]: [&mut Buffer<S>; 2],
        shape: Shape,
        (initial, d_initial): States<S::Accum>,
        (Arguments { direction, log_coeffs, .. }, stream): (Arguments, &Stream),
    ) -> Result<Launched, Error> {
        let stream = Some(stream);
        let options = BackwardOptions { direction, log_coeffs, initial, d_initial, stream };
        recurrence.backward_into(d_outputs, coeffs, outputs, d_inputs, d_coeffs, shape, options)
    }
}

/// Maps an array, up to the first error.
pub fn try_map<A, B, const N: usize>(
    array: [A; N],
    map: impl FnMut(A) -> PyResult<B>,
) -> PyResult<[B; N]> {
    let mapped: Vec<B> = array.into_iter().map(map).collect::<PyResult<_>>()?;
    Ok(mapped.try_into().unwrap_or_else(|_| unreachable!("as many as before")))
}
