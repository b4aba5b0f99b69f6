//! Coefficients as logarithms.

use half::bf16;
use linrec::device::{
    BackwardOptions, Buffer, Choice, Device, ForwardOptions, KernelEngine, Recurrence, Storage,
};
use linrec::kernels::{KernelChoice, PipeConfig, Program};
use linrec::{Direction, Element, Engine, Error, Options};
use ndarray::{Array2, ArrayView2};
use num_complex::Complex;

use super::{assert_error, on_every_device};
use crate::exponential::Twin;

const SHAPE: (usize, usize) = (5, 131);

/// Deterministic numbers in [-1, 1), all different.
fn numbers(len: usize, seed: u32) -> Vec<f32> {
    let mixed = |i: u32| (i ^ seed).wrapping_mul(2_654_435_761) >> 8;
    (0..len as u32).map(|i| mixed(i) as f32 / (1 << 23) as f32 - 1.0).collect()
}

fn array<T: Element>(seed: u32) -> Array2<T> {
    let numbers = numbers(2 * SHAPE.0 * SHAPE.1, seed);
    let number = |(i, j)| {
        let at = i * SHAPE.1 + j;
        T::from_polar(f64::from(numbers[at]), f64::from(numbers[at + SHAPE.0 * SHAPE.1]))
    };
    Array2::from_shape_fn(SHAPE, number)
}

/// A printed number is read as the same number.
fn text<T: Element>(numbers: impl IntoIterator<Item = T>) -> Vec<String> {
    numbers.into_iter().map(|number| format!("{number:?}")).collect()
}

/// Logarithms give the bits that the coefficients give, and their gradient is `d_coeffs * c`.
fn same_as_plain<T: Element + Twin + Storage<Accum = T>>(device: &Device) -> Result<(), Error> {
    let [inputs, logs, d_outputs]: [Array2<T>; 3] = [1, 2, 3].map(array);
    let coeffs = logs.mapv(Twin::twin_exp);
    let choices = KernelChoice::shipped(T::ELEMENT).map(Choice::Kernel).chain([Choice::Fastest]);
    for choice in choices {
        let engine = KernelEngine::<T>::new(device, choice)?;
        if !engine.domain().takes(SHAPE.1) {
            continue;
        }
        for direction in [Direction::Forward, Direction::Reverse] {
            let initial = || Some(inputs.column(3).to_owned().into());
            let options = |log_coeffs| Options { direction, log_coeffs, initial: initial() };
            let forward = |coeffs: ArrayView2<T>, log_coeffs| {
                engine.forward(inputs.view(), coeffs, &options(log_coeffs))
            };
            let (got, plain) = (forward(logs.view(), true)?, forward(coeffs.view(), false)?);
            let all =
                |of: &linrec::Outputs<T>| text(of.outputs.iter().chain(&of.final_state).copied());
            assert_eq!(all(&got), all(&plain), "{choice} on {}", device.label());

            let backward = |coeffs: ArrayView2<T>, log_coeffs| {
                let outputs = plain.outputs.view();
                engine.backward(d_outputs.view(), coeffs, outputs, &options(log_coeffs))
            };
            let (got, plain) = (backward(logs.view(), true)?, backward(coeffs.view(), false)?);
            let all =
                |of: &linrec::Gradients<T>| text(of.d_inputs.iter().chain(&of.d_initial).copied());
            assert_eq!(all(&got), all(&plain), "{choice} on {}", device.label());
            for ((got, plain), coeff) in got.d_coeffs.iter().zip(&plain.d_coeffs).zip(&coeffs) {
                // For complex numbers the CPU rounds in another order.
                let expected = *plain * coeff.conj();
                let error = (*got - expected).modulus();
                let bound = T::PRODUCT_ROUNDINGS * 2.0 * T::UNIT_ROUNDOFF * expected.modulus();
                assert!(error <= bound, "{got} instead of {expected}, {choice}");
            }
        }
    }
    Ok(())
}

#[test]
fn logarithms_give_the_bits_of_coefficients() {
    on_every_device(|device| {
        same_as_plain::<f32>(device)?;
        same_as_plain::<f64>(device)?;
        same_as_plain::<Complex<f32>>(device)?;
        same_as_plain::<Complex<f64>>(device)
    });
}

#[test]
fn of_16_bits_they_are_computed_with_in_f32() {
    on_every_device(|device| {
        let round = |array: Array2<f32>| array.mapv(|x| bf16::from_f32(x).to_f32());
        let [inputs, logs, d_outputs] = [1, 2, 3].map(|seed| round(array(seed) * 0.1));
        let (inputs, logs, d_outputs) = (inputs.view(), logs.view(), d_outputs.view());
        let options = Options { log_coeffs: true, ..Options::default() };
        for choice in [Choice::Kernel(KernelChoice::Pipe(PipeConfig::DEFAULT)), Choice::Fastest] {
            let narrow = KernelEngine::<bf16>::new(device, choice)?;
            let wide = KernelEngine::<f32>::new(device, choice)?;
            let (got, expected) =
                (narrow.forward(inputs, logs, &options)?, wide.forward(inputs, logs, &options)?);
            assert_eq!(got.outputs, round(expected.outputs), "{choice}");
            assert_eq!(got.final_state, expected.final_state, "{choice}");
            let outputs = got.outputs.view();
            let got = narrow.backward(d_outputs, logs, outputs, &options)?;
            let expected = wide.backward(d_outputs, logs, outputs, &options)?;
            assert_eq!(got.d_inputs, round(expected.d_inputs), "{choice}");
            assert_eq!(got.d_coeffs, round(expected.d_coeffs), "{choice}");
            assert_eq!(got.d_initial, expected.d_initial, "{choice}");
        }
        Ok(())
    });
}

