//! The recurrence that picks its kernel by itself.
//!
//! For every shape, and wherever the arrays begin, its results have the bits of the kernel that it
//! reports. Shapes are chosen around the limits at which the choice changes: whole vectors, none,
//! few rows, many rows, and lengths whose fastest kernel is not shipped. Two tests compare a
//! machine without a compiler, where a shipped kernel runs instead, with a machine that has one.

use approx::assert_abs_diff_eq;
use std::process::Command;

use half::{bf16, f16};
use linrec::device::{
    BackwardOptions, Buffer, Choice, Device, ForwardOptions, KernelEngine, Recurrence, Shape,
    Storage,
};
use linrec::kernels::{ElementType, KernelChoice, Pass, Query, shipped_as};
use linrec::{Direction, Element, Engine, Error, Options};
use ndarray::{Array2, array};
use num_complex::Complex;

use super::{assert_error, on_every_device};

const DIRECTIONS: [Direction; 2] = [Direction::Forward, Direction::Reverse];

/// Numbers in [0.5, 1.5); neighbours differ.
fn numbers<S: Storage>(len: usize, seed: u32) -> Vec<S> {
    let mixed = |i: u32| (i ^ seed).wrapping_mul(2_654_435_761) >> 9;
    let number = |i| 0.5 + f64::from(mixed(i)) / f64::from(1 << 23);
    (0..len as u32).map(|i| S::narrow(Element::from_real(number(i)))).collect()
}

#[test]
fn short_rows_share_a_warp_and_long_ones_get_a_block() {
    on_every_device(|device| {
        for choice in [Choice::FastestShipped, Choice::FastestOfAll] {
            let auto = Recurrence::<f32>::new(device, choice)?;
            for pass in Pass::ALL {
                for (seq_len, name) in
                    [(128, "rows"), (100, "rows"), (8192, "wide"), (8191, "wide")]
                {
                    let choice = auto.kernel(pass, (13_200, seq_len), true)?;
                    assert_eq!(choice.name(), name, "{pass:?} {seq_len}");
                }
            }
        }
        Ok(())
    });
}

#[test]
fn rows_of_whole_vectors_are_recognised() {
    on_every_device(|device| {
        let auto = Recurrence::<f32>::new(device, Choice::FastestShipped)?;
        let mut in_vectors = 0;
        for seq_len in (4..16).map(|log| 1_usize << log) {
            // Whole vectors, vectors that begin anywhere, and no whole vectors.
            for (seq_len, aligned) in [(seq_len, true), (seq_len, false), (seq_len - 1, true)] {
                let whole = aligned && seq_len.is_multiple_of(4);
                let (element, pass) = (ElementType::F32, Pass::Forward);
                let (num_seqs, shipped_only) = (13_200, true);
                let len = seq_len as u64;
                let query = Query { element, pass, num_seqs, seq_len: len, whole, shipped_only };
                let best = KernelChoice::best(query);
                assert_eq!(auto.kernel(pass, (13_200, seq_len), aligned)?, best, "{seq_len}");
                in_vectors += u32::from(best.multiple_of(element) == 4);
            }
        }
        assert!(in_vectors > 0, "no kernel for whole vectors is ever the fastest");
        Ok(())
    });
}

/// Returns the bits of every number that a forward pass writes, and of the numbers around them.
fn forward<S: Storage>(
    device: &Device,
    shape: Shape,
    offset: usize,
    run: impl Fn([&Buffer<S>; 2], &mut Buffer<S>, ForwardOptions<S::Accum>) -> Result<(), Error>,
) -> Result<Vec<Vec<u8>>, Error> {
    let len = shape.num_seqs * shape.seq_len;
    let place = offset..offset + len;
    let inputs = device.upload(&numbers::<S>(len, 1))?;
    let coeffs = device.upload(&numbers::<S>(offset + len + 3, 2))?.slice(place.clone())?;
    let initial = device.upload(&numbers::<S::Accum>(shape.num_seqs, 3))?;
    let mut all = device.allocate::<S>(offset + len + 3)?;
    all.poison()?;
    let mut results = Vec::new();
    for direction in DIRECTIONS {
        let (mut outputs, mut last) = (all.slice(place.clone())?, device.allocate(shape.num_seqs)?);
        last.poison()?;
        let options = ForwardOptions {
            direction,
            log_coeffs: false,
            initial: Some(&initial),
            final_state: Some(&mut last),
            stream: None,
        };
        run([&inputs, &coeffs], &mut outputs, options)?;
        results.push(bytemuck::cast_slice(&all.download()?).to_vec());
        results.push(bytemuck::cast_slice(&last.download()?).to_vec());
    }
    Ok(results)
}

