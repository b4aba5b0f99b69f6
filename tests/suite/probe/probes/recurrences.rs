//! The kernels that compute the recurrence.
//!
//! Each runs as the library would launch it, by a [`Plan`], over a problem that is rounded to the
//! storage type first, so that the reference sees the same numbers. Results begin as NaN and must
//! all be written and within the derived bound. The kernels that need other arguments, such as
//! `look_back` and the one for more than 2^31 elements, have functions of their own here.

use bytemuck::Pod;
use linrec::contract::Stored;
use linrec::device::{Buffer, Device, Function, Launched, Storage};
use linrec::reference::{self, Rounding};
use linrec::{Direction, Element, Error, Options};
use ndarray::{Array, Array1, Array2, Dimension};

use super::Ran;
use super::numbers::numbers;
use super::plan::{Plan, tree};

pub(super) struct Problem<T: 'static> {
    pub(super) inputs: Array2<T>,
    pub(super) coeffs: Array2<T>,
    pub(super) options: Options<'static, T>,
}

impl<T: Element> Problem<T> {
    pub(super) fn new(num_seqs: usize, seq_len: usize, direction: Direction) -> Problem<T> {
        let initial = Array1::from_vec(numbers(3, num_seqs, 5.0, 10.0));
        Problem {
            inputs: rows(num_seqs, seq_len, numbers(1, num_seqs * seq_len, -1.0, 1.0)),
            coeffs: rows(num_seqs, seq_len, numbers(2, num_seqs * seq_len, 0.98, 1.0)),
            options: Options { direction, initial: Some(initial.into()), log_coeffs: false },
        }
    }

    /// Rounds inputs and coefficients to numbers that the storage holds exactly.
    pub(super) fn through(self, stored: &Stored<T>) -> Problem<T> {
        let (inputs, coeffs) = (stored.array(self.inputs), stored.array(self.coeffs));
        Problem { inputs, coeffs, options: self.options }
    }
}

pub fn forward<S: Storage>(kernel: &Function, plan: &Plan) -> Result<Ran, Error> {
    let (device, stored) = (kernel.device(), Stored::as_in::<S>());
    let shape @ (num_seqs, seq_len) = (plan.num_seqs, plan.seq_len);
    let problem = Problem::<S::Accum>::new(num_seqs, seq_len, plan.direction).through(&stored);
    let (inputs, coeffs) = (problem.inputs.view(), problem.coeffs.view());
    let mut outputs = results::<S>(device, "outputs", num_seqs * seq_len)?;
    let mut final_state = results::<S::Accum>(device, "final_state", num_seqs)?;
    let (x, c) =
        (upload::<S, _>(device, "inputs", &inputs)?, upload::<S, _>(device, "coeffs", &coeffs)?);
    let start = initial(device, &problem.options)?;
    let launch = kernel.launch(plan.blocks, plan.threads).arg(&x).arg(&c).arg(&mut outputs);
    let launched = plan.finish(kernel, launch.arg(start.as_ref()).arg(&mut final_state))?;

    let outputs = fetch(&outputs, shape)?;
    let final_state = Array1::from_vec(final_state.download()?);
    if !plan.is_whole {
        return Ok(ran(&launched, written("outputs", &outputs)));
    }
    let exact = reference::forward(inputs, coeffs, &problem.options)?;
    let mut bound = reference::forward_bound(inputs, coeffs, &problem.options, plan.rounding)?;
    widen(&mut bound.outputs, &exact.outputs, &stored);
    let verdict = judge("outputs", &outputs, &exact.outputs, &bound.outputs)
        .and_then(|()| judge("final_state", &final_state, &exact.final_state, &bound.final_state));
    Ok(ran(&launched, verdict))
}

