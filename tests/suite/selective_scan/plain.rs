//! The kernels for the most common sizes give the bits of the general kernel.

use half::{bf16, f16};
use linrec::Error;
use linrec::device::{Device, Exponential, Storage, under_test};

use super::given::{Options, draw, wanted};
use super::reference::Problem;
use super::sizes;

/// Returns the bits of a scan's results, and the number of barriers of its blocks if it is counted.
fn compute<S: Storage<Accum = f32>>(
    device: &Device,
    scan: &Problem,
    skip: usize,
    results: [bool; 2],
) -> Result<(Vec<u32>, Option<u64>), Error> {
    let found = wanted::<S>(device, Exponential::Fast, scan, skip, results)?;
    Ok((found.bits(), found.launched.counters().map(|counters| counters.barriers)))
}

/// Returns the same scan with restarts, none of which is set: it runs the general kernel.
fn general(scan: &Problem) -> Problem {
    let restarts = Some(vec![0; scan.sizes.batch * scan.sizes.len]);
    Problem { restarts, ..scan.clone() }
}

fn same_bits<S: Storage<Accum = f32>>(scan: &Problem, skip: usize) -> Result<(), Error> {
    for device in under_test() {
        for results in [[true, true], [true, false], [false, false]] {
            let (plain, barriers) = compute::<S>(&device, scan, skip, results)?;
            let (all, most) = compute::<S>(&device, &general(scan), skip, results)?;
            let what = format!(
                "{} {} {:?} {results:?}, {skip} behind, {:?} chunks",
                device.label(),
                S::ELEMENT,
                scan.sizes,
                scan.chunks
            );
            let differ = plain.iter().zip(&all).filter(|(a, b)| a != b).count();
            assert!(plain == all, "{what}: {differ} of {} differ", all.len());
            if let (Some(barriers), Some(most)) = (barriers, most) {
                assert!(barriers < most, "{what}: {barriers} barriers, and {most}");
            }
        }
    }
    Ok(())
}

/// Tests a whole tile, a part of one, a single step, and enough tiles that some in the middle need
/// no checks; vectors and single elements; all options and none.
#[test]
fn bits_are_the_same_for_any_length_and_both_numbers_of_states() -> Result<(), Error> {
    let all = Options { restarts: false, ..Options::ALL };
    for (options, states, len) in [
        (all, 16, 64),
        (all, 16, 33),
        (Options { z: false, initial: false, ..all }, 16, 104),
        (Options { softplus: false, slow: true, ..all }, 16, 161),
        (Options { slow: true, ..Options::NOTHING }, 16, 96),
        (Options { d: true, ..Options::NOTHING }, 8, 1),
        (all, 8, 127),
        (Options { bias: false, ..all }, 8, 128),
        (all, 16, 264),
        (Options { d: false, ..all }, 8, 320),
    ] {
        let shape = sizes(2, 64, 2, states, len);
        same_bits::<f32>(&draw::<f32>(shape, options), 0)?;
        same_bits::<bf16>(&draw::<bf16>(shape, options), 0)?;
        same_bits::<f16>(&draw::<f16>(shape, options), 0)?;
    }
    Ok(())
}

/// Blocks of the largest number of warps, and a last block of a group with fewer.
#[test]
fn bits_are_the_same_for_any_number_of_warps() -> Result<(), Error> {
    let options = Options { restarts: false, slow: true, ..Options::ALL };
    for (channels, groups) in [(16, 1), (128, 1), (144, 1), (208, 1), (96, 2), (560, 1)] {
        let scan = draw::<f32>(sizes(1, channels, groups, 16, 70), options);
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| same_bits::<f32>(&scan, 0))?;
        }
    }
    same_bits::<bf16>(&draw::<bf16>(sizes(1, 48, 1, 8, 200), options), 0)
}

/// Chunks of one tile and of several, the last of which may have fewer steps.
#[test]
fn bits_are_the_same_for_any_chunks() -> Result<(), Error> {
    let options = Options { restarts: false, slow: true, ..Options::ALL };
    for (states, len, chunks) in
        [(16, 128, 4), (16, 150, 2), (8, 299, 4), (16, 97, 100), (16, 712, 2)]
    {
        let shape = sizes(1, 32, 1, states, len);
        let cut = |scan: Problem| Problem { chunks: Some(chunks), ..scan };
        same_bits::<f32>(&cut(draw::<f32>(shape, options)), 0)?;
        same_bits::<bf16>(&cut(draw::<bf16>(shape, options)), 0)?;
    }
    Ok(())
}

/// Odd addresses, and arrays that end at the very end of their memory.
#[test]
fn bits_are_the_same_for_arrays_that_begin_anywhere() -> Result<(), Error> {
    let options = Options { restarts: false, ..Options::ALL };
    for (len, skip) in [(64, 1), (64, 3), (63, 1), (35, 2), (7, 0)] {
        let shape = sizes(2, 32, 1, 16, len);
        same_bits::<f32>(&draw::<f32>(shape, options), skip)?;
        same_bits::<bf16>(&draw::<bf16>(shape, options), skip)?;
        same_bits::<f16>(&draw::<f16>(shape, options), skip)?;
    }
    Ok(())
}

#[test]
fn uncommon_scans_run_the_general_kernel() -> Result<(), Error> {
    let options = Options { restarts: false, ..Options::ALL };
    let device = Device::simt();
    let found = |scan: &Problem| compute::<f32>(&device, scan, 0, [true, true]);
    for (shape, options) in [
        (sizes(1, 40, 1, 16, 64), options),
        (sizes(1, 32, 1, 12, 64), options),
        (sizes(1, 32, 1, 16, 64), Options { constant: [true, false], ..options }),
    ] {
        let scan = draw::<f32>(shape, options);
        assert!(found(&scan)? == found(&general(&scan))?, "{shape:?}");
    }
    Ok(())
}