/// Returns the bits of every number that a backward pass writes, and of the numbers around them.
fn backward<S: Storage>(
    device: &Device,
    shape: Shape,
    offset: usize,
    run: impl Fn([&Buffer<S>; 3], [&mut Buffer<S>; 2], BackwardOptions<S::Accum>) -> Result<(), Error>,
) -> Result<Vec<Vec<u8>>, Error> {
    let len = shape.num_seqs * shape.seq_len;
    let place = offset..offset + len;
    let [d_outputs, coeffs, outputs] =
        [1, 2, 3].map(|seed| device.upload(&numbers::<S>(len, seed)));
    let (d_outputs, coeffs, outputs) = (d_outputs?, coeffs?, outputs?);
    let initial = device.upload(&numbers::<S::Accum>(shape.num_seqs, 4))?;
    let (mut all, mut d_inputs) = (device.allocate::<S>(offset + len + 3)?, device.allocate(len)?);
    all.poison()?;
    let mut results = Vec::new();
    for direction in DIRECTIONS {
        d_inputs.poison()?;
        let (mut d_coeffs, mut d_initial) =
            (all.slice(place.clone())?, device.allocate(shape.num_seqs)?);
        d_initial.poison()?;
        let options = BackwardOptions {
            direction,
            log_coeffs: false,
            initial: Some(&initial),
            d_initial: Some(&mut d_initial),
            stream: None,
        };
        run([&d_outputs, &coeffs, &outputs], [&mut d_inputs, &mut d_coeffs], options)?;
        results.push(bytemuck::cast_slice(&d_inputs.download()?).to_vec());
        results.push(bytemuck::cast_slice(&all.download()?).to_vec());
        results.push(bytemuck::cast_slice(&d_initial.download()?).to_vec());
    }
    Ok(results)
}

/// For every shape and every beginning of the arrays, the bits are those of the chosen kernel.
fn equals_the_chosen_kernel<S: Storage>() {
    on_every_device(|device| {
        let auto = Recurrence::<S>::new(device, Choice::Fastest)?;
        let lengths = [1, 2, 31, 64, 100, 129, 1000, 2051];
        for (seq_len, offset) in lengths.into_iter().flat_map(|len| [(len, 0), (len, 1)]) {
            let shape = Shape { num_seqs: 5, seq_len };
            let mine = forward::<S>(device, shape, offset, |[x, c], y, options| {
                let launched = auto.forward_into(x, c, y, shape, options)?;
                let aligned = [x, c, &*y].iter().all(|array| array.is_aligned_to(16));
                let choice = auto.kernel(Pass::Forward, shape, aligned)?;
                assert_eq!(launched.choice(), Some(choice));
                assert!(offset == 0 || size_of::<S>() == 16 || choice.multiple_of(S::ELEMENT) == 1);
                Ok(())
            })?;
            let aligned = (offset * size_of::<S>()).is_multiple_of(16);
            let choice = auto.kernel(Pass::Forward, shape, aligned)?;
            let alone = Recurrence::<S>::new(device, choice)?;
            let other = forward::<S>(device, shape, offset, |[x, c], y, options| {
                alone.forward_into(x, c, y, shape, options).map(drop)
            })?;
            assert!(mine == other, "other bits than {choice} at {shape:?}, offset {offset}");

            let mine = backward::<S>(device, shape, offset, |[d, c, y], [dx, dc], options| {
                auto.backward_into(d, c, y, dx, dc, shape, options).map(drop)
            })?;
            let choice = auto.kernel(Pass::Backward, shape, aligned)?;
            let alone = Recurrence::<S>::new(device, choice)?;
            let other = backward::<S>(device, shape, offset, |[d, c, y], [dx, dc], options| {
                alone.backward_into(d, c, y, dx, dc, shape, options).map(drop)
            })?;
            assert!(mine == other, "other bits than {choice} at {shape:?}, offset {offset}");
        }
        Ok(())
    });
}

