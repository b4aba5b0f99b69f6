//! A sequence in two parts, each on its own thread.

use std::io;
use std::thread::{self, Scope};

use linrec::Element;

use crate::Part;

// ANCHOR: two_threads
/// Computes a sequence in two parts: the first `split` elements, and the others at the same time.
/// Returns the final state.
///
/// # Errors
///
/// Returns an error if the system cannot start a thread.
pub fn two_threads<T: Element>(sequence: Part<T>, initial: T, split: usize) -> io::Result<T> {
    let (mut first, mut second) = sequence.split_at(split);
    let state = thread::scope(|scope| {
        start(scope, || _ = second.scan(T::zero()))?; // thread 2
        Ok::<T, io::Error>(first.scan(initial)) // thread 1, which is this one
    })?; // waits for thread 2

    let transition = second.transition();
    second.combine(state);
    Ok(transition.apply(state))
}
// ANCHOR_END: two_threads

/// Starts a thread that ends before its scope does. `Scope::spawn` would panic if the system could
/// not start another thread.
pub(crate) fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() + Send + 'scope,
) -> io::Result<()> {
    thread::Builder::new().spawn_scoped(scope, work).map(drop)
}