pub fn backward<S: Storage>(kernel: &Function, plan: &Plan) -> Result<Ran, Error> {
    let (device, stored) = (kernel.device(), Stored::as_in::<S>());
    let shape @ (num_seqs, seq_len) = (plan.num_seqs, plan.seq_len);
    let len = num_seqs * seq_len;
    let problem = Problem::<S::Accum>::new(num_seqs, seq_len, plan.direction).through(&stored);
    let exact = reference::forward(problem.inputs.view(), problem.coeffs.view(), &problem.options)?;
    let outputs = stored.array(exact.outputs.mapv(<S::Accum as Element>::narrow));
    let d_outputs = stored.array(rows(num_seqs, seq_len, numbers(5, len, -1.0, 1.0)));
    let (d_outputs, coeffs, outputs) = (d_outputs.view(), problem.coeffs.view(), outputs.view());

    let mut d_inputs = results::<S>(device, "d_inputs", len)?;
    let mut d_coeffs = results::<S>(device, "d_coeffs", len)?;
    let mut d_initial = results::<S::Accum>(device, "d_initial", num_seqs)?;
    let (d, c, y) = (
        upload::<S, _>(device, "d_outputs", &d_outputs)?,
        upload::<S, _>(device, "coeffs", &coeffs)?,
        upload::<S, _>(device, "outputs", &outputs)?,
    );
    let start = initial(device, &problem.options)?;
    let launch = kernel.launch(plan.blocks, plan.threads).arg(&d).arg(&c).arg(&y);
    let launch = launch.arg(start.as_ref()).arg(&mut d_inputs).arg(&mut d_coeffs);
    let launched = plan.finish(kernel, launch.arg(&mut d_initial))?;

    let (d_inputs, d_coeffs) = (fetch(&d_inputs, shape)?, fetch(&d_coeffs, shape)?);
    let d_initial = Array1::from_vec(d_initial.download()?);
    if !plan.is_whole {
        let verdict = written("d_inputs", &d_inputs).and_then(|()| written("d_coeffs", &d_coeffs));
        return Ok(ran(&launched, verdict));
    }
    let exact = reference::backward(d_outputs, coeffs, outputs, &problem.options)?;
    let mut bound =
        reference::backward_bound(d_outputs, coeffs, outputs, &problem.options, plan.rounding)?;
    widen(&mut bound.d_inputs, &exact.d_inputs, &stored);
    widen(&mut bound.d_coeffs, &exact.d_coeffs, &stored);
    let verdict = judge("d_inputs", &d_inputs, &exact.d_inputs, &bound.d_inputs)
        .and_then(|()| judge("d_coeffs", &d_coeffs, &exact.d_coeffs, &bound.d_coeffs))
        .and_then(|()| judge("d_initial", &d_initial, &exact.d_initial, &bound.d_initial));
    Ok(ran(&launched, verdict))
}

fn ran(launched: &Launched, verdict: Result<(), String>) -> Ran {
    Ran { counters: launched.counters().cloned(), verdict }
}

/// Adds the rounding of storage to the bounds of an array.
pub(super) fn widen<T: Element>(
    bound: &mut Array2<f64>,
    exact: &Array2<T::Wide>,
    stored: &Stored<T>,
) {
    for (bound, exact) in bound.iter_mut().zip(exact) {
        *bound = stored.bound(exact.modulus(), *bound);
    }
}

/// Checks that every element of an array is written; all were NaN before.
fn written<T: Element>(name: &str, array: &Array2<T>) -> Result<(), String> {
    match array.iter().position(|element| element.modulus().is_nan()) {
        None => Ok(()),
        Some(index) => Err(format!("element {index} of {name} is not a number")),
    }
}

/// Runs one sequence over four blocks, each of which waits for the one before it.
pub fn look_back(kernel: &Function) -> Result<Ran, Error> {
    const SEQ_LEN: usize = 1000;
    let device = kernel.device();
    let problem = Problem::<f32>::new(1, SEQ_LEN, Direction::Forward);
    let (inputs, coeffs) = (problem.inputs.view(), problem.coeffs.view());
    let blocks = SEQ_LEN.div_ceil(256);
    let mut outputs = results(device, "outputs", SEQ_LEN)?;
    let mut final_state = results(device, "final_state", 1)?;
    let zeros = |name, len| -> Result<Buffer<u32>, Error> {
        let mut buffer = device.allocate_named(name, len)?;
        buffer.zero()?;
        Ok(buffer)
    };
    let (mut next_tile, mut published) = (zeros("next_tile", 1)?, zeros("published", blocks)?);
    // Not initialised, so that reading a state too early reads an unwritten one.
    let mut states = device.allocate_named::<f32>("states", blocks)?;
    let launched = kernel
        .launch(blocks as u32, 32)
        .arg(&upload::<f32, _>(device, "inputs", &inputs)?)
        .arg(&upload::<f32, _>(device, "coeffs", &coeffs)?)
        .arg(&mut outputs)
        .arg(initial(device, &problem.options)?.as_ref())
        .arg(&mut final_state)
        .arg(SEQ_LEN as i64)
        .arg(&mut next_tile)
        .arg(&mut published)
        .arg(&mut states)
        .run(&device.stream())?;
    device.synchronize()?;

    let exact = reference::forward(inputs, coeffs, &problem.options)?;
    let bound = reference::forward_bound(inputs, coeffs, &problem.options, tree(SEQ_LEN))?;
    let outputs = rows(1, SEQ_LEN, outputs.download()?);
    let final_state = Array1::from_vec(final_state.download()?);
    let verdict =
        judge::<f32, _>("outputs", &outputs, &exact.outputs, &bound.outputs).and_then(|()| {
            judge::<f32, _>("final_state", &final_state, &exact.final_state, &bound.final_state)
        });
    Ok(Ran { counters: launched.counters().cloned(), verdict })
}