/// Arrays on a device, and both passes over them.
struct Problem {
    recurrence: Recurrence<f32>,
    inputs: Buffer<f32>,
    logs: Buffer<f32>,
    outputs: Buffer<f32>,
    d_inputs: Buffer<f32>,
    d_logs: Buffer<f32>,
}

impl Problem {
    fn new(recurrence: &Recurrence<f32>, seed: u32) -> Result<Problem, Error> {
        let (device, len) = (recurrence.device(), SHAPE.0 * SHAPE.1);
        Ok(Problem {
            recurrence: recurrence.clone(),
            inputs: device.upload(&numbers(len, seed))?,
            logs: device.upload(&numbers(len, seed + 1))?,
            outputs: device.allocate(len)?,
            d_inputs: device.allocate(len)?,
            d_logs: device.allocate(len)?,
        })
    }

    fn queue(&mut self, stream: &linrec::device::Stream) -> Result<(), Error> {
        let Problem { recurrence, inputs, logs, outputs, d_inputs, d_logs } = self;
        let (stream, log_coeffs) = (Some(stream), true);
        let options = ForwardOptions { stream, log_coeffs, ..Default::default() };
        recurrence.forward_into(inputs, logs, outputs, SHAPE, options)?;
        let options = BackwardOptions { stream, log_coeffs, ..Default::default() };
        recurrence.backward_into(inputs, logs, outputs, d_inputs, d_logs, SHAPE, options)?;
        Ok(())
    }

    /// The results, which are NaN from now on.
    fn take(&mut self) -> Result<Vec<Vec<f32>>, Error> {
        let mut results = Vec::new();
        for buffer in [&mut self.outputs, &mut self.d_inputs, &mut self.d_logs] {
            results.push(buffer.download()?);
            buffer.poison()?;
        }
        assert!(results.iter().flatten().all(|number| number.is_finite()));
        Ok(results)
    }
}

#[test]
fn calls_of_one_recurrence_do_not_disturb_each_other() {
    on_every_device(|device| {
        let recurrence = Recurrence::new(device, Choice::Fastest)?;
        let problem = |seed| Problem::new(&recurrence, seed);
        let mut problems = [problem(10)?, problem(20)?, problem(30)?];
        let mut expected = Vec::new();
        for problem in &mut problems {
            problem.queue(&device.stream())?;
            expected.push(problem.take()?);
        }

        // A graph is replayed while other threads queue work on other streams.
        let [first, others @ ..] = &mut problems;
        let graph = device.record(|stream| first.queue(stream))?;
        assert_eq!(graph.len(), 5);
        for _ in 0..5 {
            std::thread::scope(|scope| {
                for problem in others.iter_mut() {
                    scope.spawn(|| problem.queue(&device.new_stream().unwrap()).unwrap());
                }
                graph.replay(&device.stream()).unwrap();
            });
            for (problem, expected) in others.iter_mut().zip(&expected[1..]) {
                assert!(problem.take()? == *expected, "on {}", device.label());
            }
            assert!(first.take()? == expected[0], "on {}", device.label());
        }
        Ok(())
    });
}

#[test]
fn counters_cover_every_kernel_that_ran() {
    let device = Device::simt();
    let recurrence = Recurrence::<f32>::new(&device, KernelChoice::default()).unwrap();
    let ones = device.upload(&[1.0; 6]).unwrap();
    let mut outputs = device.allocate(6).unwrap();
    let mut stored = |log_coeffs| {
        let options = ForwardOptions { log_coeffs, ..Default::default() };
        let launched =
            recurrence.forward_into(&ones, &ones, &mut outputs, (2, 3), options).unwrap();
        assert_eq!(launched.choice(), Some(KernelChoice::default()));
        launched.counters().unwrap().thread_instructions
    };
    let (plain, with_logs) = (stored(false), stored(true));
    assert!(with_logs > plain, "{with_logs}, and {plain} without the exponential");
}

#[test]
fn errors_name_unsupported_logarithms() {
    let device = Device::simt();
    // 62 GiB each, of the emulator's 256: scratch in f32 takes 124 more. No byte is touched.
    let len = 31 << 30;
    let (array, mut outputs) = (device.allocate::<bf16>(len), device.allocate::<bf16>(len));
    let (Ok(array), Ok(outputs)) = (&array, &mut outputs) else { panic!("no memory") };
    let options = ForwardOptions { log_coeffs: true, ..Default::default() };
    let recurrence = Recurrence::<bf16>::new(&device, Choice::Fastest).unwrap();
    let _most = device.allocate::<u8>(20 << 30).unwrap();
    let outcome = recurrence.forward_into(array, array, outputs, (1, len), options);
    assert_error(outcome, &["simt: forward_into, log_coeffs: true:", "memory"]);
}

#[test]
#[ignore = "needs NVRTC"]
fn custom_programs_have_no_kernels_for_the_wide_type() {
    on_every_device(|device| {
        let choice = KernelChoice::Pipe(PipeConfig::DEFAULT);
        let program = choice.program(bf16::ELEMENT);
        let program = Program { source: format!("{}\n", program.source).into(), ..program };
        let engine = KernelEngine::<bf16>::from_program(device, choice, &program)?;
        assert!(!engine.domain().log_coeffs);
        let zeros = Array2::zeros((1, 1));
        let options = Options { log_coeffs: true, ..Options::default() };
        let outcome = engine.forward(zeros.view(), zeros.view(), &options);
        assert_error(
            outcome,
            &["pipe:8x64:0 does not support log_coeffs: true for bf16", "store f32"],
        );
        Ok(())
    });
}
