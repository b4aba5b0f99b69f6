//! The scan over ranks, forward and backward: within its bounds, and forward with the bits of one
//! device that cuts its sequences into the same chunks.

use linrec::Error;
use linrec::device::{
    Device, Exponential, Group, ScanBackwardOptions, ScanForwardOptions, SelectiveScan, Storage,
};

use super::given::{Options, draw};
use super::oracle::gradients;
use super::problem::{Named, OnDevice, verdict_of};
use super::reference::{Problem, Sizes};
use super::{ALL, sizes};
use crate::selective_scan::given;

/// The results of one rank, or of all of them.
struct Results {
    out: Vec<f32>,
    last: Vec<f32>,
    gradients: Vec<Named>,
}

/// Computes a problem over ranks that have these stretches, and joins the parts of the ranks.
/// Gradients that are sums over time are added up in double precision.
fn over<S: Storage<Accum = f32>>(
    problem: &Problem,
    stretches: &[usize],
    exponential: Exponential,
    chunks: Option<usize>,
) -> Result<Results, Error> {
    let group = Group::from_devices(&Device::emulated(stretches.len()))?;
    let all = group.run(|rank| {
        let number = rank.number();
        let first: usize = stretches[..number].iter().sum();
        let whole = problem.stretch(first..first + stretches[number]);
        let mine = Problem {
            initial: whole.initial.clone().filter(|_| number == 0),
            d_last: whole.d_last.clone().filter(|_| number + 1 == stretches.len()),
            ..whole
        };
        let device = rank.device();
        let scan = SelectiveScan::<S>::new(device, exponential);
        let mut here = OnDevice::new(&scan, &mine, 0)?;
        let (shape, d_last) = (here.shape, here.d_last()?);
        let mut checkpoints = here.checkpoints.slice(..)?;
        let mut out = device.allocate::<S>(mine.u.len())?;
        let mut last = device.allocate(shape.batch * shape.channels * shape.states)?;
        checkpoints.poison()?;
        out.poison()?;
        last.poison()?;
        let (inputs, d_out, kept, gradients) = here.parts();
        let options = ScanForwardOptions {
            last: Some(&mut last),
            checkpoints: Some(&mut checkpoints),
            chunks,
            stream: None,
        };
        scan.over(rank).forward_into(&inputs, &mut out, shape, options)?;
        let options = ScanBackwardOptions { d_last: d_last.as_ref(), chunks, stream: None };
        scan.over(rank).backward_into(&inputs, d_out, kept, gradients, shape, options)?;
        let out = out.download()?.into_iter().map(Storage::widen).collect();
        Ok(Results { out, last: last.download()?, gradients: here.gradients()? })
    })?;
    Ok(joined(problem, stretches, &all))
}

fn joined(problem: &Problem, stretches: &[usize], all: &[Results]) -> Results {
    let Sizes { batch, channels, groups, states, .. } = problem.sizes;
    let in_time = |rows: usize, parts: &[&Vec<f32>]| -> Vec<f32> {
        let of_row = |row: usize| {
            let parts = parts.iter().zip(stretches);
            parts.flat_map(move |(part, steps)| part[row * steps..(row + 1) * steps].to_vec())
        };
        (0..rows).flat_map(of_row).collect()
    };
    let gradients = (0..all[0].gradients.len()).map(|which| {
        let (name, is_stored, first) = all[0].gradients[which].clone();
        let parts: Vec<&Vec<f32>> = all.iter().map(|rank| &rank.gradients[which].2).collect();
        let numbers = match name {
            "initial" => first,
            "z" if problem.z.is_none() => first,
            "u" | "delta" | "z" => in_time(batch * channels, &parts),
            "B" if problem.b.varies => in_time(batch * groups * states, &parts),
            "C" if problem.c.varies => in_time(batch * groups * states, &parts),
            _ => {
                let sum = |index| parts.iter().map(|part| f64::from(part[index])).sum::<f64>();
                (0..first.len()).map(|index| sum(index) as f32).collect()
            }
        };
        (name, is_stored, numbers)
    });
    let out: Vec<&Vec<f32>> = all.iter().map(|rank| &rank.out).collect();
    Results {
        out: in_time(batch * channels, &out),
        last: all[all.len() - 1].last.clone(),
        gradients: gradients.collect(),
    }
}