#[test]
fn the_bits_of_the_chosen_kernel_f32() {
    equals_the_chosen_kernel::<f32>();
}

#[test]
fn the_bits_of_the_chosen_kernel_f64() {
    equals_the_chosen_kernel::<f64>();
}

#[test]
fn the_bits_of_the_chosen_kernel_complex() {
    equals_the_chosen_kernel::<Complex<f32>>();
    equals_the_chosen_kernel::<Complex<f64>>();
}

#[test]
fn the_bits_of_the_chosen_kernel_in_16_bits() {
    equals_the_chosen_kernel::<bf16>();
    equals_the_chosen_kernel::<f16>();
}

#[test]
fn empty_shapes_launch_nothing() {
    on_every_device(|device| {
        let auto = Recurrence::<f64>::new(device, Choice::Fastest)?;
        let none = device.allocate(0)?;
        let (mut outputs, mut d_inputs) = (device.allocate(0)?, device.allocate(0)?);
        for num_seqs in [0, 3] {
            let initial = device.upload(&vec![5.0; num_seqs])?;
            let (mut last, mut d_initial) =
                (device.allocate(num_seqs)?, device.allocate(num_seqs)?);
            last.poison()?;
            d_initial.poison()?;
            let options = ForwardOptions {
                initial: Some(&initial),
                final_state: Some(&mut last),
                ..ForwardOptions::default()
            };
            auto.forward_into(&none, &none, &mut outputs, (num_seqs, 0), options)?;
            assert_eq!(last.download()?, vec![5.0; num_seqs], "the initial state again");
            let options = BackwardOptions {
                initial: Some(&initial),
                d_initial: Some(&mut d_initial),
                ..BackwardOptions::default()
            };
            auto.backward_into(
                &none,
                &none,
                &none,
                &mut outputs,
                &mut d_inputs,
                (num_seqs, 0),
                options,
            )?;
            assert_eq!(d_initial.download()?, vec![0.0; num_seqs], "nothing depends on it");
        }
        let options = ForwardOptions::default();
        let launched = auto.forward_into(&none, &none, &mut outputs, (0, 9), options)?;
        assert!(launched.choice().is_some());
        Ok(())
    });
}

#[test]
fn mismatched_arrays_are_refused_before_kernels_are_loaded() {
    on_every_device(|device| {
        let auto = Recurrence::<f32>::new(device, Choice::Fastest)?;
        let (six, five) = (device.upload(&[0.0; 6])?, device.upload(&[0.0; 5])?);
        let mut outputs = device.allocate(6)?;
        let mut run = |x, c, shape: (usize, usize)| {
            auto.forward_into(x, c, &mut outputs, shape, ForwardOptions::default())
        };
        assert_error(
            run(&five, &six, (2, 3)),
            &["mismatch in forward_into: shape [2, 3], inputs [5]"],
        );
        assert_error(
            run(&six, &five, (2, 3)),
            &["mismatch in forward_into: shape [2, 3], coeffs [5]"],
        );
        assert_error(run(&six, &six, (usize::MAX, 3)), &["shape mismatch in forward_into"]);
        Ok(())
    });
}

/// Returns the fastest kernel for 8 rows of whole vectors.
fn best(seq_len: usize, shipped_only: bool) -> KernelChoice {
    KernelChoice::best(Query {
        element: ElementType::F32,
        pass: Pass::Forward,
        num_seqs: 8,
        seq_len: seq_len as u64,
        whole: true,
        shipped_only,
    })
}

/// Returns a length at which the fastest kernel is not shipped.
fn to_be_compiled() -> Option<usize> {
    (4..16).map(|log| 1 << log).find(|&seq_len| best(seq_len, false) != best(seq_len, true))
}

