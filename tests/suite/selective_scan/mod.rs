//! The forward pass of the selective scan: within its bounds, with the same bits for any launch,
//! and without leaks.
//!
//! `given` draws scans and runs them on every device with both exponentials; `reference` computes
//! them in double precision with a derived bound of every error; `golden` compares the reference
//! with Mamba's numbers; `plain` compares the kernels for common sizes with the general one. The
//! tests vary lengths, channels, groups, states, options, storage types, alignments and chunks.

pub mod given;
mod golden;
mod plain;
pub mod reference;

use std::collections::BTreeSet;

use half::{bf16, f16};
use linrec::Error;
use linrec::device::{
    Buffer, Device, Exponential, ScanForwardOptions, ScanInputs, ScanShape, SelectiveScan, Storage,
    under_test,
};
use linrec::kernels;

use crate::engines::has_emulated_functions;
use given::{Arrays, Options, computed, draw, judge};
use reference::{Problem, Sizes};

const BOTH: [Exponential; 2] = [Exponential::Fast, Exponential::Exact];

pub fn sizes(batch: usize, channels: usize, groups: usize, states: usize, len: usize) -> Sizes {
    Sizes { batch, channels, groups, states, len }
}

/// Compares a random scan with its bounds, on all devices and with both exponentials.
fn check<S: Storage<Accum = f32>>(
    sizes: Sizes,
    options: Options,
    skip: usize,
) -> Result<(), Error> {
    check_scan::<S>(&draw::<S>(sizes, options), &format!("{options:?}"), skip)
}

fn check_scan<S: Storage<Accum = f32>>(
    scan: &Problem,
    options: &str,
    skip: usize,
) -> Result<(), Error> {
    let expected = scan.results();
    for device in under_test() {
        for exponential in BOTH {
            let (label, element, sizes) = (device.label(), S::ELEMENT, scan.sizes);
            let what =
                format!("{label} {exponential:?} {element} {sizes:?} {options}, {skip} behind:");
            let computed = computed::<S>(&device, exponential, scan, skip)?;
            judge::<S>(&computed.out, &expected.out, &format!("{what} output"));
            judge::<f32>(&computed.last, &expected.last, &format!("{what} last state"));
            judge::<f32>(
                &computed.checkpoints,
                &expected.checkpoints,
                &format!("{what} checkpoint"),
            );
        }
    }
    Ok(())
}

#[test]
fn results_are_within_their_bounds_for_any_length() -> Result<(), Error> {
    for len in [0, 1, 7, 8, 33, 100, 257] {
        check::<f32>(sizes(2, 3, 1, 16, len), Options::ALL, 0)?;
        check::<f32>(
            sizes(1, 3, 1, 17, len),
            Options { restarts: false, slow: true, ..Options::ALL },
            0,
        )?;
    }
    Ok(())
}

#[test]
fn results_are_within_their_bounds_for_any_channels_groups_and_states() -> Result<(), Error> {
    for states in [1, 8, 16, 17, 40] {
        for (channels, groups) in [(1, 1), (3, 1), (33, 1), (2, 2), (6, 2), (66, 2)] {
            check::<f32>(sizes(1, channels, groups, states, 33), Options::ALL, 0)?;
        }
    }
    check::<f32>(sizes(1, 2, 1, 256, 9), Options::ALL, 0)
}

#[test]
fn results_are_within_their_bounds_for_all_elements() -> Result<(), Error> {
    for states in [1, 8, 16, 17, 40] {
        // Rows of whole vectors, and others.
        for len in [40, 33] {
            check::<f32>(sizes(2, 6, 2, states, len), Options::ALL, 0)?;
            check::<bf16>(sizes(2, 6, 2, states, len), Options::ALL, 0)?;
            check::<f16>(sizes(2, 6, 2, states, len), Options::ALL, 0)?;
        }
    }
    Ok(())
}

fn cut<S: Storage<Accum = f32>>(
    sizes: Sizes,
    options: Options,
    chunks: usize,
) -> Result<(), Error> {
    let scan = Problem { chunks: Some(chunks), ..draw::<S>(sizes, options) };
    check_scan::<S>(&scan, &format!("{options:?}, {chunks} chunks"), 0)
}

