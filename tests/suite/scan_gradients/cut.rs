//! Gradients of sequences that are cut into chunks, or into stretches with a call for each.

use std::ops::Range;

use linrec::Error;
use linrec::device::{Exponential, SelectiveScan, under_test};

use super::given::{Options, draw};
use super::oracle::gradients;
use super::problem::{OnDevice, computed, judge};
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

impl Problem {
    /// Returns some of the steps, with the same initial states and last gradient.
    pub fn stretch(&self, steps: Range<usize>) -> Problem {
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
