//! A sequence in T parts, each on its own thread, and a tree over the parts' transitions.

use std::{io, thread};

use linrec::Element;

use crate::two_threads::start;
use crate::{Part, Transition, tree};

/// The number of steps of a run. A step is an element that a thread handles in a loop, or a
/// combination of two transitions. The first three fields count simultaneous steps once; `total`
/// counts every step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Steps {
    /// The steps of the longest local loop.
    pub scan: usize,
    /// The levels of the tree.
    pub tree: usize,
    /// The steps of the longest combining loop.
    pub combine: usize,
    /// The steps of all threads.
    pub total: usize,
}

impl Steps {
    /// Returns the number of steps that must follow one another.
    pub fn sequential(&self) -> usize {
        self.scan + self.tree + self.combine
    }
}

// ANCHOR: many_threads
/// Computes a sequence in `threads` parts. Returns the final state and the number of steps.
///
/// # Errors
///
/// Returns an error if `threads` is 0, or if the system cannot start that many threads.
pub fn many_threads<T: Element>(
    sequence: Part<T>,
    initial: T,
    threads: usize,
) -> io::Result<(T, Steps)> {
    if threads == 0 {
        return Err(io::Error::other("at least one thread is needed"));
    }
    let mut steps = Steps::default();
    let mut parts = sequence.split_into(threads);

    // L/T steps: each thread runs the loop over its part. Only the first knows its initial state.
    let Some(first) = parts.first_mut() else { return Ok((initial, steps)) };
    first.before = initial;
    steps.scan = on_threads(&mut parts, &mut steps.total, |part| _ = part.scan(part.before))?;

    // log T steps: the transition of each part becomes the transition of all parts up to it.
    let mut transitions: Vec<_> = parts.iter().map(Part::transition).collect();
    steps.tree = tree(&mut transitions, |left: Transition<T>, right| {
        steps.total += 1;
        left.then(right)
    });

    // L/T steps: each thread but the first adds the contribution of the state before its part.
    for (part, before) in parts.iter_mut().skip(1).zip(&transitions) {
        part.before = before.state;
    }
    let later = &mut parts[1..];
    steps.combine = on_threads(later, &mut steps.total, |part| part.combine(part.before))?;

    let state = parts.last().and_then(Part::last_output).unwrap_or(initial);
    Ok((state, steps))
}

/// Runs `work` on all parts at the same time: on the last part in this thread, on the others in new
/// threads. Returns the steps of the longest part, and adds the steps of all parts to `total`.
fn on_threads<'a, T: Element>(
    parts: &mut [Part<'a, T>],
    total: &mut usize,
    work: impl Fn(&mut Part<'a, T>) + Sync,
) -> io::Result<usize> {
    let work = &work;
    thread::scope(|scope| {
        if let Some((last, others)) = parts.split_last_mut() {
            for part in others {
                start(scope, move || work(part))?;
            }
            work(last);
        }
        Ok::<_, io::Error>(())
    })?;
    *total += parts.iter().map(|part| part.steps).sum::<usize>();
    Ok(parts.iter().map(|part| part.steps).max().unwrap_or(0))
}
// ANCHOR_END: many_threads
