//! Solutions of the page's exercises.

use std::{io, thread};

use linrec::Element;
use ndarray::ArrayView1;

use crate::two_threads::start;
use crate::{Part, Transition};

// ANCHOR: share
/// Two threads that never wait for each other: two thirds of the steps are sequential.
///
/// # Errors
///
/// Returns an error if the system cannot start a thread.
pub fn two_threads_in_thirds<T: Element>(sequence: Part<T>, initial: T) -> io::Result<T> {
    let third = sequence.len() / 3;
    let (mut first, rest) = sequence.split_at(third);
    let (mut middle, mut last) = rest.split_at(third);
    let before = thread::scope(|scope| {
        start(scope, || _ = middle.scan(T::zero()))?;
        Ok::<T, io::Error>(first.scan(initial))
    })?;

    // One step replaces a third of the sequence: the transition of the middle part.
    let after = middle.transition().apply(before);
    thread::scope(|scope| {
        start(scope, || middle.combine(before))?;
        Ok(last.scan(after))
    })
}
// ANCHOR_END: share

// ANCHOR: on_the_way
/// Does the work of [`Part::combine`] without stored products: the contribution of the state before
/// the part shrinks or grows from element to element.
pub fn combine_on_the_way<T: Element>(coeffs: ArrayView1<T>, before: T, outputs: &mut [T]) {
    let mut carried = before;
    for (y, &c) in outputs.iter_mut().zip(coeffs) {
        carried = carried * c;
        *y = *y + carried;
    }
}
// ANCHOR_END: on_the_way

// ANCHOR: reduce
/// Computes the transition of a stretch without any of its outputs.
pub fn reduce<T: Element>(inputs: &[T], coeffs: &[T]) -> Transition<T> {
    let nothing = Transition { coeff: T::one(), state: T::zero() };
    let elements = inputs.iter().zip(coeffs).map(|(&x, &c)| Transition { coeff: c, state: x });
    elements.fold(nothing, Transition::then)
}
// ANCHOR_END: reduce

// ANCHOR: final_state
/// Computes only the final state of a sequence on `threads` threads. Nothing is written, and only
/// the transitions are combined.
///
/// # Errors
///
/// Returns an error if the system cannot start that many threads.
pub fn final_state<T: Element>(
    inputs: &[T],
    coeffs: &[T],
    initial: T,
    threads: usize,
) -> io::Result<T> {
    let len = inputs.len().div_ceil(threads.max(1)).max(1);
    let mut transitions = vec![reduce(&[], &[]); inputs.len().div_ceil(len)];
    let parts = inputs.chunks(len).zip(coeffs.chunks(len));
    thread::scope(|scope| {
        for (transition, (x, c)) in transitions.iter_mut().zip(parts) {
            start(scope, move || *transition = reduce(x, c))?;
        }
        Ok::<_, io::Error>(())
    })?;
    Ok(transitions.into_iter().fold(initial, |state, transition| transition.apply(state)))
}
// ANCHOR_END: final_state