/// Lengths around the ends of chunks of one and of two tiles, with and without restarts in each,
/// and chunks that would be empty.
#[test]
fn results_are_within_their_bounds_for_any_chunks() -> Result<(), Error> {
    for (len, chunks) in [(0, 3), (31, 2), (32, 2), (33, 2), (64, 2), (65, 9), (127, 2), (129, 2)] {
        cut::<f32>(sizes(2, 3, 1, 16, len), Options::ALL, chunks)?;
        cut::<f32>(
            sizes(1, 3, 1, 17, len),
            Options { restarts: false, slow: true, ..Options::ALL },
            chunks,
        )?;
    }
    for (channels, groups, states) in [(33, 1, 8), (6, 2, 3), (66, 2, 16), (1, 1, 40), (3, 1, 256)]
    {
        let slow = Options { slow: true, ..Options::ALL };
        cut::<f32>(sizes(1, channels, groups, states, 100), slow, 4)?;
    }
    for options in [
        Options { restarts: false, slow: true, ..Options::NOTHING },
        Options { softplus: false, restarts: false, ..Options::ALL },
        Options { z: false, slow: true, ..Options::ALL },
    ] {
        // More chunks than are combined at once.
        cut::<f32>(sizes(2, 6, 2, 16, 420), options, 20)?;
        cut::<bf16>(sizes(1, 6, 2, 8, 136), options, 4)?;
        cut::<f16>(sizes(1, 6, 2, 17, 135), options, 4)?;
    }
    Ok(())
}

/// Scans of few channels are cut automatically, with the bits of an explicit cut; and outputs do
/// not change if no other result is computed.
#[test]
fn long_sequences_of_few_channels_are_cut() -> Result<(), Error> {
    // No state passes a restart.
    let options = Options { slow: true, restarts: false, ..Options::ALL };
    let mut scan = draw::<f32>(sizes(1, 4, 1, 16, 1100), options);
    for device in under_test() {
        let mut bits = |chunks| {
            scan.chunks = chunks;
            computed::<f32>(&device, Exponential::Fast, &scan, 0).map(|all| all.bits())
        };
        let (cut, whole) = (bits(Some(7))?, bits(Some(1))?);
        assert!(bits(None)? == cut && cut != whole, "{}", device.label());

        let arrays = Arrays::<f32>::new(&device, &scan, 0)?;
        let mut out = device.allocate(scan.u.len())?;
        out.poison()?;
        let fused = SelectiveScan::new(&device, Exponential::Fast);
        let (inputs, shape) = (arrays.inputs(), arrays.shape);
        let graph = device.record(|stream| {
            let options = ScanForwardOptions { stream: Some(stream), ..Default::default() };
            fused.forward_into(&inputs, &mut out, shape, options).map(drop)
        })?;
        graph.replay(&device.stream())?;
        let out: Vec<u32> = out.download()?.into_iter().map(f32::to_bits).collect();
        assert!(out == cut[..out.len()], "{}", device.label());
    }
    Ok(())
}

/// The tests above run every shipped kernel: for up to 8 states, up to 16, and more; and the ones
/// for exactly 8 and 16.
#[test]
fn every_shipped_entry_is_used() {
    let wanted: BTreeSet<String> = ["float", "bf16", "f16"]
        .into_iter()
        .flat_map(|stored| {
            [
                "2, false, false",
                "4, false, false",
                "4, true, false",
                "4, false, true",
                "4, true, true",
            ]
            .map(|parameters| format!("selective_scan_fwd<{stored}, {parameters}>"))
        })
        .chain(["float", "bf16", "f16"].into_iter().flat_map(|stored| {
            let kinds = [
                "2, true, 2",
                "2, false, 2",
                "4, true, 0",
                "4, true, 1",
                "4, true, 2",
                "4, false, 2",
            ];
            kinds.map(|kind| format!("selective_scan_fwd_plain<{stored}, {kind}, false>"))
        }))
        .chain([false, true].map(|exact| format!("selective_scan_fwd_carries<{exact}>")))
        .collect();
    let shipped: BTreeSet<String> = kernels::shipped()
        .flat_map(|(_, ptx)| ptx.entries().map(|(entry, _)| entry.to_owned()).collect::<Vec<_>>())
        .filter(|entry| entry.starts_with("selective_scan_fwd"))
        .collect();
    assert_eq!(shipped, wanted);
}

#[test]
fn results_are_within_their_bounds_for_all_options() -> Result<(), Error> {
    let all = [
        Options { d: false, ..Options::ALL },
        Options { z: false, ..Options::ALL },
        Options { bias: false, ..Options::ALL },
        Options { softplus: false, ..Options::ALL },
        Options { initial: false, ..Options::ALL },
        Options { restarts: false, ..Options::ALL },
        Options { softplus: false, bias: false, ..Options::ALL },
        Options::NOTHING,
    ];
    for options in all {
        for states in [8, 16, 40] {
            check::<f32>(sizes(2, 6, 2, states, 36), options, 0)?;
        }
        check::<bf16>(sizes(2, 6, 2, 16, 41), options, 0)?;
    }
    Ok(())
}

