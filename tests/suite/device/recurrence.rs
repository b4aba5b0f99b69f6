//! The project's kernels over buffers, and as engines.
//!
//! The contract holds every kernel to the reference. Here is what its table of cases does not have:
//! the refusals and limits of a launch, the same bits on all devices, rows at any address, states
//! that are not rounded, and recurrences whose products of coefficients overflow. Every test runs
//! on the emulator, and on a GPU where there is one.

use half::bf16;
use linrec::contract::{self, Domain};
use linrec::device::{BackwardOptions, Device, ForwardOptions, KernelEngine, Recurrence, Shape};
use linrec::kernels::{KernelChoice, Pass, PipeConfig, RefConfig, TileConfig};
use linrec::{Direction, Engine, Error, Options, reference};
use ndarray::{Array1, Array2};

use super::{assert_error, on_every_device};

#[test]
fn a_tile_refuses_what_it_cannot_hold() {
    on_every_device(|device| {
        let tile = Recurrence::<f32>::new(device, KernelChoice::Tile(TileConfig::DEFAULT))?;
        let run = |seq_len: usize| {
            let (x, c) = (device.upload(&vec![1.0; seq_len])?, device.upload(&vec![0.5; seq_len])?);
            let mut y = device.allocate(seq_len)?;
            tile.forward_into(&x, &c, &mut y, (1, seq_len), ForwardOptions::default())?;
            y.download()
        };
        assert_eq!(run(1024)?[1023], 2.0);
        assert_error(
            run(1025),
            &[
                "tile:4x256:0 does not support",
                "sequences of 1025 elements in forward_into",
                "1024 at most",
                "`auto` takes any length",
            ],
        );
        Ok(())
    });
}

/// Deterministic numbers in [0.5, 1.5), all different.
fn numbers(len: usize, seed: u32) -> Vec<f32> {
    let mixed = |i: u32| (i ^ seed).wrapping_mul(2_654_435_761) >> 9;
    (0..len as u32).map(|i| 0.5 + mixed(i) as f32 / (1 << 23) as f32).collect()
}

#[test]
fn all_devices_give_the_same_bits() {
    let shape = Shape { num_seqs: 37, seq_len: 501 };
    let len = shape.num_seqs * shape.seq_len;
    let results = |device: &Device, direction| -> Result<Vec<Vec<u32>>, Error> {
        let recurrence = Recurrence::<f32>::new(device, KernelChoice::default())?;
        let (inputs, coeffs) = (device.upload(&numbers(len, 1))?, device.upload(&numbers(len, 2))?);
        let initial = device.upload(&numbers(shape.num_seqs, 3))?;
        let d_outputs = device.upload(&numbers(len, 4))?;
        let (mut outputs, mut d_inputs, mut d_coeffs) =
            (device.allocate(len)?, device.allocate(len)?, device.allocate(len)?);
        let (mut last, mut d_initial) =
            (device.allocate(shape.num_seqs)?, device.allocate(shape.num_seqs)?);
        let (initial, stream) = (Some(&initial), device.new_stream()?);
        let options = ForwardOptions {
            direction,
            log_coeffs: false,
            initial,
            final_state: Some(&mut last),
            stream: Some(&stream),
        };
        recurrence.forward_into(&inputs, &coeffs, &mut outputs, shape, options)?;
        let options = BackwardOptions {
            direction,
            log_coeffs: false,
            initial,
            d_initial: Some(&mut d_initial),
            stream: Some(&stream),
        };
        let gradients = (&mut d_inputs, &mut d_coeffs);
        recurrence.backward_into(
            &d_outputs,
            &coeffs,
            &outputs,
            gradients.0,
            gradients.1,
            shape,
            options,
        )?;
        [&outputs, &last, &d_inputs, &d_coeffs, &d_initial]
            .map(|buffer| Ok(buffer.download()?.into_iter().map(f32::to_bits).collect()))
            .into_iter()
            .collect()
    };
    for direction in [Direction::Forward, Direction::Reverse] {
        let expected = results(&Device::simt(), direction).unwrap();
        on_every_device(|device| {
            assert!(results(device, direction)? == expected, "other bits on {}", device.label());
            Ok(())
        });
    }
}

