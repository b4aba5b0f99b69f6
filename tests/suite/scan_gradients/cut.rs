//! Gradients of sequences that are cut into chunks, into stretches with a call for each, or into
//! the stretches of ranks.
//!
//! Ranks on emulated devices compute both passes of one problem. The joined results are within the
//! bounds of the oracle, which composes its bounds at the cuts as the ranks compose their numbers.
//! Outputs have the bits of one device that cuts its sequences into the same chunks.

use std::ops::Range;

use linrec::Error;
use linrec::device::{
    Device, Exponential, Group, ScanBackwardOptions, ScanForwardOptions, SelectiveScan, Storage,
    under_test,
};

use super::given::{self, Options, draw};
use super::oracle::gradients;
use super::problem::{Named, OnDevice, computed, judge, verdict_of};
use super::reference::{Coupling, Problem, Sizes};
use super::{ALL, sizes};

/// Cuts into at most the given number of chunks. By their shape, these sequences are cut into 4.
#[test]
fn sequences_are_cut_into_the_given_chunks() -> Result<(), Error> {
    for (channels, exponential) in
        [(3, Exponential::Exact), (3, Exponential::Fast), (64, Exponential::Fast)]
    {
        let options = Options { slow: true, ..ALL };
        let problem = draw::<f32>(sizes(1, channels, 1, 16, 1040), options);
        let expected = gradients(&problem);
        for device in under_test() {
            let scan = SelectiveScan::<f32>::new(&device, exponential);
            let bits = |chunks| {
                let mut here = OnDevice::new(&scan, &problem, 0)?;
                here.backward_in(chunks, &scan)?;
                let what = format!("{} {exponential:?} {channels} {chunks:?}", device.label());
                judge(&here, &expected, &what)?;
                here.bits()
            };
            let (whole, four) = (bits(Some(1))?, bits(Some(4))?);
            assert!(whole != four && whole != bits(Some(9))?, "{}", device.label());
            assert!(bits(Some(0))? == whole && bits(None)? == four, "{}", device.label());
        }
    }
    Ok(())
}

/// Computes the last stretch first. Arrays with an axis of time have the bits of one call, and so
/// have the initial states.
#[test]
fn stretches_hand_on_their_gradients() -> Result<(), Error> {
    let all = sizes(2, 6, 2, 10, 45);
    for options in [ALL, Options { restarts: true, ..ALL }, Options { d_last: false, ..ALL }] {
        let whole = draw::<f32>(all, options);
        for device in under_test() {
            let scan = SelectiveScan::<f32>::new(&device, Exponential::Exact);
            let at_once = computed::<f32>(&device, Exponential::Exact, &whole, 0)?;
            let kept = at_once.checkpoints.download()?;
            let mut d_last = whole.d_last.clone();
            for steps in [40..45, 16..40, 0..16] {
                let initial = (0..all.batch).flat_map(|batch| {
                    let tile = batch * all.len.div_ceil(8) + steps.start / 8;
                    let states = all.channels * all.states;
                    kept[tile * states..(tile + 1) * states].iter().map(|&state| state.into())
                });
                let initial = Some(initial.collect());
                let stretch = Problem { initial, d_last, ..whole.stretch(steps.clone()) };
                let mut here = OnDevice::new(&scan, &stretch, 0)?;
                here.backward(&scan)?;
                let gradients = here.gradients()?;
                for ((name, _, stretch), (.., whole)) in gradients.iter().zip(at_once.gradients()?)
                {
                    let whole = match *name {
                        "u" | "delta" | "z" | "B" | "C" => cut(&whole, all.len, steps.clone()),
                        "initial" if steps.start == 0 => whole,
                        _ => continue,
                    };
                    let pairs = stretch.iter().zip(&whole);
                    let same =
                        pairs.filter(|(one, other)| one.to_bits() == other.to_bits()).count();
                    assert!(
                        same == whole.len() && same == stretch.len(),
                        "{} {options:?}: {name} of {steps:?}",
                        device.label()
                    );
                }
                d_last = gradients
                    .into_iter()
                    .find(|(name, ..)| *name == "initial")
                    .map(|(.., first)| first.into_iter().map(f64::from).collect());
            }
        }
    }
    Ok(())
}

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
            "B" | "C" if is_stored => in_time(batch * groups * states, &parts),
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
    let cuts = (1..stretches.len()).map(|rank| stretches[..rank].iter().sum()).collect();
    let problem = Problem { cuts, ..draw::<S>(sizes, options) };
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
    let (sizes, stretches) = (sizes(1, 3, 1, 4, 1100), [64, 972, 64]);
    let problem = Problem { cuts: vec![64, 1036], ..draw::<f32>(sizes, options) };
    let expected = gradients(&problem);
    for exponential in [Exponential::Fast, Exponential::Exact] {
        let found = over::<f32>(&problem, &stretches, exponential, None)?;
        verdict_of::<f32>(found.gradients, &expected)
            .unwrap_or_else(|wrong| panic!("{exponential:?}: {wrong}"));
    }
    Ok(())
}

