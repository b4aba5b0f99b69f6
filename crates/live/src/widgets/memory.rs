//! Widgets for the memory of a coefficient (chapter 1), as a matrix (3), and the inputs that a
//! gradient reaches (4).

use ch01_sequential_loop::{Loop, linrec, special_cases};
use ch03_matrix_form::mixing::mixing_matrix;
use linrec::{Engine, Options};
use ndarray::{Array1, Array2, s};

use super::Controls;
use super::drawing::{Drawing, WIDTH, range};
use crate::number::float;
use crate::values::elements;

/// The number of steps of a curve.
const LEN: usize = 100;

/// Draws the outputs for one coefficient, and an impulse, ones or noise as inputs.
pub fn memory(controls: &mut Controls<'_>) -> Result<(Drawing, String), String> {
    let coeff = controls.slider("coefficient", 0.9, -1.05..=1.05, 0.01);
    let kind = controls.choice("inputs", &["impulse", "ones", "noise"]);
    let inputs = elements(["impulse", "1", "noise"][kind], LEN)?;
    let outputs = linrec(&inputs, &[coeff; LEN], 0.0);
    let mut drawing = Drawing::new(240.0);
    let axes = drawing.axes(LEN, range(outputs.iter().chain(&inputs)));
    drawing.curve(&axes, 0, &inputs, "second");
    drawing.curve(&axes, 0, &outputs, "first");
    let impulse = linrec(&elements("impulse", 10_000)?, &vec![coeff; 10_000], 0.0);
    let half = impulse.iter().position(|value| value.abs() <= 0.5);
    let says = match half {
        Some(1) => "Of an input half of it is left after 1 step, or less. (The dashed curve is the inputs.)".to_owned(),
        Some(steps) => format!("Of an input half of it is left after {steps} steps. (The dashed curve is the inputs.)"),
        None if coeff.abs() > 1.0 => "Every input grows with each step.".to_owned(),
        None => "Nothing of an input is ever lost.".to_owned(),
    };
    Ok((drawing, says))
}

/// Draws the outputs with a coefficient of 0 in one place, which forgets everything before it.
pub fn reset(controls: &mut Controls<'_>) -> Result<(Drawing, String), String> {
    let coeff = controls.slider("coefficient", 0.97, 0.0..=1.0, 0.01);
    let start = controls.whole("reset at", 50, 0..=LEN - 1);
    let inputs = elements("noise", LEN)?;
    let mut coeffs = vec![coeff; LEN];
    let before = linrec(&inputs, &coeffs, 0.0);
    special_cases::restart(&mut coeffs, &[start]);
    let outputs = linrec(&inputs, &coeffs, 0.0);
    let mut drawing = Drawing::new(240.0);
    let axes = drawing.axes(LEN, range(outputs.iter().chain(&before)));
    drawing.curve(&axes, 0, &before, "second");
    drawing.curve(&axes, 0, &outputs, "first");
    let lasting = before.iter().zip(&outputs).rposition(|(a, b)| (a - b).abs() > 0.01);
    let says = match lasting {
        Some(last) => format!(
            "Without the reset (the dashed curve) the outputs differ by more than 0.01 up to step {last}: so long the past would have counted."
        ),
        None => "Without the reset the outputs are the same: there was nothing left to forget."
            .to_owned(),
    };
    Ok((drawing, says))
}

/// Draws the transposed mixing matrix, with one output's row.
pub fn matrix(controls: &mut Controls<'_>) -> Result<(Drawing, String), String> {
    let len = controls.whole("length", 16, 2..=32);
    let coeff = controls.slider("coefficient", 0.8, -1.0..=1.0, 0.05);
    let zero = controls.whole("zero at", 0, 0..=31).min(len - 1);
    let row = controls.whole("output", 10, 0..=31).min(len - 1);
    let mut coeffs = Array1::from_elem(len, coeff);
    coeffs[zero] = 0.0;
    let matrix = mixing_matrix(coeffs.view()).map_err(|error| error.to_string())?;
    let (cell, mut drawing) = (320.0 / len as f64, Drawing::new(336.0));
    let left = (WIDTH - 320.0) / 2.0;
    for ((k, l), &value) in matrix.indexed_iter() {
        let class = if value < 0.0 { "negative" } else { "positive" };
        let place = (left + cell * k as f64, 8.0 + cell * l as f64);
        drawing.cell(place, (cell - 1.0, cell - 1.0), class, value.abs().min(1.0));
    }
    drawing.cell((left - 2.0, 6.0 + cell * row as f64), (324.0, cell + 2.0), "marked", 0.0);
    let weights = matrix.slice(s![.., row]);
    let counted = weights.iter().filter(|weight| weight.abs() > 0.01).count();
    let shown: Vec<String> =
        (0..=row).rev().take(4).map(|k| format!("{} x{k}", float(weights[k]))).collect();
    let says = format!(
        "y{row} = {}{}: {counted} inputs count with more than 0.01.",
        shown.join(" + "),
        if row > 3 { " + …" } else { "" }
    );
    Ok((drawing, says))
}

/// Draws the gradient of one output with respect to every input.
pub fn reach(controls: &mut Controls<'_>) -> Result<(Drawing, String), String> {
    let coeff = controls.slider("coefficient", 0.9, 0.0..=1.05, 0.01);
    let output = controls.whole("output", 80, 0..=LEN - 1);
    let gate = controls.whole("gate at", 40, 0..=LEN - 1);
    let closed = controls.slider("gate", 0.2, 0.0..=1.0, 0.05);
    let mut coeffs = Array2::from_elem((1, LEN), coeff);
    coeffs[[0, gate]] = closed;
    let inputs = Array2::from_elem((1, LEN), 1.0);
    let options = Options::default();
    let failed = |error: linrec::Error| error.to_string();
    let outputs = Loop.forward(inputs.view(), coeffs.view(), &options).map_err(failed)?.outputs;
    let mut wanted = Array2::zeros((1, LEN));
    wanted[[0, output]] = 1.0;
    let gradients = Loop.backward(wanted.view(), coeffs.view(), outputs.view(), &options);
    let slopes = gradients.map_err(failed)?.d_inputs.row(0).to_vec();
    let mut drawing = Drawing::new(240.0);
    let axes = drawing.axes(LEN, range(&slopes));
    drawing.bars(&axes, &slopes, "positive");
    let reached = slopes.iter().filter(|slope| slope.abs() > 0.01).count();
    let says = format!(
        "Output {output} reaches {reached} inputs with more than 0.01. None is behind it, and what is before the gate is damped by it."
    );
    Ok((drawing, says))
}
