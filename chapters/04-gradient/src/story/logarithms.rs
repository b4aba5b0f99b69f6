//! Coefficients given as logarithms: which coefficient the gradient is multiplied by.

use ch03_matrix_form::mixing::{mix, mixing_matrix};
use linrec::lesson::{self, Kind, Lesson, Table};
use linrec::{Direction, Element, Engine, Error, Options};
use ndarray::{Array1, Array2, ArrayView1, Axis, array};

use super::ENGINE;
use crate::differences::central_differences;
use crate::shift::shift;

/// The step of the central differences.
const STEP: f64 = 1e-5;

/// Compares the right factor and the shifted one with slopes.
pub fn logarithms(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("logarithms", "Coefficients as logarithms")?;
    let inputs = array![[1.0, -1.0, 2.0, 0.5, 1.0]];
    let coeffs = array![[0.9_f64, 0.5, 0.8, 0.25, 0.6]];
    let log_coeffs = coeffs.ln();
    let options = Options { log_coeffs: true, ..Options::default() };
    // The loss is half the sum of squares, so that its gradient by the outputs is the outputs.
    let loss = |at: ArrayView1<f64>| -> Result<f64, Error> {
        let y = ENGINE.forward(inputs.view(), at.insert_axis(Axis(0)), &options)?.outputs;
        Ok(y.mapv(|y| y * y / 2.0).sum())
    };
    let slopes = central_differences(log_coeffs.row(0), STEP, loss)?;
    let y = ENGINE.forward(inputs.view(), log_coeffs.view(), &options)?.outputs;
    let right = ENGINE.backward(y.view(), log_coeffs.view(), y.view(), &options)?.d_coeffs;
    let plain = ENGINE.backward(y.view(), coeffs.view(), y.view(), &Options::default())?.d_coeffs;
    let shifted = &plain * &shift(coeffs.view(), Direction::Reverse, array![0.0].view())?;

    lesson.say(
        "The engine is given ln c, and the gradient of ln c_l is wanted. By the chain rule that is \
         δ^(c)_l c_l. The backward pass also has the shifted coefficients c_{l+1} at hand; a kernel \
         that takes those is wrong:",
    );
    let mut table = Table::new(["l", "slope", "δ^(c)_l c_l", "δ^(c)_l c_{l+1}"]);
    let mut errors = (0.0_f64, 0.0_f64);
    for l in 0..5 {
        let numbers = [slopes[l], right[[0, l]], shifted[[0, l]]];
        table.row([l.to_string()].into_iter().chain(numbers.map(|n| format!("{n:.5}"))));
        errors.0 = errors.0.max((right[[0, l]] - slopes[l]).abs());
        errors.1 = errors.1.max((shifted[[0, l]] - slopes[l]).abs());
    }
    lesson.table("logarithms.csv", Kind::Computed, &table)?;
    let limit = slope_limit(&coeffs, &y, STEP)?;
    lesson.check("unshifted, largest difference to a slope", errors.0, limit);
    lesson.check("its share of the shifted one's", errors.0 / errors.1, 1e-6);
    lesson.value("shifted_error", format!("{:.2}", errors.1), Kind::Computed);
    Ok(())
}

/// How far a central difference of half the sum of squares may be from the gradient by `ln c`.
fn slope_limit(coeffs: &Array2<f64>, outputs: &Array2<f64>, step: f64) -> Result<f64, Error> {
    let (matrix, seq_len) = (mixing_matrix(coeffs.row(0))?, coeffs.ncols());
    let unit = f64::UNIT_ROUNDOFF;
    let mut third_derivative: f64 = 0.0;
    for i in 1..seq_len {
        // y_l = a + b e^t with b e^t = y_{i-1} c_i c̃_{i,l}; the third derivative of y²/2 by t is
        // 3 (b e^t)² + y b e^t.
        let slope = |l: usize| (outputs[[0, i - 1]] * coeffs[[0, i]] * matrix[[i, l]]).abs();
        let terms = (i..seq_len).map(|l| slope(l) * (3.0 * slope(l) + outputs[[0, l]].abs()));
        third_derivative = third_derivative.max(terms.sum());
    }
    // Five steps of three roundings (with one of the logarithm's), a square and a sum of them: no
    // term of the loss meets more than 40. With signs, the terms of an output are larger than it.
    let sizes = mix(matrix.abs().view(), Array1::from_elem(seq_len, 2.0).view())?;
    let evaluation = 40.0 * unit * sizes.mapv(|y| y * y / 2.0).sum();
    // Along the way the variable moves, and with it what was computed here: by far less than half.
    Ok(1.5 * (step * step * third_derivative / 6.0 + evaluation / step))
}
