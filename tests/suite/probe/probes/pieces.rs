//! The kernels for rows that are cut over several devices, launched as in the library, by two ranks
//! that share a device.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use linrec::contract::Stored;
use linrec::device::{
    BackwardOptions, Device, ForwardOptions, Group, GroupRecurrence, Launched, Split, Storage, Way,
};
use linrec::kernels::KernelChoice;
use linrec::reference::{self, Rounding};
use linrec::simt::Counters;
use linrec::{Direction, Element, Error};
use ndarray::{Array2, s};

use super::Ran;
use super::numbers::numbers;
use super::plan::tree;
use super::recurrences::{Problem, initial, judge, results, rows, upload, widen};

/// The sequences and steps: two pieces of several tiles, the last of which is not full.
const NUM_SEQS: usize = 3;
const SEQ_LEN: usize = 2 * 4681;

/// Computes outputs and gradients.
pub fn both_passes<S: Storage>(device: &Device, way: Way) -> Result<Ran, Error> {
    let (stored, shape) = (Stored::as_in::<S>(), (NUM_SEQS, SEQ_LEN));
    let problem = Problem::<S::Accum>::new(NUM_SEQS, SEQ_LEN, Direction::Reverse).through(&stored);
    let (inputs, coeffs) = (problem.inputs.view(), problem.coeffs.view());
    let options = &problem.options;
    let exact = reference::forward(inputs, coeffs, options)?;
    let given = stored.array(exact.outputs.mapv(<S::Accum as Element>::narrow));
    let d_outputs = rows(NUM_SEQS, SEQ_LEN, numbers(5, NUM_SEQS * SEQ_LEN, -1.0, 1.0));
    let d_outputs = stored.array(d_outputs);

    let counters = Mutex::new(Counters::default());
    let count = |launched: Launched| {
        let mut counters = counters.lock().unwrap_or_else(PoisonError::into_inner);
        *counters += launched.counters().unwrap_or(&Counters::default());
    };
    type Parts<S> = Vec<(Range<usize>, [Vec<S>; 3])>;
    // On a GPU, the launches of two ranks are in one queue and cannot wait for each other.
    let ranks = if way == Way::Mailboxes && !device.is_simt() { 1 } else { 2 };
    let group = Group::through_host(&vec![device.clone(); ranks])?;
    let parts: Parts<S> = group.run(|rank| {
        // With a kernel that does not take mail itself, each sequence has its own block.
        let recurrence = match way {
            Way::Mailboxes => {
                // Not every kernel is shipped for every type.
                let mut shipped = KernelChoice::shipped(S::ELEMENT);
                let other = shipped.find(|kernel| !kernel.takes_mail()).unwrap_or_default();
                GroupRecurrence::<S>::by(rank, Split::Steps, other)?
            }
            _ => GroupRecurrence::new(rank, Split::Steps),
        };
        let recurrence = recurrence.with_way(way).with_pieces(ranks);
        let part = recurrence.part(shape)?;
        let mine = |name, array: &Array2<S::Accum>| {
            upload::<S, _>(device, name, &array.slice(s![.., part.steps.clone()]))
        };
        let (x, c) = (mine("inputs", &problem.inputs)?, mine("coeffs", &problem.coeffs)?);
        let (d, y) = (mine("d_outputs", &d_outputs)?, mine("outputs", &given)?);
        let mut out = results::<S>(device, "outputs", part.len())?;
        let mut d_inputs = results::<S>(device, "d_inputs", part.len())?;
        let mut d_coeffs = results::<S>(device, "d_coeffs", part.len())?;
        let start = initial(device, options)?;
        let (direction, initial) = (options.direction, start.as_ref());
        let forward = ForwardOptions { direction, initial, ..Default::default() };
        count(recurrence.forward_into(&x, &c, &mut out, shape, forward)?);
        let (dx, dc) = (&mut d_inputs, &mut d_coeffs);
        let backward = BackwardOptions { direction, initial, ..Default::default() };
        count(recurrence.backward_into(&d, &c, &y, dx, dc, shape, backward)?);
        Ok((part.steps, [out.download()?, d_inputs.download()?, d_coeffs.download()?]))
    })?;
    let mut all = [(); 3].map(|()| Array2::<S::Accum>::zeros(shape));
    for (steps, arrays) in parts {
        for (whole, mine) in all.iter_mut().zip(arrays) {
            let place = whole.slice_mut(s![.., steps.clone()]);
            place.into_iter().zip(mine).for_each(|(to, from)| *to = from.widen());
        }
    }
    let [outputs, d_inputs, d_coeffs] = &all;

    let rounding = Rounding { levels: 2 * tree(SEQ_LEN).levels, exp_ulps: 0.0 };
    let mut bound = reference::forward_bound(inputs, coeffs, options, rounding)?.outputs;
    widen(&mut bound, &exact.outputs, &stored);
    let (d, y) = (d_outputs.view(), given.view());
    let gradients = reference::backward(d, coeffs, y, options)?;
    let mut bounds = reference::backward_bound(d, coeffs, y, options, rounding)?;
    widen(&mut bounds.d_inputs, &gradients.d_inputs, &stored);
    widen(&mut bounds.d_coeffs, &gradients.d_coeffs, &stored);
    let verdict = judge("outputs", outputs, &exact.outputs, &bound)
        .and_then(|()| judge("d_inputs", d_inputs, &gradients.d_inputs, &bounds.d_inputs))
        .and_then(|()| judge("d_coeffs", d_coeffs, &gradients.d_coeffs, &bounds.d_coeffs));
    let counters = counters.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Ran { counters: device.is_simt().then_some(counters), verdict })
}
