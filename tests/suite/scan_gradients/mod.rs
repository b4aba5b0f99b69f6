//! The gradients of the selective scan: within their bounds, with the same bits, without leaks.
//!
//! `problem` runs random problems on every device with both exponentials; `oracle` computes the
//! gradients in double precision together with a bound of each error. The tests vary lengths,
//! channels, groups, states, options, storage types and alignments. They also compare bits between
//! kernels, launches and devices, and check that restarts separate sequences.

mod cut;
pub mod oracle;
pub mod problem;

use half::{bf16, f16};
use linrec::Error;
use linrec::device::{
    Device, Exponential, ScanBackwardOptions, ScanCouplingGradient, ScanForwardOptions,
    SelectiveScan, Storage, under_test,
};

use crate::engines::has_emulated_functions;
use crate::selective_scan::{given, reference, sizes};
use given::{Options, draw};
use oracle::gradients;
use problem::{OnDevice, computed, judge};
use reference::{Bounded, Problem, Sizes};

/// All options but restarts, which separate sequences.
const ALL: Options = Options { restarts: false, ..Options::ALL };

/// Compares gradients with their bounds, on all devices and with both exponentials.
fn check<S: Storage<Accum = f32>>(
    sizes: Sizes,
    options: Options,
    skip: usize,
) -> Result<(), Error> {
    let problem = draw::<S>(sizes, options);
    let expected = gradients(&problem);
    for device in under_test() {
        for exponential in [Exponential::Fast, Exponential::Exact] {
            let what = format!(
                "{} {exponential:?} {} {sizes:?} {options:?}, {skip} elements behind",
                device.label(),
                S::ELEMENT
            );
            judge(&computed::<S>(&device, exponential, &problem, skip)?, &expected, &what)?;
        }
    }
    Ok(())
}

/// Compares the gradients in double precision with differences of the forward pass.
#[test]
fn the_oracle_has_the_gradients_of_the_forward_pass() {
    type Field = fn(&mut Problem) -> Option<&mut Vec<f64>>;
    let restarts = Options { restarts: true, ..ALL };
    for (options, varies) in [(ALL, true), (restarts, true), (Options::NOTHING, true), (ALL, false)]
    {
        let mut problem = draw::<f32>(sizes(2, 4, 2, 3, 11), options);
        if !varies {
            for coupling in [&mut problem.b, &mut problem.c] {
                coupling.values.truncate(4 * 3);
                coupling.varies = false;
            }
        }
        let loss = |problem: &Problem| -> f64 {
            let results = problem.results();
            let by = |of: &[Bounded], by: &[f64]| {
                of.iter().zip(by).map(|(of, by)| of.value * by).sum::<f64>()
            };
            let by_last = problem.d_last.as_ref().map_or(0.0, |d_last| by(&results.last, d_last));
            by(&results.out, &problem.d_out) + by_last
        };
        let all = gradients(&problem);
        let fields: [(Field, &Vec<Bounded>); 9] = [
            (|problem| Some(&mut problem.u), &all.u),
            (|problem| Some(&mut problem.delta), &all.delta),
            (|problem| problem.z.as_mut(), &all.z),
            (|problem| Some(&mut problem.a), &all.a),
            (|problem| Some(&mut problem.b.values), &all.b),
            (|problem| Some(&mut problem.c.values), &all.c),
            (|problem| problem.d.as_mut(), &all.d),
            (|problem| problem.bias.as_mut(), &all.bias),
            (|problem| problem.initial.as_mut(), &all.initial),
        ];
        for (number, (field, gradient)) in fields.into_iter().enumerate() {
            let len = field(&mut problem).map_or(0, |values| values.len());
            for (index, expected) in gradient.iter().enumerate().take(len) {
                const STEP: f64 = 1e-5;
                let at = |change: f64| {
                    let mut moved = problem.clone();
                    field(&mut moved).unwrap()[index] += change;
                    loss(&moved)
                };
                let slope = (at(STEP) - at(-STEP)) / (2.0 * STEP);
                let expected = expected.value;
                let error = (slope - expected).abs();
                assert!(
                    error < 1e-7 * (1.0 + expected.abs()),
                    "field {number}: {slope}, not {expected}"
                );
            }
        }
    }
}