/// Compares all results with their bounds.
fn check<S: Storage<Accum = f32>>(
    sizes: Sizes,
    options: Options,
    stretches: &[usize],
) -> Result<(), Error> {
    let begins = stretches.iter().scan(0, |begin, steps| {
        *begin += steps;
        Some(*begin)
    });
    let cuts = begins.take(stretches.len() - 1).collect();
    let problem = Problem { cuts, ..draw::<S>(sizes, options) };
    assert_eq!(stretches.iter().sum::<usize>(), sizes.len);
    let (expected, of_gradients) = (problem.results(), gradients(&problem));
    for exponential in [Exponential::Fast, Exponential::Exact] {
        let what = format!("{exponential:?} {} {sizes:?} {options:?} {stretches:?}", S::ELEMENT);
        let found = over::<S>(&problem, stretches, exponential, Some(1))?;
        given::judge::<S>(&found.out, &expected.out, &format!("{what} output"));
        given::judge::<f32>(&found.last, &expected.last, &format!("{what} last state"));
        verdict_of::<S>(found.gradients, &of_gradients)
            .unwrap_or_else(|wrong| panic!("{what}: {wrong}"));
    }
    Ok(())
}

#[test]
fn results_are_within_their_bounds_for_any_stretches() -> Result<(), Error> {
    let slow = Options { slow: true, ..ALL };
    for stretches in [
        &[45][..],
        &[16, 29],
        &[0, 45],
        &[45, 0],
        &[13, 1, 31],
        &[20, 0, 25],
        &[11, 12, 11, 11],
        &[1, 0, 40, 4, 0],
    ] {
        check::<f32>(sizes(2, 5, 1, 3, 45), ALL, stretches)?;
        check::<f32>(sizes(1, 3, 1, 17, 45), slow, stretches)?;
    }
    Ok(())
}

#[test]
fn results_are_within_their_bounds_for_any_options_and_elements() -> Result<(), Error> {
    let stretches = &[14, 9, 22];
    for options in [
        Options { d: false, bias: false, ..ALL },
        Options { z: false, softplus: false, ..ALL },
        Options { initial: false, ..ALL },
        Options { d_last: false, ..ALL },
        Options { restarts: true, ..ALL },
        Options { constant: [true, false], ..ALL },
        Options { constant: [false, true], restarts: true, ..ALL },
        Options::NOTHING,
    ] {
        check::<f32>(sizes(2, 6, 2, 10, 45), options, stretches)?;
    }
    check::<half::bf16>(sizes(2, 6, 2, 16, 45), ALL, stretches)?;
    check::<half::f16>(sizes(1, 64, 1, 8, 45), ALL, stretches)?;
    // The kernels for common sizes, in whole vectors.
    check::<f32>(sizes(1, 64, 1, 16, 96), Options { slow: true, ..ALL }, &[32, 48, 16])
}

/// A stretch is treated as a chunk is, on one device.
#[test]
fn outputs_have_the_bits_of_one_device_that_cuts_into_the_same_chunks() -> Result<(), Error> {
    for (ranks, sizes) in [(2, sizes(2, 5, 1, 3, 64)), (3, sizes(1, 64, 1, 16, 96))] {
        let options = Options { slow: true, restarts: ranks == 2, ..ALL };
        let problem = Problem { chunks: Some(ranks), ..draw::<f32>(sizes, options) };
        for exponential in [Exponential::Fast, Exponential::Exact] {
            let over = over::<f32>(&problem, &vec![32; ranks], exponential, Some(1))?;
            let alone = given::computed::<f32>(&Device::simt(), exponential, &problem, 0)?;
            let same = over.out == alone.out && over.last == alone.last;
            assert!(same, "{sizes:?} {exponential:?}");
        }
    }
    Ok(())
}

/// Long stretches are cut into chunks themselves.
#[test]
fn stretches_that_are_cut_are_within_the_bounds_of_gradients() -> Result<(), Error> {
    let options = Options { slow: true, ..ALL };
    let (sizes, stretches) = (sizes(1, 3, 1, 4, 1100), [537, 0, 563]);
    let problem = Problem { cuts: vec![537, 537], ..draw::<f32>(sizes, options) };
    let expected = gradients(&problem);
    for exponential in [Exponential::Fast, Exponential::Exact] {
        let found = over::<f32>(&problem, &stretches, exponential, None)?;
        verdict_of::<f32>(found.gradients, &expected)
            .unwrap_or_else(|wrong| panic!("{exponential:?}: {wrong}"));
    }
    Ok(())
}

#[test]
fn a_state_before_a_later_rank_is_refused_on_all() {
    let problem = draw::<f32>(sizes(1, 2, 1, 2, 8), ALL);
    let group = Group::from_devices(&Device::emulated(2)).unwrap();
    let refused = group.run(|rank| {
        let scan = SelectiveScan::<f32>::new(rank.device(), Exponential::Exact);
        let mut here = OnDevice::new(&scan, &problem, 0)?;
        let mut out = rank.device().allocate(problem.u.len())?;
        let shape = here.shape;
        scan.over(rank).forward_into(&here.parts().0, &mut out, shape, Default::default())
    });
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("initial states on rank 1, where only rank 0 has any"), "{error}");
}