/// B, C or both; with restarts and without; in all kinds of kernels, and in chunks.
#[test]
fn couplings_may_be_constant() -> Result<(), Error> {
    for constant in [[true, false], [false, true], [true, true]] {
        let options = Options { constant, ..Options::ALL };
        for states in [1, 8, 16, 17, 40] {
            check::<f32>(sizes(2, 6, 2, states, 33), options, 0)?;
        }
        check::<f32>(sizes(1, 66, 1, 16, 40), Options { restarts: false, ..options }, 0)?;
        check::<bf16>(sizes(2, 6, 2, 7, 41), Options { constant, ..Options::NOTHING }, 0)?;
        check::<f16>(sizes(2, 6, 2, 20, 40), options, 1)?;
        cut::<f32>(sizes(2, 6, 2, 16, 100), Options { restarts: false, slow: true, ..options }, 4)?;
    }
    check::<f32>(sizes(1, 3, 1, 256, 9), Options { constant: [true; 2], ..Options::ALL }, 0)
}

#[test]
fn arrays_may_begin_anywhere() -> Result<(), Error> {
    for skip in 1..3 {
        check::<f32>(sizes(1, 5, 1, 16, 40), Options::ALL, skip)?;
        check::<bf16>(sizes(1, 5, 1, 8, 40), Options::ALL, skip)?;
        check::<f16>(sizes(1, 5, 1, 17, 40), Options::ALL, skip)?;
    }
    Ok(())
}

#[test]
fn empty_scans_give_empty_results() -> Result<(), Error> {
    check::<f32>(sizes(0, 3, 1, 4, 5), Options::ALL, 0)?;
    check::<f32>(sizes(2, 0, 1, 4, 5), Options::ALL, 0)
}

/// Results that are not computed change nothing.
#[test]
fn outputs_do_not_depend_on_the_other_results() -> Result<(), Error> {
    let scan = draw::<f32>(sizes(1, 20, 1, 17, 45), Options::ALL);
    for device in under_test() {
        let expected = computed::<f32>(&device, Exponential::Fast, &scan, 0)?.out;
        let arrays = Arrays::<f32>::new(&device, &scan, 0)?;
        let mut out = device.allocate(scan.u.len())?;
        out.poison()?;
        let fused = SelectiveScan::new(&device, Exponential::Fast);
        fused.forward_into(&arrays.inputs(), &mut out, arrays.shape, Default::default())?;
        assert_eq!(out.download()?, expected, "{}", device.label());
    }
    Ok(())
}

/// The launch depends on the number of multiprocessors, which is the emulator's number of threads:
/// 4, 2 and 1 computing warps in a block, for 1, 3 and 16. The exact exponential gives these bits
/// on every device, the fast one on devices whose special functions the emulator has.
#[test]
fn bits_do_not_depend_on_the_launch() -> Result<(), Error> {
    for (states, len, chunks) in [(8, 37, 1), (16, 64, 1), (17, 37, 1), (16, 97, 3)] {
        let drawn = draw::<f32>(sizes(2, 128, 2, states, len), Options::ALL);
        let scan = Problem { chunks: Some(chunks), ..drawn };
        for exponential in BOTH {
            let mut all = Vec::new();
            for threads in [1, 3, 16] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                all.push(pool.install(|| {
                    computed::<f32>(&Device::simt(), exponential, &scan, 0).map(|all| all.bits())
                })?);
            }
            assert!(all[0] == all[1] && all[0] == all[2], "{exponential:?}, {states} states");
            for device in under_test() {
                let here = || computed::<f32>(&device, exponential, &scan, 0);
                let (first, second) = (here()?.bits(), here()?.bits());
                assert!(first == second, "{} {exponential:?}", device.label());
                let known = exponential == Exponential::Exact || has_emulated_functions(&device);
                assert!(
                    !known || first == all[0],
                    "{} {exponential:?} {states} states",
                    device.label()
                );
            }
        }
    }
    Ok(())
}

/// No infinite number before a restart shows after it, whether it comes from the inputs of an
/// earlier sequence or from the initial states.
#[test]
fn restarts_separate_sequences() -> Result<(), Error> {
    const LEN: usize = 70;
    for restart in [0, 5, 31, 32, 40] {
        for (states, chunks) in [(8, 1), (17, 1), (8, 3)] {
            let options = Options { restarts: false, ..Options::ALL };
            let mut scan = draw::<f32>(sizes(1, 5, 1, states, LEN), options);
            let mut restarts = vec![0; LEN];
            restarts[restart] = 1;
            scan.restarts = Some(restarts);
            scan.chunks = Some(chunks);
            let expected = scan.results();
            scan.initial = Some(vec![f64::INFINITY; 5 * states]);
            for row in scan.u.chunks_mut(LEN) {
                row[..restart].fill(f64::NEG_INFINITY);
            }
            for device in under_test() {
                for exponential in BOTH {
                    let got = computed::<f32>(&device, exponential, &scan, 0)?;
                    let rows = got.out.chunks(LEN).zip(expected.out.chunks(LEN));
                    let what = format!("{} {exponential:?}, from {restart}", device.label());
                    for (got, expected) in rows {
                        judge::<f32>(&got[restart..], &expected[restart..], &what);
                        assert!(got[..restart].iter().all(|out| !out.is_finite()), "{what}");
                    }
                    judge::<f32>(&got.last, &expected.last, &what);
                }
            }
        }
    }
    Ok(())
}