#[test]
fn gradients_are_within_their_bounds_for_any_length() -> Result<(), Error> {
    for len in [0, 1, 2, 3, 7, 8, 9, 16, 31, 33] {
        check::<f32>(sizes(1, 3, 1, 16, len), ALL, 0)?;
    }
    // Cut into chunks.
    for len in [1000, 1029] {
        let options = Options { slow: true, ..ALL };
        check::<f32>(sizes(1, 17, 1, 16, len), options, 0)?;
        check::<f32>(sizes(1, 5, 1, 3, len), Options { restarts: true, ..options }, 0)?;
    }
    Ok(())
}

#[test]
fn gradients_are_within_their_bounds_for_any_channels_groups_and_states() -> Result<(), Error> {
    let cases = [
        sizes(2, 20, 1, 16, 40),
        sizes(3, 300, 2, 16, 21),
        sizes(2, 6, 6, 10, 29),
        sizes(1, 20, 4, 1, 44),
        sizes(1, 20, 1, 8, 44),
        sizes(1, 20, 1, 9, 44),
        sizes(1, 20, 1, 50, 25),
        sizes(1, 130, 1, 64, 20),
        sizes(1, 70, 1, 128, 12),
        sizes(1, 40, 2, 255, 12),
        sizes(1, 40, 1, 256, 9),
    ];
    for sizes in cases {
        check::<f32>(sizes, ALL, 0)?;
    }
    Ok(())
}

#[test]
fn gradients_are_within_their_bounds_for_all_options() -> Result<(), Error> {
    let cases = [
        Options { d: false, ..ALL },
        Options { z: false, ..ALL },
        Options { bias: false, ..ALL },
        Options { softplus: false, ..ALL },
        Options { initial: false, ..ALL },
        Options { d_last: false, ..ALL },
        Options { restarts: true, ..ALL },
        Options { restarts: true, z: false, softplus: false, ..ALL },
        Options::NOTHING,
    ];
    for options in cases {
        check::<f32>(sizes(2, 6, 2, 10, 29), options, 0)?;
        check::<f32>(sizes(2, 6, 2, 20, 32), options, 0)?;
        check::<bf16>(sizes(2, 6, 2, 16, 32), options, 0)?;
    }
    Ok(())
}

/// The kernels for common sizes: with one tile and with more tiles than stages, in one block and in
/// several, and in chunks.
#[test]
fn gradients_of_common_sizes_are_within_their_bounds() -> Result<(), Error> {
    for (sizes, options) in [
        (sizes(2, 128, 1, 16, 48), ALL),
        (sizes(1, 128, 2, 16, 24), Options { slow: true, ..ALL }),
        (sizes(1, 64, 1, 16, 8), Options { z: false, d: false, ..ALL }),
        (sizes(1, 64, 1, 16, 16), Options { softplus: false, bias: false, ..ALL }),
        (sizes(1, 64, 1, 16, 40), Options { d_last: false, initial: false, ..ALL }),
        (sizes(1, 64, 1, 16, 1040), Options { slow: true, ..ALL }),
        (sizes(1, 64, 1, 16, 520), Options { z: false, bias: false, softplus: false, ..ALL }),
        (sizes(2, 128, 1, 16, 45), ALL),
        (sizes(1, 64, 1, 16, 1037), Options { slow: true, ..ALL }),
        (sizes(1, 64, 1, 16, 1), Options { z: false, d: false, ..ALL }),
        (sizes(2, 64, 1, 8, 48), ALL),
        (sizes(1, 128, 2, 8, 29), Options { d_last: false, initial: false, ..ALL }),
        (sizes(1, 64, 1, 8, 1040), Options { slow: true, ..ALL }),
        (sizes(1, 64, 1, 8, 519), Options { softplus: false, bias: false, ..ALL }),
    ] {
        check::<f32>(sizes, options, 0)?;
        check::<bf16>(sizes, options, 0)?;
    }
    for (states, len) in [(16, 24), (16, 21), (8, 24), (8, 27)] {
        check::<f16>(sizes(1, 64, 1, states, len), ALL, 0)?;
        check::<f32>(sizes(1, 64, 1, states, len), ALL, 1)?;
    }
    Ok(())
}