#[test]
fn without_a_compiler_a_shipped_kernel_runs_instead() {
    const NAME: &str = "device::auto::without_a_compiler_a_shipped_kernel_runs_instead";
    const NOWHERE: &str = "no-such-folder";
    if std::env::var_os("LINREC_NVRTC").is_none_or(|value| value != NOWHERE) {
        // The same in a program that finds no compiler.
        let this = std::env::current_exe().unwrap();
        let arguments = ["--exact", NAME, "--nocapture"];
        let output =
            Command::new(this).args(arguments).env("LINREC_NVRTC", NOWHERE).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains("1 passed"), "{said}\n{errors}");
        return;
    }
    let Some(seq_len) = to_be_compiled() else { panic!("all of the measured rule is shipped") };
    on_every_device(|device| {
        let auto = Recurrence::<f32>::new(device, Choice::FastestOfAll)?;
        assert_eq!(auto.refused(), []);
        let (inputs, coeffs) =
            (device.upload(&vec![1.0; 8 * seq_len])?, device.upload(&vec![0.5; 8 * seq_len])?);
        let mut outputs = device.allocate(8 * seq_len)?;
        for _ in 0..2 {
            outputs.poison()?;
            let options = ForwardOptions::default();
            let launched =
                auto.forward_into(&inputs, &coeffs, &mut outputs, (8, seq_len), options)?;
            let choice = launched.choice().unwrap();
            assert!(shipped_as(&choice.program(ElementType::F32)).is_some(), "{choice}");
            let last = outputs.download()?[8 * seq_len - 1];
            assert_abs_diff_eq!(last, 2.0 - 0.5_f32.powi(seq_len as i32 - 1), epsilon = 1e-6);
            let refused = auto.refused();
            assert_eq!(refused.len(), 1);
            assert_eq!(refused[0].0, best(seq_len, false));
            assert_error(Err::<(), _>(refused[0].1.clone()), &["NVRTC", NOWHERE]);
        }
        Ok(())
    });
}

#[test]
#[ignore = "needs NVRTC"]
fn with_a_compiler_the_fastest_kernel_is_taken() {
    let Some(seq_len) = to_be_compiled() else { panic!("all of the measured rule is shipped") };
    on_every_device(|device| {
        let auto = Recurrence::<f32>::new(device, Choice::FastestOfAll)?;
        let wanted = best(seq_len, false);
        assert_eq!(auto.kernel(Pass::Forward, (8, seq_len), true)?, wanted);
        assert_eq!(auto.refused(), []);
        let shipped = Recurrence::<f32>::new(device, Choice::FastestShipped)?;
        assert!(shipped.kernel(Pass::Forward, (8, seq_len), true)? != wanted);
        Ok(())
    });
}

#[test]
fn the_engine_takes_arrays_of_the_host() {
    on_every_device(|device| {
        let engine = device.engine::<f32>();
        assert_eq!(Engine::<f32>::name(&engine), format!("auto@{}", device.label()));
        let (ones, zeros) = (Array2::ones((1, 3)), Array2::zeros((1, 3)));
        let options = Options { log_coeffs: true, ..Options::default() };
        let sums = engine.forward(ones.view(), zeros.view(), &options)?;
        assert_eq!(sums.outputs, array![[1.0, 2.0, 3.0]]);
        Ok(())
    });
}

#[test]
fn a_choice_is_written_and_read() {
    for text in ["auto", "auto:shipped", "auto:all", "ref:64", "wide:4x256:a1:w"] {
        assert_eq!(text.parse::<Choice>().unwrap().to_string(), text);
    }
    assert!("auto:none".parse::<Choice>().unwrap_err().to_string().contains("`auto:none`"));
}

#[test]
fn the_fastest_choice_has_no_single_function() {
    let auto = Recurrence::<f32>::new(&Device::simt(), Choice::Fastest).unwrap();
    assert_error(auto.function(Pass::Forward, Direction::Forward), &["auto", "name a kernel"]);
    let named = Recurrence::<f32>::new(&Device::simt(), KernelChoice::default()).unwrap();
    assert_eq!(named.choice(), Choice::Kernel(KernelChoice::default()));
    assert_eq!(named.kernel(Pass::Backward, (3, 5), false), Ok(KernelChoice::default()));
    assert_eq!(named.refused(), []);
}

#[test]
fn threads_may_share_it() {
    fn shared<T: Send + Sync>() {}
    shared::<Recurrence<f32>>();
    shared::<KernelEngine<f32>>();
}