#[test]
fn empty_shapes_launch_nothing() {
    on_every_device(|device| {
        let recurrence = Recurrence::<f64>::new(device, KernelChoice::default())?;
        let none = device.allocate(0)?;
        let mut outputs = device.allocate(0)?;
        for num_seqs in [0, 3] {
            let initial = device.upload(&vec![5.0; num_seqs])?;
            let mut last = device.allocate(num_seqs)?;
            last.poison()?;
            let options = ForwardOptions {
                initial: Some(&initial),
                final_state: Some(&mut last),
                ..ForwardOptions::default()
            };
            recurrence.forward_into(&none, &none, &mut outputs, (num_seqs, 0), options)?;
            assert_eq!(last.download()?, vec![5.0; num_seqs], "the initial state again");
        }
        let options = ForwardOptions::default();
        let launched = recurrence.forward_into(&none, &none, &mut outputs, (0, 9), options)?;
        assert_eq!(launched.counters().is_some(), device.is_simt());
        Ok(())
    });
}

#[test]
fn rows_may_begin_anywhere() {
    on_every_device(|device| {
        let recurrence = Recurrence::<f32>::new(device, KernelChoice::default())?;
        let inputs = device.upload(&[9.0, 1.0, 2.0, 3.0, 4.0, 9.0])?;
        let coeffs = device.upload(&[9.0, 9.0, 2.0, 2.0, 2.0, 2.0])?;
        let mut outputs = device.upload(&[0.0; 6])?;
        let options = ForwardOptions::default();
        let (x, c, mut y) = (inputs.slice(1..5)?, coeffs.slice(2..)?, outputs.slice(1..5)?);
        recurrence.forward_into(&x, &c, &mut y, (2, 2), options)?;
        assert_eq!(outputs.download()?, [0.0, 1.0, 4.0, 3.0, 10.0, 0.0]);
        outputs.zero()?;
        assert_eq!(y.download()?, [0.0; 4]);
        Ok(())
    });
}

#[test]
fn lengths_are_checked_against_the_shape() {
    on_every_device(|device| {
        let recurrence = Recurrence::<f32>::new(device, KernelChoice::default())?;
        let (six, five) = (device.upload(&[0.0; 6])?, device.upload(&[0.0; 5])?);
        let mut outputs = device.allocate(6)?;
        let mut forward = |inputs, coeffs, shape: (usize, usize), initial| {
            let options = ForwardOptions { initial, ..ForwardOptions::default() };
            recurrence.forward_into(inputs, coeffs, &mut outputs, shape, options)
        };
        let operation = "shape mismatch in forward_into: ";
        assert_error(forward(&six, &five, (2, 3), None), &[operation, "shape [2, 3], coeffs [5]"]);
        assert_error(forward(&five, &six, (2, 3), None), &["shape [2, 3], inputs [5]"]);
        assert_error(forward(&six, &six, (5, 3), None), &["shape [5, 3], inputs [6]"]);
        assert_error(forward(&six, &six, (2, 3), Some(&five)), &["shape [2, 3], initial [5]"]);
        let huge = usize::MAX / 2;
        assert_error(forward(&six, &six, (huge, 4), None), &["shape mismatch"]);
        let (mut d_inputs, mut d_coeffs) = (device.allocate(6)?, device.allocate(5)?);
        let (options, shape) = (BackwardOptions::default(), (2, 3));
        let result = recurrence.backward_into(
            &six,
            &six,
            &six,
            &mut d_inputs,
            &mut d_coeffs,
            shape,
            options,
        );
        assert_error(result, &["shape mismatch in backward_into: shape [2, 3], d_coeffs [5]"]);
        Ok(())
    });
}

#[test]
fn more_sequences_than_a_grid_takes_are_refused() {
    on_every_device(|device| {
        let recurrence =
            Recurrence::<f32>::new(device, KernelChoice::Ref(RefConfig { threads: 1 }))?;
        let (none, mut outputs) = (device.allocate(0)?, device.allocate(0)?);
        let (shape, options) = ((1 << 31, 0), ForwardOptions::default());
        let result = recurrence.forward_into(&none, &none, &mut outputs, shape, options);
        assert_error(
            result,
            &["forward_into: 2147483648 sequences", "a grid has 2147483647 at most"],
        );
        Ok(())
    });
}

