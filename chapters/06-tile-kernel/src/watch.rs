//! Observes one block of the tile kernel on the emulator: the steps that each thread loaded, the
//! values of the lanes before every round of shuffles, and the totals that the warps wrote to
//! shared memory.

use std::collections::BTreeMap;

use ch02_two_threads::Transition;
use linrec::device::{Buffer, Device, Recurrence};
use linrec::kernels::{ElementType, Pass};
use linrec::simt::{Accessed, Counters, Event, Trace, What};
use linrec::{Direction, Error};

use crate::stages::CHOICE;

/// The number of recorded events; a block of 1024 steps makes about half as many.
const LIMIT: usize = 4096;

/// The record of a block that computed one sequence.
#[derive(Debug, Clone)]
pub struct Watched {
    /// For every thread, the steps whose inputs it loaded, in the order of its registers.
    pub loaded: Vec<Vec<usize>>,
    /// The transition of every thread before each round of level 2, and after the last.
    pub rounds: Vec<Vec<Transition<f32>>>,
    /// The transition that every warp's last lane wrote to shared memory.
    pub totals: Vec<Transition<f32>>,
    /// The number of times that warps arrived at a barrier.
    pub arrivals: usize,
    /// The outputs.
    pub outputs: Vec<f32>,
    /// The emulator's counters.
    pub counters: Counters,
}

/// Runs the kernel over one sequence, from a state of zero.
///
/// # Errors
///
/// Returns an error if the arrays differ in length, are empty or exceed a tile, or the device's own
/// error.
pub fn watch(inputs: &[f32], coeffs: &[f32]) -> Result<Watched, Error> {
    let (num_steps, device) = (inputs.len(), Device::simt());
    let fits = CHOICE.max_len(ElementType::F32).is_some_and(|most| num_steps as u64 <= most);
    if coeffs.len() != num_steps || num_steps == 0 || !fits {
        let arrays = vec![("inputs", vec![num_steps]), ("coeffs", vec![coeffs.len()])];
        return Err(Error::ShapeMismatch { operation: "watch", arrays });
    }
    let (x, c) = (device.upload(inputs)?, device.upload(coeffs)?);
    let mut y = device.allocate(num_steps)?;
    let recurrence = Recurrence::<f32>::new(&device, CHOICE)?;
    let kernel = recurrence.function(Pass::Forward, Direction::Forward)?;
    let threads = CHOICE.geometry(ElementType::F32, Pass::Forward, 1, num_steps as u64).threads;

    // ANCHOR: traced
    let mut trace = Trace::new(LIMIT);
    let launch = kernel.launch(1, threads).arg(&x).arg(&c).arg(&mut y);
    let launch = launch.arg(None::<&Buffer<f32>>).arg(None::<&Buffer<f32>>);
    let launch = launch.arg(1_i64).arg(num_steps as i64).arg(0_i32);
    let launched = launch.traced(&mut trace).run(&device.stream())?;
    // ANCHOR_END: traced

    let of_warp =
        |warp: usize| trace.events.iter().filter(move |event| event.warp as usize == warp);
    let warps = threads as usize / 32;
    let rounds: Vec<_> = (0..warps).map(|warp| rounds(of_warp(warp))).collect();
    let joined = |round: usize| rounds.iter().filter_map(move |warp| warp.get(round)).flatten();
    Ok(Watched {
        loaded: loaded(&trace.events, threads as usize, num_steps),
        rounds: (0..rounds[0].len()).map(|round| joined(round).copied().collect()).collect(),
        totals: totals(&trace.events),
        arrivals: trace.events.iter().filter(|event| event.what == What::Barrier).count(),
        outputs: y.download()?,
        counters: launched.counters().cloned().unwrap_or_default(),
    })
}

/// Returns the steps of the inputs that each thread loaded. The inputs are the first array that
/// thread 0 reads.
fn loaded(events: &[Event], threads: usize, num_steps: usize) -> Vec<Vec<usize>> {
    let mut steps = vec![Vec::new(); threads];
    let mut loads = events.iter().filter_map(|event| match &event.what {
        What::Load(load) if !load.shared => Some((event, load)),
        _ => None,
    });
    let first = loads.clone().find(|(event, _)| event.warp == 0 && event.lanes & 1 > 0);
    let Some((_, first)) = first else { return steps };
    let array = first.addresses[0]..first.addresses[0] + 4 * num_steps as u64;
    loads.by_ref().for_each(|(event, load)| {
        for lane in (0..32).filter(|lane| event.lanes >> lane & 1 > 0) {
            if array.contains(&load.addresses[lane]) {
                let step = (load.addresses[lane] - array.start) / 4;
                steps[32 * event.warp as usize + lane].push(step as usize);
            }
        }
    });
    steps
}

