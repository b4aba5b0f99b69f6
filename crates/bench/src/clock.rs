//! The time that work takes on this machine's processor: medians of several runs.

use std::convert::Infallible;
use std::time::Duration;

use lesson::clock::time;

use crate::turns::in_turns;

/// The median of `runs` runs, one at least, after one that warms up the caches.
pub fn median(runs: usize, mut work: impl FnMut()) -> Duration {
    let [time] = medians(runs, [&mut work]);
    time
}

/// The medians of several pieces of work, run in turn so that a disturbance meets all of them;
/// after one round that warms up.
pub fn medians<const N: usize>(runs: usize, mut works: [&mut dyn FnMut(); N]) -> [Duration; N] {
    let seconds = |work: usize| Ok::<_, Infallible>(time(&mut *works[work]).0.as_secs_f64());
    let Ok(times) = in_turns(N, runs.max(1), seconds);
    std::array::from_fn(|work| Duration::from_secs_f64(crate::median(times[work].iter().copied())))
}

#[cfg(test)]
mod tests {
    use super::{median, medians};

    #[test]
    fn work_runs_once_more_than_asked_and_in_turns() {
        let mut count = 0;
        median(5, || count += 1);
        assert_eq!(count, 6);
        let order = std::cell::RefCell::new(Vec::new());
        let (mut a, mut b) = (|| order.borrow_mut().push('a'), || order.borrow_mut().push('b'));
        medians(2, [&mut a, &mut b]);
        assert_eq!(order.into_inner(), ['a', 'b'].repeat(3));
    }
}