/// The most common sizes have their own kernels, some of them for arrays of whole vectors. All give
/// the same bits; a request for restarts, none of which is set, selects the general kernel.
#[test]
fn bits_do_not_depend_on_the_kernel() -> Result<(), Error> {
    fn all_the_same<S: Storage<Accum = f32>>(sizes: Sizes) -> Result<(), Error> {
        let problem = draw::<S>(sizes, Options { slow: true, ..ALL });
        let restarts = Some(vec![0; sizes.batch * sizes.len]);
        let general = Problem { restarts, ..problem.clone() };
        for device in under_test() {
            let bits = |problem: &Problem, skip| {
                computed::<S>(&device, Exponential::Fast, problem, skip)?.bits()
            };
            let first = bits(&problem, 0)?;
            for skip in [1, 8] {
                assert!(bits(&problem, skip)? == first, "{} {sizes:?} {skip}", device.label());
            }
            assert!(bits(&general, 0)? == first, "{} {sizes:?}", device.label());
        }
        Ok(())
    }
    for (channels, states, len) in
        [(128, 16, 40), (64, 16, 1040), (64, 16, 523), (128, 8, 40), (64, 8, 523)]
    {
        all_the_same::<bf16>(sizes(1, channels, 1, states, len))?;
        all_the_same::<f32>(sizes(1, channels, 1, states, len))?;
    }
    Ok(())
}

/// B, C or both; in several blocks of states, and in chunks.
#[test]
fn gradients_with_respect_to_constants_are_within_their_bounds() -> Result<(), Error> {
    for constant in [[true, false], [false, true], [true, true]] {
        let options = Options { constant, ..ALL };
        check::<f32>(sizes(2, 6, 2, 10, 29), options, 0)?;
        check::<f32>(sizes(2, 20, 1, 50, 32), Options { restarts: true, ..options }, 0)?;
        check::<bf16>(sizes(3, 6, 2, 8, 33), options, 1)?;
        check::<f32>(sizes(1, 17, 1, 16, 1000), Options { slow: true, ..options }, 0)?;
    }
    Ok(())
}

#[test]
fn arrays_may_begin_anywhere() -> Result<(), Error> {
    for skip in 0..3 {
        for len in [29, 40] {
            check::<f32>(sizes(2, 6, 2, 16, len), ALL, skip)?;
            check::<bf16>(sizes(2, 6, 2, 16, len), ALL, skip)?;
            check::<f16>(sizes(2, 6, 2, 5, len), ALL, skip)?;
        }
    }
    Ok(())
}

#[test]
fn empty_problems_have_gradients_of_zero() -> Result<(), Error> {
    for sizes in [sizes(0, 3, 1, 4, 5), sizes(2, 0, 1, 4, 5), sizes(2, 3, 1, 4, 0)] {
        check::<f32>(sizes, ALL, 0)?;
    }
    Ok(())
}

/// The same bits in every run and on all devices; with the fast exponential on devices whose
/// special functions the emulator has. Sequences that are cut, and groups whose channels are in
/// several blocks, are included.
#[test]
fn bits_are_the_same_each_time_and_everywhere() -> Result<(), Error> {
    for (sizes, options) in [
        (sizes(2, 150, 1, 16, 45), Options { restarts: true, ..ALL }),
        (sizes(1, 20, 1, 16, 700), Options { slow: true, ..ALL }),
        (sizes(1, 20, 1, 40, 30), ALL),
    ] {
        let problem = draw::<f32>(sizes, options);
        let bits = |device: &Device, exponential| {
            computed::<f32>(device, exponential, &problem, 0)?.bits()
        };
        let exact = bits(&Device::simt(), Exponential::Exact)?;
        let fast = bits(&Device::simt(), Exponential::Fast)?;
        for device in under_test() {
            assert!(bits(&device, Exponential::Exact)? == exact, "{} {sizes:?}", device.label());
            let scan = SelectiveScan::<f32>::new(&device, Exponential::Fast);
            let mut here = OnDevice::new(&scan, &problem, 0)?;
            here.backward(&scan)?;
            let first = here.bits()?;
            assert!(
                !has_emulated_functions(&device) || first == fast,
                "{} {sizes:?}",
                device.label()
            );
            for _ in 0..if device.is_simt() { 3 } else { 100 } {
                here.backward(&scan)?;
                assert!(here.bits()? == first, "{} {sizes:?}", device.label());
            }
        }
    }
    Ok(())
}