/// Returns the transitions that the lanes of a warp contributed to each pair of shuffles. The
/// coefficient comes first, as in `shuffle_up` for transitions. The last pair shifts the result to
/// give each lane the transition before it.
fn rounds<'a>(events: impl Iterator<Item = &'a Event>) -> Vec<[Transition<f32>; 32]> {
    let shuffles: Vec<[f32; 32]> = events
        .filter_map(|event| match &event.what {
            What::Shuffle { before, .. } => Some(before.map(f32::from_bits)),
            _ => None,
        })
        .collect();
    let transitions = |pair: &[[f32; 32]]| {
        std::array::from_fn(|lane| Transition { coeff: pair[0][lane], state: pair[1][lane] })
    };
    shuffles.chunks_exact(2).map(transitions).collect()
}

/// Returns the words that were written to shared memory, in pairs.
fn totals(events: &[Event]) -> Vec<Transition<f32>> {
    let mut words = BTreeMap::new();
    for event in events {
        if let What::Store(Accessed { shared: true, bytes, addresses, values }) = &event.what {
            for lane in (0..32).filter(|lane| event.lanes >> lane & 1 > 0) {
                for (word, value) in values.iter().enumerate() {
                    let address = addresses[lane] + u64::from(*bytes) * word as u64;
                    words.insert(address, f32::from_bits(value[lane] as u32));
                }
            }
        }
    }
    let words: Vec<f32> = words.into_values().collect();
    words.chunks_exact(2).map(|pair| Transition { coeff: pair[0], state: pair[1] }).collect()
}

#[cfg(test)]
mod tests {
    use super::watch;
    use crate::layout::shares;
    use crate::levels::{LANES, scan_block, scan_thread, scan_tile, scan_warp};
    use ch02_two_threads::Transition;

    fn data(len: usize) -> (Vec<f32>, Vec<f32>) {
        let at = |l: usize| (l as f32 * 0.7).sin();
        ((0..len).map(at).collect(), (0..len).map(|l| 0.97 + 0.03 * at(l + 5)).collect())
    }

    #[test]
    fn threads_load_their_shares() {
        for len in [1, 31, 33, 77, 128, 129, 1000, 1024] {
            let (inputs, coeffs) = data(len);
            let watched = watch(&inputs, &coeffs).unwrap();
            let shares = shares(len, watched.loaded.len());
            for (loaded, share) in watched.loaded.iter().zip(shares) {
                assert!(loaded.iter().copied().eq(share.steps()), "{loaded:?} {share:?}");
            }
        }
    }

    #[test]
    fn the_lanes_hold_what_the_levels_say() {
        let (inputs, coeffs) = data(333);
        let watched = watch(&inputs, &coeffs).unwrap();
        let shares = shares(333, watched.loaded.len());
        assert_eq!(watched.rounds.len(), 6);
        let mut threads: Vec<_> = shares
            .iter()
            .map(|share| {
                let (mut c, mut x) =
                    (coeffs[share.steps()].to_vec(), inputs[share.steps()].to_vec());
                scan_thread(&mut c, &mut x);
                Transition { coeff: c[share.count - 1], state: x[share.count - 1] }
            })
            .collect();
        assert_eq!(watched.rounds[0], threads);
        threads.chunks_mut(LANES).for_each(scan_warp);
        assert_eq!(watched.rounds[5], threads);
        let totals: Vec<_> = threads.chunks(LANES).map(|warp| warp[31]).collect();
        assert_eq!(watched.totals, totals);
        assert_eq!(watched.arrivals, totals.len());
        assert_eq!(scan_block(&totals, 0.0).len(), 1 + totals.len());
        assert_eq!(watched.outputs, scan_tile(&inputs, &coeffs, 0.0, &shares, 4));
    }

    #[test]
    fn empty_unequal_and_long_arrays_are_refused() {
        assert!(watch(&[], &[]).is_err());
        assert!(watch(&[1.0], &[]).is_err());
        assert!(watch(&[1.0; 1025], &[1.0; 1025]).is_err());
    }
}