#[test]
fn odd_numbers_of_threads() {
    on_every_device(|device| {
        for threads in [1, 33, 1024] {
            let engine =
                KernelEngine::<f32>::new(device, KernelChoice::Ref(RefConfig { threads }))?;
            let domain = Domain { max_len: 40, ..engine.domain() };
            let report = contract::run::<f32>(&engine, &domain);
            assert!(report.passed(), "{report}");
        }
        let (x, c) = (Array2::zeros((1, 1)), Array2::zeros((1, 1)));
        for (threads, said) in [(0, "is empty"), (1025, "is too large")] {
            let engine =
                KernelEngine::<f32>::new(device, KernelChoice::Ref(RefConfig { threads }))?;
            assert_error(engine.forward(x.view(), c.view(), &Options::default()), &[said]);
        }
        Ok(())
    });
}

#[test]
fn narrow_numbers_are_computed_with_in_f32() {
    on_every_device(|device| {
        let engine = KernelEngine::<bf16>::new(device, KernelChoice::Pipe(PipeConfig::DEFAULT))?;
        // Neither 1 + 2^-8 nor twice that, 2 + 2^-7, is a bf16; four times it is.
        let step = 0.00390625;
        let inputs = Array2::from_shape_vec((1, 3), vec![1.0, step, step]).unwrap();
        let coeffs = Array2::ones((1, 3));
        let options =
            Options { initial: Some(Array1::from_vec(vec![0.0]).into()), ..Options::default() };
        let result = engine.forward(inputs.view(), coeffs.view(), &options)?;
        assert_eq!(result.final_state[0], 1.0 + 2.0 * step, "the state is not rounded");
        assert_eq!(result.outputs.as_slice(), Some(&[1.0, 1.0, 1.0 + 2.0 * step][..]));
        Ok(())
    });
}

/// Products of coefficients overflow and underflow, and states do not. All numbers are powers of
/// two, so that the loop's results are exact, in bf16 as well.
fn no_product_is_computed(engine: &dyn Engine<f32>) -> Result<(), Error> {
    let powers = [100, 100, 100, -100, -100, 100, -100, 100].map(|power| 2_f32.powi(power));
    let one_at = |l| Array2::from_shape_fn((3, 8), |(_, step)| f32::from(step == l));
    for direction in [Direction::Forward, Direction::Reverse] {
        let at = |step| direction.position(step, 8);
        let (x, d_y) = (one_at(at(5)), one_at(at(7)));
        let c = Array2::from_shape_fn((3, 8), |(_, l)| powers[at(l)]);
        let options = Options { direction, ..Options::default() };
        let got = engine.forward(x.view(), c.view(), &options)?;
        let exact = reference::forward(x.view(), c.view(), &options)?;
        let name = engine.name();
        assert_eq!(got.outputs, exact.outputs.mapv(|y| y as f32), "{name}");
        let y = got.outputs.view();
        let got = engine.backward(d_y.view(), c.view(), y, &options)?;
        let exact = reference::backward(d_y.view(), c.view(), y, &options)?;
        assert_eq!(got.d_inputs, exact.d_inputs.mapv(|d| d as f32), "{name}");
        assert_eq!(got.d_coeffs, exact.d_coeffs.mapv(|d| d as f32), "{name}");
        assert_eq!(got.d_initial, exact.d_initial.mapv(|d| d as f32), "{name}");
    }
    Ok(())
}

#[test]
fn in_order_no_product_of_coefficients_is_computed() {
    on_every_device(|device| {
        no_product_is_computed(&KernelEngine::from(Recurrence::<f32>::in_order(device)?))
    });
}

/// No PTX of this kernel is shipped for bf16.
#[test]
#[ignore = "needs NVRTC"]
fn in_order_no_product_of_coefficients_is_computed_in_bf16() {
    on_every_device(|device| {
        no_product_is_computed(&KernelEngine::from(Recurrence::<bf16>::in_order(device)?))
    });
}

#[test]
fn a_recurrence_returns_its_functions() {
    on_every_device(|device| {
        let recurrence = Recurrence::<f32>::new(device, KernelChoice::default())?;
        for (pass, params) in [(Pass::Forward, 7), (Pass::Backward, 9)] {
            for direction in [Direction::Forward, Direction::Reverse] {
                let function = recurrence.function(pass, direction)?;
                assert_eq!(function.params().len(), params);
                assert_eq!(function.attributes().registers.is_none(), device.is_simt());
            }
        }
        Ok(())
    });
}
