//! Measuring time: medians of several runs, and text for durations.

use std::time::{Duration, Instant};

/// How long `work` took, with its result.
pub fn time<R>(work: impl FnOnce() -> R) -> (Duration, R) {
    let start = Instant::now();
    let result = work();
    (start.elapsed(), result)
}

/// The median of `runs` runs, after one that warms up the caches.
pub fn median(runs: usize, mut work: impl FnMut()) -> Duration {
    work();
    let mut times: Vec<Duration> = (0..runs.max(1)).map(|_| time(&mut work).0).collect();
    times.sort_unstable();
    times[times.len() / 2]
}

/// The medians of several pieces of work, run in turn so that a disturbance meets all of them.
pub fn medians<const N: usize>(runs: usize, mut works: [&mut dyn FnMut(); N]) -> [Duration; N] {
    let mut times: [Vec<Duration>; N] = std::array::from_fn(|_| Vec::new());
    for run in 0..=runs.max(1) {
        for (work, times) in works.iter_mut().zip(&mut times) {
            let elapsed = time(work).0;
            // The first round warms up.
            if run > 0 {
                times.push(elapsed);
            }
        }
    }
    times.map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2]
    })
}

/// A duration in the unit that suits it: `812 ns`, `3.41 µs`, `12.0 ms`, `1.25 s`.
pub fn text(duration: Duration) -> String {
    let nanos = duration.as_nanos() as f64;
    let (value, unit) = match nanos {
        n if n < 1e3 => return format!("{n:.0} ns"),
        n if n < 1e6 => (n / 1e3, "µs"),
        n if n < 1e9 => (n / 1e6, "ms"),
        n => (n / 1e9, "s"),
    };
    let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::{median, text};
    use std::time::Duration;

    #[test]
    fn durations_have_three_digits_and_a_unit() {
        let nanos = [812, 3_412, 12_040_000, 123_000_000, 1_250_000_000];
        let texts = nanos.map(|n| text(Duration::from_nanos(n)));
        assert_eq!(texts, ["812 ns", "3.41 µs", "12.0 ms", "123 ms", "1.25 s"]);
    }

    #[test]
    fn the_median_runs_the_work_once_more_than_asked() {
        let mut count = 0;
        median(5, || count += 1);
        assert_eq!(count, 6);
    }
}