/// Allocates a buffer, one element too short if it is the one called `short`.
fn array<T: bytemuck::Pod>(
    device: &Device,
    name: &str,
    len: usize,
    short: &str,
) -> Result<Buffer<T>, Error> {
    device.zeros(if name == short { len - 1 } else { len })
}

/// Returns the error of a pass of this shape whose array `short` lacks an element.
fn refusal(shape: ScanShape, short: &str) -> Result<String, Error> {
    let device = Device::simt();
    let ScanShape { batch, channels, seq_len, states, groups } = shape;
    let (rows, couplings) = (batch * channels * seq_len, batch * groups * states * seq_len);
    let all_states = batch * channels * states;
    let stored = |name: &str, len: usize| array::<f32>(&device, name, len, short);
    let [u, delta, z, mut out] =
        [stored("u", rows)?, stored("delta", rows)?, stored("z", rows)?, stored("out", rows)?];
    let [b, c] = [stored("B", couplings)?, stored("C", couplings)?];
    let [d, delta_bias] = [stored("D", channels)?, stored("delta_bias", channels)?];
    let (a, initial) = (stored("A", channels * states)?, stored("initial", all_states)?);
    let restarts = array::<u8>(&device, "restarts", batch * seq_len, short)?;
    let (mut last, mut checkpoints) =
        (stored("last", all_states)?, stored("checkpoints", seq_len.div_ceil(8) * all_states)?);
    let inputs = ScanInputs {
        u: &u,
        delta: &delta,
        a: &a,
        b: (&b).into(),
        c: (&c).into(),
        d: Some(&d),
        z: Some(&z),
        delta_bias: Some(&delta_bias),
        softplus: true,
        initial: Some(&initial),
        restarts: Some(&restarts),
    };
    let options = ScanForwardOptions {
        last: Some(&mut last),
        checkpoints: Some(&mut checkpoints),
        ..Default::default()
    };
    let scan = SelectiveScan::new(&device, Exponential::Fast);
    match scan.forward_into(&inputs, &mut out, shape, options) {
        Ok(_) => Ok(String::from("it is not")),
        Err(error) => Ok(error.to_string()),
    }
}

#[test]
fn arguments_that_do_not_fit_are_refused_with_their_values() -> Result<(), Error> {
    let shape = ScanShape { batch: 2, channels: 4, seq_len: 9, states: 3, groups: 2 };
    assert_eq!(refusal(shape, "")?, "it is not");
    for (name, expected) in [
        ("u", "[2, 4, 9], u [71]"),
        ("delta", "[2, 4, 9], delta [71]"),
        ("z", "[2, 4, 9], z [71]"),
        ("out", "[2, 4, 9], out [71]"),
        ("A", "[4, 3], A [11]"),
        ("B", "[2, 2, 3, 9], B [107]"),
        ("C", "[2, 2, 3, 9], C [107]"),
        ("D", "[4], D [3]"),
        ("delta_bias", "[4], delta_bias [3]"),
        ("initial", "[2, 4, 3], initial [23]"),
        ("restarts", "[2, 9], restarts [17]"),
        ("last", "[2, 4, 3], last [23]"),
        ("checkpoints", "[2, 2, 4, 3], checkpoints [47]"),
    ] {
        let expected = format!("shape mismatch in forward_into: expected {expected}");
        assert_eq!(refusal(shape, name)?, expected);
    }
    for (shape, expected) in [
        (ScanShape { states: 0, ..shape }, "0 states (1 to 256 are)"),
        (ScanShape { states: 257, ..shape }, "257 states (1 to 256 are)"),
        (ScanShape { groups: 0, ..shape }, "4 channels in 0 groups, which do not divide them"),
        (ScanShape { groups: 3, ..shape }, "4 channels in 3 groups, which do not divide them"),
    ] {
        let expected = format!("selective scan does not support {expected} in forward_into");
        assert_eq!(refusal(shape, "")?, expected);
    }
    Ok(())
}
