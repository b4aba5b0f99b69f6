//! Tests of the real series, and of its smoothing and forecast.

use approx::assert_abs_diff_eq;
use ch16_gallery::models::iir::SecondOrder;
use ch16_gallery::sunspots::{
    FIRST_YEAR, fit, forecast, numbers, smooth, smooth_both_ways, surprises,
};
use linrec::Direction;
use linrec::contract::golden::array_distance;
use ndarray::{Array1, array};

#[test]
fn the_series_is_complete() {
    let series = numbers();
    assert_eq!(series.len(), 2009 - FIRST_YEAR);
    assert!(series.iter().all(|&number| (0.0..200.0).contains(&number)));
    assert_eq!((series[0], series[1957 - FIRST_YEAR], series[308]), (5.0, 190.2, 2.9));
}

#[test]
fn a_filter_is_fitted_from_its_impulse_response() {
    let filter = SecondOrder { a1: 1.4, a2: -0.7 };
    let mut impulse = Array1::zeros(80);
    impulse[0] = 1.0;
    let found = fit(filter.direct(impulse.view()).view()).unwrap();
    assert_abs_diff_eq!(found.a1, 1.4, epsilon = 1e-12);
    assert_abs_diff_eq!(found.a2, -0.7, epsilon = 1e-12);
    assert_eq!(fit(Array1::zeros(10).view()), None);
    assert_eq!(fit(array![1.0].view()), None);
}

#[test]
fn a_forecast_continues_the_filter_without_surprises() {
    let filter = SecondOrder { a1: 1.3, a2: -0.6 };
    let series = array![3.0, -1.0, 4.0, 1.0, -5.0, 9.0];
    let mut expected = series.to_vec();
    for _ in 0..20 {
        let [.., before, last] = expected[..] else { panic!("two") };
        expected.push(1.3 * last - 0.6 * before);
    }
    let got = forecast(series.view(), filter, 20).unwrap();
    assert!(array_distance(&got, &Array1::from_iter(expected[6..].iter().copied())) < 1e-12);
    let again = filter.filter(surprises(series.view(), filter).view()).unwrap();
    assert!(array_distance(&again, &series) < 1e-13);
}

#[test]
fn smoothing_keeps_a_constant_and_averages_in_both_directions() {
    let level = Array1::from_elem(50, 7.0);
    assert!(array_distance(&smooth_both_ways(level.view(), 0.9).unwrap(), &level) < 1e-14);
    let series = array![1.0, 5.0, 2.0];
    let forward = smooth(series.view(), 0.5, Direction::Forward).unwrap();
    assert_eq!(forward, array![1.0, 3.0, 2.5]);
    let reverse = smooth(series.view(), 0.5, Direction::Reverse).unwrap();
    assert_eq!(reverse, array![2.25, 3.5, 2.0]);
    assert!(smooth(Array1::zeros(0).view(), 0.5, Direction::Reverse).unwrap().is_empty());
}
