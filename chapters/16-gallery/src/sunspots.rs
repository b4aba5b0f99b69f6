//! A real series: the mean sunspot number of every year from 1700 to 2008.
//!
//! Compiled by the National Geophysical Data Center (NOAA), in the public domain; see
//! `data/SOURCE.txt`.

use linrec::{Direction, Error, Options};
use ndarray::{Array1, ArrayView1};

use crate::Problem;
use crate::models::iir::SecondOrder;

/// The first year of the series.
pub const FIRST_YEAR: usize = 1700;

/// Returns the series.
pub fn numbers() -> Array1<f64> {
    let lines = include_str!("../data/sunspots.csv").lines().skip(1);
    lines.filter_map(|line| line.split_once(',')?.1.parse().ok()).collect()
}

/// Computes a moving average in one direction, from the first value in that direction. It forgets
/// the share `1 − keep` per step.
///
/// # Errors
///
/// Returns an error if the engine fails; never for a finite series.
// ANCHOR: smooth
pub fn smooth(
    series: ArrayView1<f64>,
    keep: f64,
    direction: Direction,
) -> Result<Array1<f64>, Error> {
    let row = series.insert_axis(ndarray::Axis(0));
    let first = series.get(direction.position(0, series.len().max(1))).copied();
    let problem = Problem {
        inputs: row.mapv(|x| (1.0 - keep) * x),
        coeffs: row.mapv(|_| keep),
        options: Options {
            direction,
            initial: first.map(|x| ndarray::array![x].into()),
            log_coeffs: false,
        },
    };
    Ok(problem.solve()?.row(0).to_owned())
}

/// Smooths in both directions: the second pass undoes the shift in time of the first.
///
/// # Errors
///
/// Returns the same errors as [`smooth`].
pub fn smooth_both_ways(series: ArrayView1<f64>, keep: f64) -> Result<Array1<f64>, Error> {
    smooth(smooth(series, keep, Direction::Forward)?.view(), keep, Direction::Reverse)
}
// ANCHOR_END: smooth

/// Fits the filter of second order that predicts a series best, by least squares.
///
/// The series must have mean zero. Returns `None` if it does not determine the filter: a series
/// that is too short, or a straight line through zero.
// ANCHOR: fit
pub fn fit(series: ArrayView1<f64>) -> Option<SecondOrder> {
    let len = series.len();
    // The sum of products of the series at two lags, over all years that have both.
    let sum = |i: usize, j: usize| -> f64 { (2..len).map(|l| series[l - i] * series[l - j]).sum() };
    let determinant = sum(1, 1) * sum(2, 2) - sum(1, 2) * sum(1, 2);
    let a1 = (sum(0, 1) * sum(2, 2) - sum(0, 2) * sum(1, 2)) / determinant;
    let a2 = (sum(0, 2) * sum(1, 1) - sum(0, 1) * sum(1, 2)) / determinant;
    (a1.is_finite() && a2.is_finite()).then_some(SecondOrder { a1, a2 })
}

/// Returns the part of each value that the filter did not predict from the two values before it
/// (zeros before the first).
pub fn surprises(series: ArrayView1<f64>, filter: SecondOrder) -> Array1<f64> {
    let back = |l: usize, steps: usize| if l >= steps { series[l - steps] } else { 0.0 };
    Array1::from_shape_fn(series.len(), |l| {
        series[l] - filter.a1 * back(l, 1) - filter.a2 * back(l, 2)
    })
}
// ANCHOR_END: fit

/// Predicts the next `steps` values if no surprise follows: the filter's own ringing.
///
/// # Errors
///
/// Returns the same errors as [`SecondOrder::read`].
// ANCHOR: forecast
pub fn forecast(
    series: ArrayView1<f64>,
    filter: SecondOrder,
    steps: usize,
) -> Result<Array1<f64>, Error> {
    let past = filter.problem(surprises(series, filter).view());
    let states =
        linrec::forward(past.inputs.view(), past.coeffs.view(), &past.options)?.final_state;
    let mut future = filter.problem(Array1::zeros(steps).view());
    future.options.initial = Some(states.into());
    filter.read(future.solve()?.view())
}
// ANCHOR_END: forecast
