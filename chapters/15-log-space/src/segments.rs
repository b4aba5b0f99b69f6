//! The segments after which the prefix sums restart.

use std::ops::Range;

use crate::{Real, SignedLog};

// ANCHOR: segments
/// Cuts a sequence at every zero, and where the way of its coefficients' logarithms, `Σ |ln c|`,
/// would exceed `reach`. The first coefficient of a segment does not count.
pub fn segments<T: Real>(coeffs: &[SignedLog<T>], reach: f64) -> Vec<Range<usize>> {
    let mut segments = Vec::new();
    let (mut start, mut way) = (0, 0.0);
    for (l, c) in coeffs.iter().enumerate().skip(1) {
        way += c.log.modulus();
        if way > reach || way.is_infinite() {
            segments.push(start..l);
            (start, way) = (l, 0.0);
        }
    }
    if !coeffs.is_empty() {
        segments.push(start..coeffs.len());
    }
    segments
}
// ANCHOR_END: segments

#[cfg(test)]
mod tests {
    use super::segments;
    use crate::SignedLog;

    fn cut(coeffs: &[f64], reach: f64) -> Vec<std::ops::Range<usize>> {
        segments(&coeffs.iter().map(|&c| SignedLog::of(c)).collect::<Vec<_>>(), reach)
    }

    #[test]
    fn zeros_begin_a_segment_with_any_reach() {
        let coeffs = [0.0, 0.5, 0.0, 0.0, -2.0, 0.5];
        assert_eq!(cut(&coeffs, f64::INFINITY), [0..2, 2..3, 3..6]);
        assert_eq!(cut(&[], 1.0), []);
        assert_eq!(cut(&[0.0], 1.0), vec![0..1]);
    }

    #[test]
    fn no_segment_goes_farther_than_the_reach() {
        let coeffs: Vec<f64> = (0..200).map(|l| 0.5 + 0.006 * f64::from(l)).collect();
        let cuts = cut(&coeffs, 3.0);
        let mut next = 0;
        for segment in cuts {
            assert_eq!(segment.start, next);
            next = segment.end;
            let way: f64 = coeffs[segment].iter().skip(1).map(|c| c.ln().abs()).sum();
            assert!(way <= 3.0);
        }
        assert_eq!(next, 200);
    }

    #[test]
    fn a_step_beyond_the_reach_begins_a_segment() {
        assert_eq!(cut(&[1.0, 1e-9, 1.0, 1.0], 8.0), [0..1, 1..4]);
    }
}
