//! Measures how long work takes and formats durations.

use std::time::{Duration, Instant};

/// Runs `work` and returns the time it took together with its result.
pub fn time<R>(work: impl FnOnce() -> R) -> (Duration, R) {
    let start = Instant::now();
    let result = work();
    (start.elapsed(), result)
}

/// Formats a duration in the unit that suits it: `812 ns`, `3.41 µs`, `12.0 ms`, `1.25 s`.
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
    use super::text;
    use std::time::Duration;

    #[test]
    fn durations_have_three_digits_and_a_unit() {
        let nanos = [812, 3_412, 12_040_000, 123_000_000, 1_250_000_000];
        let texts = nanos.map(|n| text(Duration::from_nanos(n)));
        assert_eq!(texts, ["812 ns", "3.41 µs", "12.0 ms", "123 ms", "1.25 s"]);
    }
}