/// An infinite gradient does not pass the beginning of a sequence.
#[test]
fn nothing_comes_through_a_rank_in_which_a_sequence_begins() -> Result<(), Error> {
    let mut problem = draw::<f32>(sizes(1, 2, 1, 3, 24), Options { restarts: true, ..ALL });
    problem.restarts = Some((0..24).map(|step| u8::from(step == 12)).collect());
    problem.d_last = Some(vec![f64::INFINITY; 6]);
    let found = over::<f32>(&problem, &[8; 3], Exponential::Exact, None)?;
    assert!(found.gradients.last().unwrap().2.iter().all(|gradient| gradient.is_finite()));
    Ok(())
}

#[test]
fn a_mistake_on_one_rank_is_an_error() {
    let problem = draw::<f32>(sizes(1, 2, 1, 2, 8), ALL);
    let first = Problem { initial: None, ..problem.clone() };
    let group = Group::from_devices(&Device::emulated(2)).unwrap();
    for (second, why) in [
        (&problem, "initial states on rank 1 in forward_into: only rank 0 has any"),
        (
            &Problem { d: None, ..first.clone() },
            "ranks disagree: `forward pass of a selective scan",
        ),
    ] {
        let refused = group.run(|rank| {
            let problem = if rank.number() == 0 { &first } else { second };
            let scan = SelectiveScan::<f32>::new(rank.device(), Exponential::Exact);
            let mut here = OnDevice::new(&scan, problem, 0)?;
            let mut out = rank.device().allocate(problem.u.len())?;
            let shape = here.shape;
            scan.over(rank).forward_into(&here.parts().0, &mut out, shape, Default::default())
        });
        let error = refused.unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

impl Problem {
    /// Returns some of the steps, with the same initial states and last gradient.
    fn stretch(&self, steps: Range<usize>) -> Problem {
        let rows = |rows: &[f64]| cut(rows, self.sizes.len, steps.clone());
        let coupling = |coupling: &Coupling| match coupling.varies {
            true => Coupling { values: rows(&coupling.values), varies: true },
            false => coupling.clone(),
        };
        Problem {
            sizes: Sizes { len: steps.len(), ..self.sizes },
            u: rows(&self.u),
            delta: rows(&self.delta),
            b: coupling(&self.b),
            c: coupling(&self.c),
            z: self.z.as_deref().map(rows),
            restarts: self.restarts.as_deref().map(|all| cut(all, self.sizes.len, steps.clone())),
            d_out: rows(&self.d_out),
            ..self.clone()
        }
    }
}

/// Cuts some steps out of rows of `len`.
fn cut<T: Clone>(rows: &[T], len: usize, steps: Range<usize>) -> Vec<T> {
    rows.chunks(len.max(1)).flat_map(|row| row[steps.clone()].to_vec()).collect()
}