/// Runs arrays of a little more than 2^31 elements, whose last 32 rows have offsets beyond 32 bits.
/// A GPU runs the whole grid, the emulator the last block.
pub fn last_rows(kernel: &Function) -> Result<Ran, Error> {
    const SEQ_LEN: usize = 64;
    const ROWS: usize = 32;
    const START: usize = 1 << 31;
    let device = kernel.device();
    let (num_seqs, len) = (START / SEQ_LEN + ROWS, START + ROWS * SEQ_LEN);
    let problem = Problem::<f32>::new(ROWS, SEQ_LEN, Direction::Forward);
    let array = |name, values: &Array2<f32>| -> Result<Buffer<f32>, Error> {
        let mut buffer = device.allocate_named(name, len)?;
        if !device.is_simt() {
            buffer.zero()?;
        }
        buffer.slice(START..)?.upload(&values.iter().copied().collect::<Vec<_>>())?;
        Ok(buffer)
    };
    let (coeffs, inputs) = (array("coeffs", &problem.coeffs)?, array("inputs", &problem.inputs)?);
    let mut outputs = device.allocate_named::<f32>("outputs", len)?;
    outputs.slice(START..)?.poison()?;

    let blocks = (num_seqs / ROWS) as u32;
    let no_state = None::<&Buffer<f32>>;
    let launch = kernel.launch(blocks, ROWS as u32).arg(&inputs).arg(&coeffs).arg(&mut outputs);
    let mut launch = launch.arg(no_state).arg(no_state).arg(num_seqs as i64).arg(SEQ_LEN as i64);
    if device.is_simt() {
        launch = launch.blocks(u64::from(blocks) - 1..u64::from(blocks));
    }
    let launched = launch.run(&device.stream())?;
    device.synchronize()?;

    let from_zero = Options::default();
    let (inputs, coeffs) = (problem.inputs.view(), problem.coeffs.view());
    let exact = reference::forward(inputs, coeffs, &from_zero)?;
    let rounding = Rounding { levels: 0, exp_ulps: 0.0 };
    let bound = reference::forward_bound(inputs, coeffs, &from_zero, rounding)?;
    let outputs = rows(ROWS, SEQ_LEN, outputs.slice(START..)?.download()?);
    let verdict = judge::<f32, _>("outputs", &outputs, &exact.outputs, &bound.outputs);
    Ok(Ran { counters: launched.counters().cloned(), verdict })
}

/// Makes an array `[num_seqs, seq_len]` from a list with exactly as many values.
pub(super) fn rows<T>(num_seqs: usize, seq_len: usize, values: Vec<T>) -> Array2<T> {
    Array2::from_shape_vec((num_seqs, seq_len), values).expect("as many values as elements")
}

pub(super) fn upload<S: Storage, D: Dimension>(
    device: &Device,
    name: &str,
    values: &ndarray::ArrayView<S::Accum, D>,
) -> Result<Buffer<S>, Error> {
    let mut buffer = device.allocate_named(name, values.len())?;
    buffer.upload(&values.iter().map(|&value| S::narrow(value)).collect::<Vec<_>>())?;
    Ok(buffer)
}

pub(super) fn initial<T: Element + Storage<Accum = T>>(
    device: &Device,
    options: &Options<T>,
) -> Result<Option<Buffer<T>>, Error> {
    let upload = |state: &ndarray::CowArray<T, ndarray::Ix1>| {
        upload::<T, _>(device, "initial", &state.view())
    };
    options.initial.as_ref().map(upload).transpose()
}

fn fetch<S: Storage>(
    buffer: &Buffer<S>,
    (num_seqs, seq_len): (usize, usize),
) -> Result<Array2<S::Accum>, Error> {
    Ok(rows(num_seqs, seq_len, buffer.download()?.into_iter().map(S::widen).collect()))
}

/// Allocates an array full of NaN, so that an element that is not written shows.
pub(super) fn results<T: Pod>(device: &Device, name: &str, len: usize) -> Result<Buffer<T>, Error> {
    let mut buffer = device.allocate_named(name, len)?;
    buffer.poison()?;
    Ok(buffer)
}

/// Returns the first element whose error exceeds the bound.
pub(super) fn judge<T: Element, D: Dimension>(
    name: &str,
    got: &Array<T, D>,
    exact: &Array<T::Wide, D>,
    bound: &Array<f64, D>,
) -> Result<(), String> {
    let wrong = got.iter().zip(exact).zip(bound).enumerate().find(|(_, ((got, exact), bound))| {
        let error = (got.widen() - **exact).modulus();
        // In this form, NaN is wrong.
        !matches!(
            error.partial_cmp(bound),
            Some(std::cmp::Ordering::Less | std::cmp::Ordering::Equal)
        )
    });
    match wrong {
        None => Ok(()),
        Some((index, ((got, exact), _))) => {
            Err(format!("element {index} of {name} is {got} instead of {exact}"))
        }
    }
}
