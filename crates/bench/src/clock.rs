//! Measures the time of work on this machine's processor as medians of several runs.

use std::convert::Infallible;
use std::time::Duration;

use lesson::clock::time;

use crate::turns::in_turns;

/// Returns the median time of `runs` runs (at least one) after a run that warms up the caches.
pub fn median(runs: usize, mut work: impl FnMut()) -> Duration {
    let [time] = medians(runs, [&mut work]);
    time
}

/// Returns the median times of several pieces of work. They take turns, so that a disturbance
/// affects all of them, after one round that warms up the caches.
pub fn medians<const N: usize>(runs: usize, mut works: [&mut dyn FnMut(); N]) -> [Duration; N] {
    let seconds = |work: usize| Ok::<_, Infallible>(time(&mut *works[work]).0.as_secs_f64());
    let Ok(times) = in_turns(N, runs.max(1), seconds);
    std::array::from_fn(|work| Duration::from_secs_f64(crate::median(times[work].iter().copied())))
}

#[cfg(test)]
mod tests {
    use super::{median, medians};

    #[test]
    fn work_runs_in_turns_after_a_warm_up() {
        let mut count = 0;
        median(5, || count += 1);
        assert_eq!(count, 6);
        let order = std::cell::RefCell::new(Vec::new());
        let (mut a, mut b) = (|| order.borrow_mut().push('a'), || order.borrow_mut().push('b'));
        medians(2, [&mut a, &mut b]);
        assert_eq!(order.into_inner(), ['a', 'b'].repeat(3));
    }
}
