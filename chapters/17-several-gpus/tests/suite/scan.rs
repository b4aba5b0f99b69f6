//! The fused scan over ranks, forward and backward, beside one device.

use ch17_several_gpus::scan::problem::{Computed, Problem};
use ch17_several_gpus::scan::{Stretch, gradients, outputs};
use linrec::Error;
use linrec::device::{Device, Exponential, Group, Rank, ScanShape, SelectiveScan};

fn shape(batch: usize, channels: usize, groups: usize, states: usize, seq_len: usize) -> ScanShape {
    ScanShape { batch, channels, seq_len, states, groups }
}

fn bits(numbers: &[f32]) -> Vec<u32> {
    numbers.iter().map(|number| number.to_bits()).collect()
}

/// What ranks compute that have these stretches, beside one device: all bits, or for the rates,
/// whose gradients are sums over time, within the bound of sums in two orders.
fn check(shape: ScanShape, stretches: &[usize], exponential: Exponential) -> Result<(), Error> {
    let what = format!("{shape:?} over {stretches:?}, {exponential:?}");
    let problem = Problem::drawn(shape);
    let (alone, over) = (problem.alone(exponential)?, problem.over(stretches, exponential)?);
    assert!(bits(&over.out) == bits(&alone.out), "outputs: {what}");
    for (which, name) in ["u", "delta", "B", "C"].into_iter().enumerate() {
        assert!(alone.d[which].iter().all(|number| number.is_finite()), "{name}: {what}");
        assert!(bits(&over.d[which]) == bits(&alone.d[which]), "gradient of {name}: {what}");
    }
    for (rank, d_a) in over.d_a.iter().enumerate() {
        assert!(bits(d_a) == bits(&over.d_a[0]), "gradient of A on rank {rank}: {what}");
    }
    let bounds = problem.apart(stretches, exponential)?;
    for ((&one, &other), bound) in alone.d_a[0].iter().zip(&over.d_a[0]).zip(bounds) {
        let apart = (f64::from(one) - f64::from(other)).abs();
        assert!(apart <= bound, "gradient of A: {other}, not {one} ± {bound:e}: {what}");
    }
    if stretches.len() == 1 {
        assert!(bits(&over.d_a[0]) == bits(&alone.d_a[0]), "gradient of A: {what}");
    }
    Ok(())
}

#[test]
fn ranks_have_the_bits_of_one_device_and_sums_over_time_are_within_their_bound() -> Result<(), Error>
{
    for exponential in [Exponential::Exact, Exponential::Fast] {
        // Even and uneven stretches, at and beside the ends of tiles of 8 steps; one step; none.
        for stretches in [
            &[45][..],
            &[16, 29],
            &[23, 22],
            &[0, 45],
            &[13, 1, 31],
            &[20, 0, 25],
            &[11, 12, 11, 11],
            &[1, 40, 4, 0],
        ] {
            check(shape(3, 5, 1, 3, 45), stretches, exponential)?;
        }
        check(shape(2, 6, 2, 20, 33), &[9, 17, 7], exponential)?;
        // By the kernels for common sizes, in whole vectors and not.
        check(shape(2, 64, 1, 16, 48), &[16, 32], exponential)?;
        check(shape(2, 64, 1, 8, 41), &[9, 12, 20], exponential)?;
    }
    Ok(())
}

/// One device alone would cut these into chunks if it was not told otherwise, and so would a rank.
#[test]
fn long_stretches_have_the_bits_of_one_device() -> Result<(), Error> {
    for stretches in [&[1100][..], &[537, 563], &[100, 900, 100]] {
        check(shape(1, 3, 1, 4, 1100), stretches, Exponential::Exact)?;
    }
    Ok(())
}

#[test]
fn nothing_has_gradients_of_zero() -> Result<(), Error> {
    for (shape, stretches) in [
        (shape(0, 3, 1, 4, 5), [2, 3]),
        (shape(2, 0, 1, 4, 5), [2, 3]),
        (shape(2, 3, 1, 4, 0), [0, 0]),
    ] {
        check(shape, &stretches, Exponential::Exact)?;
        let Computed { d_a, .. } = Problem::drawn(shape).over(&stretches, Exponential::Exact)?;
        assert!(d_a.concat().iter().all(|&number| number == 0.0), "{shape:?}");
    }
    Ok(())
}

/// A stretch of two batches of one channel with one state and three steps, and a pass over two
/// ranks with one array of another length, which `spoil` picks.
fn refused(spoil: impl Fn(&Rank, &mut [usize; 4]) + Sync) -> String {
    let group = Group::from_devices(&Device::emulated(2)).unwrap();
    let refused = group.run(|rank| {
        let device = rank.device();
        let scan = SelectiveScan::<f32>::new(device, Exponential::Exact);
        let shape = shape(2, 1, 1, 1, 3);
        let mut lens = [6, 2, 6, 1];
        spoil(rank, &mut lens);
        let [out, kept, d_u, d_a] = lens;
        let stretch = |u: usize, a: usize| -> Result<Stretch, Error> {
            let [delta, b, c] = [device.zeros(6)?, device.zeros(6)?, device.zeros(6)?];
            Ok(Stretch { u: device.zeros(u)?, delta, a: device.zeros(a)?, b, c })
        };
        let (mine, mut d) = (stretch(6, 1)?, stretch(d_u, d_a)?);
        let (mut out, mut checkpoints) = (device.zeros(out)?, device.zeros(kept)?);
        outputs(rank, &scan, &mine, shape, [&mut out, &mut checkpoints])?;
        gradients(rank, &scan, &mine, shape, [&device.zeros(6)?, &checkpoints], &mut d)
    });
    refused.map_or_else(|error| error.to_string(), |_| "nothing".into())
}

/// On both ranks, neither of which waits for the other.
#[test]
fn arrays_of_another_length_are_refused() {
    assert_eq!(refused(|_, _| {}), "nothing");
    for (which, wrong, said) in [
        (0, 7, "out [4]"),
        (0, 5, "out [2]"),
        (1, 3, "checkpoints [2]"),
        (2, 7, "gradient of u [4]"),
        (3, 2, "gradient of A [2]"),
    ] {
        let error = refused(|rank, lens| {
            if rank.number() == 1 {
                lens[which] = wrong;
            }
        });
        assert!(error.contains(said), "{said}: {error}");
    }
    let problem = Problem::drawn(shape(1, 1, 1, 1, 4));
    let error = problem.over(&[1, 2], Exponential::Exact).unwrap_err().to_string();
    assert!(error.contains("steps [4], stretches [1, 2]"), "{error}");
}
