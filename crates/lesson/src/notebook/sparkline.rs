//! Draws a row of numbers as a small line plot.

use std::fmt::Write;

const WIDTH: f64 = 240.0;
const HEIGHT: f64 = 36.0;

/// The largest number of points drawn. A longer row is divided into stretches, of which the
/// smallest and the largest value are drawn.
const POINTS: usize = 240;

/// Draws a line through the values, with the smallest at the bottom and the largest at the top.
/// Values that are not finite leave a gap; a single value is a dot.
pub(super) fn sparkline(values: &[f64]) -> String {
    let finite = values.iter().copied().filter(|value| value.is_finite());
    let (low, high) =
        finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
    let x = |at: usize| 2.0 + (WIDTH - 4.0) * at as f64 / (values.len() - 1).max(1) as f64;
    let y = |value: f64| match high - low {
        // The division comes first because the span of two finite numbers may be infinite.
        span if span > 0.0 => HEIGHT - 2.0 - (HEIGHT - 4.0) * (value / span - low / span),
        _ => HEIGHT / 2.0,
    };
    let mut path = String::new();
    let mut pen_is_down = false;
    for at in shown(values) {
        let value = values[at];
        if value.is_finite() {
            let letter = if pen_is_down { 'L' } else { 'M' };
            // Writing to a string cannot fail.
            let _ = write!(path, "{letter}{:.1} {:.1}", x(at), y(value));
            if !pen_is_down {
                path.push_str("h.1");
            }
        }
        pen_is_down = value.is_finite();
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         viewBox=\"0 0 {WIDTH} {HEIGHT}\"><path d=\"{path}\" fill=\"none\" stroke=\"#0072B2\" \
         stroke-width=\"1.5\" stroke-linecap=\"round\"/></svg>"
    )
}

/// Returns the positions that are drawn: all of them, or the smallest and the largest value of each
/// stretch.
fn shown(values: &[f64]) -> Vec<usize> {
    if values.len() <= POINTS {
        return (0..values.len()).collect();
    }
    let stretch = values.len().div_ceil(POINTS / 2);
    let mut places = Vec::with_capacity(POINTS);
    for start in (0..values.len()).step_by(stretch) {
        let of = start..(start + stretch).min(values.len());
        let by_value = |&a: &usize, &b: &usize| values[a].total_cmp(&values[b]);
        let ends = [of.clone().min_by(by_value), of.max_by(by_value)];
        places.extend(ends.into_iter().flatten());
    }
    places.sort_unstable();
    places.dedup();
    places
}

#[cfg(test)]
mod tests {
    use super::{POINTS, shown, sparkline};

    #[test]
    fn the_largest_value_is_at_the_top() {
        assert!(sparkline(&[0.0, 1.0]).contains("M2.0 34.0h.1L238.0 2.0"));
    }

    #[test]
    fn a_peak_in_a_long_row_is_drawn() {
        let mut values = vec![0.0; 100_003];
        values[54_321] = 1.0;
        let places = shown(&values);
        assert!(places.contains(&54_321) && places.len() <= POINTS);
    }

    #[test]
    fn values_that_are_not_finite_leave_gaps() {
        assert!(sparkline(&[]).contains("d=\"\""));
        let gap = sparkline(&[1.0, f64::NAN, 1.0]);
        assert_eq!(gap.matches('M').count(), 2);
        assert!(!sparkline(&[-1e308, 1e308]).contains("NaN"));
    }
}