/// An infinite number in one sequence of a row does not reach the next sequence, and infinite
/// gradients do not reach the one before.
#[test]
fn restarts_separate_sequences() -> Result<(), Error> {
    const FIRST: usize = 13;
    let options = Options { initial: false, d_last: false, ..ALL };
    let mut problem = draw::<f32>(sizes(1, 5, 1, 16, 30), options);
    let mut restarts = vec![0; 30];
    restarts[FIRST] = 1;
    problem.restarts = Some(restarts);
    let expected = gradients(&problem);
    for (spoiled, sound) in [(0..FIRST, FIRST..30), (FIRST..30, 0..FIRST)] {
        let mut problem = problem.clone();
        for channel in 0..5 {
            let row = problem.sizes.row(0, channel);
            for t in spoiled.clone() {
                // The states before the restart, or the gradients after it.
                let array = if spoiled.start == 0 { &mut problem.u } else { &mut problem.d_out };
                array[row + t] = f64::INFINITY;
            }
        }
        for device in under_test() {
            let here = computed::<f32>(&device, Exponential::Fast, &problem, 0)?;
            for (name, _, computed) in here.gradients()? {
                let (expected, rows) = match name {
                    "u" => (&expected.u, 5),
                    "delta" => (&expected.delta, 5),
                    "z" => (&expected.z, 5),
                    "B" => (&expected.b, 16),
                    "C" => (&expected.c, 16),
                    _ => continue,
                };
                for index in (0..rows).flat_map(|row| sound.clone().map(move |t| row * 30 + t)) {
                    let error = (f64::from(computed[index]) - expected[index].value).abs();
                    let bound = 1.001 * expected[index].bound;
                    assert!(
                        error <= bound,
                        "{} {name} {index}: {error:e}, {bound:e}",
                        device.label()
                    );
                }
            }
        }
    }
    Ok(())
}

#[test]
fn a_step_of_training_is_recorded_and_replayed() -> Result<(), Error> {
    let problem = draw::<f32>(sizes(1, 20, 1, 16, 700), ALL);
    for device in under_test() {
        let scan = SelectiveScan::<f32>::new(&device, Exponential::Fast);
        let mut here = OnDevice::new(&scan, &problem, 0)?;
        here.backward(&scan)?;
        let direct = here.bits()?;
        let mut again = OnDevice::new(&scan, &problem, 0)?;
        again.checkpoints.poison()?;
        let (shape, d_last) = (again.shape, again.d_last()?);
        let mut out = device.allocate(problem.u.len())?;
        let mut checkpoints = again.checkpoints.slice(..)?;
        let (inputs, d_out, kept, gradients) = again.parts();
        let graph = device.record(|stream| {
            let options = ScanForwardOptions {
                checkpoints: Some(&mut checkpoints),
                stream: Some(stream),
                ..Default::default()
            };
            scan.forward_into(&inputs, &mut out, shape, options)?;
            let options = ScanBackwardOptions {
                d_last: d_last.as_ref(),
                stream: Some(stream),
                ..Default::default()
            };
            scan.backward_into(&inputs, d_out, kept, gradients, shape, options).map(drop)
        })?;
        graph.replay(&device.stream())?;
        assert!(again.bits()? == direct, "{}", device.label());
    }
    Ok(())
}

#[test]
fn arguments_that_do_not_fit_are_refused() -> Result<(), Error> {
    let device = Device::simt();
    let scan = SelectiveScan::<f32>::new(&device, Exponential::Fast);
    let problem = draw::<f32>(sizes(1, 4, 1, 4, 9), Options { z: false, ..ALL });
    let mut here = OnDevice::new(&scan, &problem, 0)?;
    let shape = here.shape;
    let mut z = device.allocate(4 * 9)?;
    let (inputs, d_out, checkpoints, mut gradients) = here.parts();
    gradients.z = Some(&mut z);
    let refused =
        scan.backward_into(&inputs, d_out, checkpoints, gradients, shape, Default::default());
    assert!(refused.unwrap_err().to_string().contains("a gradient with respect to z without z"));

    let mut constants = device.allocate(4 * 4)?;
    let (inputs, d_out, checkpoints, mut gradients) = here.parts();
    gradients.b = ScanCouplingGradient::Constant(&mut constants);
    let refused =
        scan.backward_into(&inputs, d_out, checkpoints, gradients, shape, Default::default());
    assert!(refused.unwrap_err().to_string().contains("a gradient of B that varies where"));

    let (inputs, d_out, checkpoints, gradients) = here.parts();
    let short = checkpoints.slice(1..)?;
    let refused = scan.backward_into(&inputs, d_out, &short, gradients, shape, Default::default());
    assert!(refused.unwrap_err().to_string().contains("checkpoints [31]"));

    // Checkpoints are read in vectors.
    let (inputs, d_out, checkpoints, gradients) = here.parts();
    let behind = device.allocate::<f32>(checkpoints.len() + 1)?.slice(1..)?;
    let refused = scan.backward_into(&inputs, d_out, &behind, gradients, shape, Default::default());
    assert!(refused.unwrap_err().to_string().contains("checkpoints of 4 states that begin at no"));
    Ok(())
}
