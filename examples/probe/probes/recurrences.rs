//! The kernels that compute the recurrence.

use bytemuck::Pod;
use linrec::contract::Domain;
use linrec::device::{Buffer, Device, Function, Storage};
use linrec::reference::{self, Rounding};
use linrec::{Direction, Element, Error, Options};
use ndarray::{Array, Array1, Array2, Dimension};

use super::Ran;
use super::numbers::numbers;

/// How a kernel is launched, and by which bound it is judged.
pub struct Plan {
    num_seqs: usize,
    seq_len: usize,
    direction: Direction,
    blocks: u32,
    threads: u32,
    rounding: Rounding,
}

impl Plan {
    /// One thread per sequence: three blocks, the last warp with 22 sequences. The rows' length is odd, so
    /// that they begin anywhere in a sector.
    pub fn reference(reverse: bool) -> Plan {
        let (num_seqs, threads) = (150, 64);
        Plan {
            num_seqs,
            seq_len: 67,
            direction: direction(reverse),
            blocks: (num_seqs as u32).div_ceil(threads),
            threads,
            rounding: Rounding { levels: 0, exp_ulps: 0.0 },
        }
    }

    /// One block per sequence: the third warp has elements for 11 of its lanes, the fourth none.
    pub fn block_scan(reverse: bool) -> Plan {
        let (num_seqs, seq_len) = (3, 300);
        Plan {
            num_seqs,
            seq_len,
            direction: direction(reverse),
            blocks: num_seqs as u32,
            threads: 128,
            rounding: tree(seq_len),
        }
    }
}

fn direction(reverse: bool) -> Direction {
    if reverse { Direction::Reverse } else { Direction::Forward }
}

fn tree(seq_len: usize) -> Rounding {
    Rounding { levels: Domain::tree_levels(seq_len), exp_ulps: 0.0 }
}

/// What the kernels are given.
struct Problem<T> {
    inputs: Array2<T>,
    coeffs: Array2<T>,
    options: Options<T>,
}

impl<T: Element> Problem<T> {
    fn new(num_seqs: usize, seq_len: usize, direction: Direction) -> Problem<T> {
        let initial = Array1::from_vec(numbers(3, num_seqs, 5.0, 10.0));
        Problem {
            inputs: rows(num_seqs, seq_len, numbers(1, num_seqs * seq_len, -1.0, 1.0)),
            coeffs: rows(num_seqs, seq_len, numbers(2, num_seqs * seq_len, 0.98, 1.0)),
            options: Options { direction, initial: Some(initial), log_coeffs: false },
        }
    }
}

/// A kernel with the arguments of a forward pass.
pub fn forward<T: Element + Storage>(kernel: &Function, plan: &Plan) -> Result<Ran, Error> {
    let device = kernel.device();
    let Plan { num_seqs, seq_len, .. } = *plan;
    let problem = Problem::<T>::new(num_seqs, seq_len, plan.direction);
    let (inputs, coeffs) = (problem.inputs.view(), problem.coeffs.view());
    let mut outputs = results(device, "outputs", num_seqs * seq_len)?;
    let mut final_state = results(device, "final_state", num_seqs)?;
    let launched = kernel
        .launch(plan.blocks, plan.threads)
        .arg(&upload(device, "inputs", &inputs)?)
        .arg(&upload(device, "coeffs", &coeffs)?)
        .arg(&mut outputs)
        .arg(initial(device, &problem.options)?.as_ref())
        .arg(&mut final_state)
        .arg(num_seqs as i64)
        .arg(seq_len as i64)
        .run(&device.stream())?;
    device.synchronize()?;

    let exact = reference::forward(inputs, coeffs, &problem.options)?;
    let bound = reference::forward_bound(inputs, coeffs, &problem.options, plan.rounding)?;
    let outputs = rows(num_seqs, seq_len, outputs.download()?);
    let final_state = Array1::from_vec(final_state.download()?);
    let verdict =
        judge::<T, _>("outputs", &outputs, &exact.outputs, &bound.outputs).and_then(|()| {
            judge::<T, _>("final_state", &final_state, &exact.final_state, &bound.final_state)
        });
    Ok(Ran { counters: launched.counters().cloned(), verdict })
}

