//! Widgets for the digits that each method keeps (chapter 15), and Newton's iterations (16).

use ch01_sequential_loop::linrec;
use ch15_log_space::{Order, heinsen, linrec_to_the_last_bit};
use ch16_gallery::newton::{Gated, Slopes};
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::Controls;
use super::drawing::{Drawing, range};
use crate::number::float;
use crate::values::elements;

/// The number of digits of an `f32`.
const MOST_DIGITS: f64 = 8.0;

/// Draws the number of right digits at each position, for the loop and for two prefix sums of
/// logarithms, both in `f32`.
pub fn digits(controls: &mut Controls<'_>) -> Result<(Drawing, String), String> {
    let len = 1 << controls.whole("log2 of the length", 10, 4..=14);
    let smallest = controls.slider("smallest coefficient", 0.5, 0.01..=0.99, 0.01);
    let narrow = |values: Vec<f64>, low: f64| -> Vec<f32> {
        values.into_iter().map(|value| (low + (1.0 - low) * value) as f32).collect()
    };
    let inputs = narrow(elements("gates", len)?, 0.1);
    let mut coeffs = narrow(elements("gates", len + 7)?, smallest);
    coeffs.drain(..7);
    let wide = |values: &[f32]| values.iter().map(|&value| f64::from(value)).collect::<Vec<_>>();
    let exact = linrec_to_the_last_bit(&wide(&inputs), &wide(&coeffs));
    let logs = |values: &[f32]| values.iter().map(|value| value.ln()).collect::<Vec<_>>();
    let log_space = heinsen(Order::Tree, &logs(&inputs), &logs(&coeffs), f32::NEG_INFINITY);
    let of = |value: f32, exact: f64| {
        let error = ((f64::from(value) - exact) / exact).abs();
        (-error.max(1e-30).log10()).clamp(0.0, MOST_DIGITS)
    };
    let looped: Vec<f64> = linrec(&inputs, &coeffs, 0.0)
        .iter()
        .zip(&exact)
        .map(|(&value, &exact)| of(value, exact))
        .collect();
    let logged: Vec<f64> =
        log_space.iter().zip(&exact).map(|(value, &exact)| of(value.exp(), exact)).collect();
    // No more points than are visible: the worst of each stretch.
    let stretch = len.div_ceil(320);
    let worst = |values: &[f64]| -> Vec<f64> {
        values
            .chunks(stretch)
            .map(|part| part.iter().copied().fold(MOST_DIGITS, f64::min))
            .collect()
    };
    let (looped, logged) = (worst(&looped), worst(&logged));
    let mut drawing = Drawing::new(240.0);
    let axes = drawing.axes(looped.len(), 0.0..MOST_DIGITS);
    drawing.curve(&axes, 0, &looped, "first");
    drawing.curve(&axes, 0, &logged, "second");
    let least = |values: &[f64]| {
        float((10.0 * values.iter().copied().fold(MOST_DIGITS, f64::min)).round() / 10.0)
    };
    let says = format!(
        "Of {len} outputs in f32, the worst has {} right digits from the loop, and {} from two sums of logarithms (the dashed curve).",
        least(&looped),
        least(&logged)
    );
    Ok((drawing, says))
}

/// Draws the largest error of each guess at the states of a non-linear network.
pub fn newton(controls: &mut Controls<'_>) -> Result<(Drawing, String), String> {
    let gain = controls.slider("gain", 1.0, 0.0..=6.0, 0.25);
    let len = controls.whole("length", 60, 8..=200);
    let iterations = controls.whole("iterations", 12, 1..=30);
    let kind = controls.choice("slopes", &["diagonal of the Jacobian", "none (Jacobi)"]);
    let slopes = [Slopes::Diagonal, Slopes::Zero][kind];
    let network = Gated::draw(&mut StdRng::seed_from_u64(16), (4, len), gain);
    let failed = |error: linrec::Error| error.to_string();
    let states = network.sequential().map_err(failed)?;
    let guesses = network.iterate(slopes, iterations).map_err(failed)?;
    let digits: Vec<f64> = guesses
        .iter()
        .map(|guess| {
            let error =
                (guess - &states).iter().fold(0.0, |most: f64, error| most.max(error.abs()));
            if error.is_finite() { error.clamp(1e-17, 1e6).log10() } else { 6.0 }
        })
        .collect();
    let mut drawing = Drawing::new(240.0);
    let all = range(&digits);
    let axes = drawing.axes(digits.len(), all.start.floor()..all.end.ceil());
    drawing.curve(&axes, 0, &digits, "first");
    let says = match digits.iter().position(|&digits| digits < -14.0) {
        Some(at) => format!(
            "After {} iterations the largest error of {len} steps is below 1e-14 (drawn is its decimal logarithm).",
            at + 1
        ),
        None => format!(
            "After {iterations} iterations the largest error of {len} steps is 1e{} (drawn is its decimal logarithm).",
            digits.last().map_or(0.0, |digits| digits.round())
        ),
    };
    Ok((drawing, says))
}
