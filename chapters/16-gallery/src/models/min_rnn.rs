//! minGRU and minLSTM: gated networks whose gates do not depend on the state (Feng et al. 2024).

use linrec::{Engine, Error, Options};
use ndarray::{Array2, ArrayView1, ArrayView2, Zip};

use super::sigmoid;
use crate::{Problem, expect};

/// The candidate's activation: `x + 1/2` from zero on, `σ(x)` below. It is positive, which the
/// paper's form in logarithms requires.
pub fn positive(x: f64) -> f64 {
    if x >= 0.0 { x + 0.5 } else { sigmoid(x) }
}

/// Makes the problem of minGRU, with one row for each channel. `gate` and `candidate` are the
/// arguments of `σ` and [`positive`], `[channels, seq_len]`.
///
/// # Errors
///
/// Returns an error if the shapes do not match.
// ANCHOR: min_gru
pub fn min_gru(
    gate: ArrayView2<f64>,
    candidate: ArrayView2<f64>,
    initial: ArrayView1<f64>,
) -> Result<Problem<f64>, Error> {
    expect("min_gru", ("gate", gate.shape()), ("candidate", &candidate))?;
    let open = gate.mapv(sigmoid);
    Ok(Problem {
        inputs: open * candidate.mapv(positive),
        coeffs: gate.mapv(|k| sigmoid(-k)),
        options: Options { initial: Some(initial.to_owned().into()), ..Options::default() },
    })
}
// ANCHOR_END: min_gru

/// Computes the gradients of minGRU's gate and candidate, by an engine's backward pass.
///
/// # Errors
///
/// Returns the same errors as [`min_gru`], and if the engine fails.
// ANCHOR: gradient
pub fn min_gru_backward(
    engine: &dyn Engine<f64>,
    (gate, candidate): (ArrayView2<f64>, ArrayView2<f64>),
    initial: ArrayView1<f64>,
    d_outputs: ArrayView2<f64>,
) -> Result<(Array2<f64>, Array2<f64>), Error> {
    let problem = min_gru(gate, candidate, initial)?;
    let outputs = problem.solve_with(engine)?;
    let (coeffs, outputs) = (problem.coeffs.view(), outputs.view());
    let d = engine.backward(d_outputs, coeffs, outputs, &problem.options)?;
    // x = z g and c = 1 − z with z = σ(k): z receives both gradients.
    let d_open = &d.d_inputs * &candidate.mapv(positive) - &d.d_coeffs;
    let d_gate = d_open * gate.mapv(|k| sigmoid(k) * sigmoid(-k));
    let slope = |x: f64| if x >= 0.0 { 1.0 } else { sigmoid(x) * sigmoid(-x) };
    let d_candidate = d.d_inputs * gate.mapv(sigmoid) * candidate.mapv(slope);
    Ok((d_gate, d_candidate))
}
// ANCHOR_END: gradient

/// Makes the problem of minLSTM: two gates, divided by their sum to keep an average.
///
/// # Errors
///
/// Returns an error if the shapes do not match.
// ANCHOR: min_lstm
pub fn min_lstm(
    forget: ArrayView2<f64>,
    input: ArrayView2<f64>,
    candidate: ArrayView2<f64>,
) -> Result<Problem<f64>, Error> {
    expect("min_lstm", ("forget gate", forget.shape()), ("input gate", &input))?;
    expect("min_lstm", ("forget gate", forget.shape()), ("candidate", &candidate))?;
    let (forget, input) = (forget.mapv(sigmoid), input.mapv(sigmoid));
    let sum = &forget + &input;
    Ok(Problem::new(input / &sum * candidate, forget / sum))
}
// ANCHOR_END: min_lstm

/// Computes minLSTM step by step, with the share of the past as one sigmoid of a difference of
/// logarithms: `f / (f + i) = σ(ln f − ln i)`.
pub fn min_lstm_direct(
    forget: ArrayView2<f64>,
    input: ArrayView2<f64>,
    candidate: ArrayView2<f64>,
) -> Array2<f64> {
    let mut outputs = candidate.to_owned();
    let log_odds = forget.mapv(super::log_sigmoid) - input.mapv(super::log_sigmoid);
    Zip::from(outputs.rows_mut()).and(log_odds.rows()).for_each(|mut row, log_odds| {
        let mut state = 0.0;
        for (value, &odds) in row.iter_mut().zip(log_odds) {
            state = sigmoid(odds) * state + sigmoid(-odds) * *value;
            *value = state;
        }
    });
    outputs
}