/// A kernel with the arguments of a backward pass.
pub fn backward<T: Element + Storage>(kernel: &Function, plan: &Plan) -> Result<Ran, Error> {
    let device = kernel.device();
    let Plan { num_seqs, seq_len, .. } = *plan;
    let len = num_seqs * seq_len;
    let problem = Problem::<T>::new(num_seqs, seq_len, plan.direction);
    let exact = reference::forward(problem.inputs.view(), problem.coeffs.view(), &problem.options)?;
    let outputs = exact.outputs.mapv(<T as Element>::narrow);
    let d_outputs = rows(num_seqs, seq_len, numbers(5, len, -1.0, 1.0));
    let (d_outputs, coeffs, outputs) = (d_outputs.view(), problem.coeffs.view(), outputs.view());

    let mut d_inputs = results(device, "d_inputs", len)?;
    let mut d_coeffs = results(device, "d_coeffs", len)?;
    let mut d_initial = results(device, "d_initial", num_seqs)?;
    let launched = kernel
        .launch(plan.blocks, plan.threads)
        .arg(&upload(device, "d_outputs", &d_outputs)?)
        .arg(&upload(device, "coeffs", &coeffs)?)
        .arg(&upload(device, "outputs", &outputs)?)
        .arg(initial(device, &problem.options)?.as_ref())
        .arg(&mut d_inputs)
        .arg(&mut d_coeffs)
        .arg(&mut d_initial)
        .arg(num_seqs as i64)
        .arg(seq_len as i64)
        .run(&device.stream())?;
    device.synchronize()?;

    let exact = reference::backward(d_outputs, coeffs, outputs, &problem.options)?;
    let bound =
        reference::backward_bound(d_outputs, coeffs, outputs, &problem.options, plan.rounding)?;
    let d_inputs = rows(num_seqs, seq_len, d_inputs.download()?);
    let d_coeffs = rows(num_seqs, seq_len, d_coeffs.download()?);
    let d_initial = Array1::from_vec(d_initial.download()?);
    let verdict = judge::<T, _>("d_inputs", &d_inputs, &exact.d_inputs, &bound.d_inputs)
        .and_then(|()| judge::<T, _>("d_coeffs", &d_coeffs, &exact.d_coeffs, &bound.d_coeffs))
        .and_then(|()| judge::<T, _>("d_initial", &d_initial, &exact.d_initial, &bound.d_initial));
    Ok(Ran { counters: launched.counters().cloned(), verdict })
}

/// One sequence over four blocks, each of which waits for the one before it.
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
    // Nothing is written here before the launch: to read a state too early is to read nothing.
    let mut states = device.allocate_named::<f32>("states", blocks)?;
    let launched = kernel
        .launch(blocks as u32, 32)
        .arg(&upload(device, "inputs", &inputs)?)
        .arg(&upload(device, "coeffs", &coeffs)?)
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

/// Arrays of a little more than 2^31 elements, of which the last 32 rows matter: their offsets do not
/// fit into 32 bits. A GPU runs the whole grid, the emulator the last block.
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

/// An array `[num_seqs, seq_len]` of values that are as many.
fn rows<T>(num_seqs: usize, seq_len: usize, values: Vec<T>) -> Array2<T> {
    Array2::from_shape_vec((num_seqs, seq_len), values).expect("as many values as elements")
}

fn upload<T: Pod, D: Dimension>(
    device: &Device,
    name: &str,
    values: &ndarray::ArrayView<T, D>,
) -> Result<Buffer<T>, Error> {
    let mut buffer = device.allocate_named(name, values.len())?;
    buffer.upload(&values.iter().copied().collect::<Vec<_>>())?;
    Ok(buffer)
}

fn initial<T: Pod>(device: &Device, options: &Options<T>) -> Result<Option<Buffer<T>>, Error> {
    options.initial.as_ref().map(|state| upload(device, "initial", &state.view())).transpose()
}

/// An array full of NaN: what a kernel forgets to write shows.
fn results<T: Pod>(device: &Device, name: &str, len: usize) -> Result<Buffer<T>, Error> {
    let mut buffer = device.allocate_named(name, len)?;
    buffer.poison()?;
    Ok(buffer)
}

/// The first element that is farther from the exact one than the bound allows.
fn judge<T: Element, D: Dimension>(
    name: &str,
    got: &Array<T, D>,
    exact: &Array<T::Wide, D>,
    bound: &Array<f64, D>,
) -> Result<(), String> {
    let wrong = got.iter().zip(exact).zip(bound).enumerate().find(|(_, ((got, exact), bound))| {
        let error = (got.widen() - **exact).modulus();
        // Written so that NaN is wrong.
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
