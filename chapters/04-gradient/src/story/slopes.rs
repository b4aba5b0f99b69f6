//! Gradients against slopes, and what limits a finite difference.

use ch03_matrix_form::mixing::mixing_matrix;
use linrec::lesson::{self, Kind, Lesson, plot, plot::Chart};
use linrec::reference::{self, Rounding};
use linrec::{Element, Engine, Error, Options};
use ndarray::{Array1, ArrayView1, Axis, s};
use num_complex::Complex;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::ENGINE;
use crate::differences::{central_differences, complex_step};

const LEN: usize = 40;

/// A loss `Σ w_l sin(y_l)` of one sequence, as a function of inputs, coefficients and initial state.
struct Problem {
    weights: Array1<f64>,
    /// Inputs, coefficients and the initial state, one after another.
    at: Array1<f64>,
}

impl Problem {
    fn new(rng: &mut StdRng) -> Self {
        let mut draw = |len: usize, low: f64, high: f64| {
            Array1::from_shape_simple_fn(len, || rng.random_range(low..high))
        };
        let parts = [draw(LEN, -1.0, 1.0), draw(LEN, -1.1, 1.1), draw(1, -1.0, 1.0)];
        let at = parts.iter().flatten().copied().collect();
        Problem { weights: draw(LEN, -1.0, 1.0), at }
    }

    /// The outputs, in real or complex numbers.
    fn outputs<T: Element>(at: ArrayView1<T>) -> Result<Array1<T>, Error> {
        let (inputs, rest) = at.split_at(Axis(0), LEN);
        let (coeffs, initial) = rest.split_at(Axis(0), LEN);
        let options = Options { initial: Some(initial.to_owned()), ..Options::default() };
        let (inputs, coeffs) = (inputs.insert_axis(Axis(0)), coeffs.insert_axis(Axis(0)));
        Ok(ENGINE.forward(inputs, coeffs, &options)?.outputs.index_axis_move(Axis(0), 0))
    }

    fn loss(&self, at: ArrayView1<f64>) -> Result<f64, Error> {
        Ok((Self::outputs(at)?.mapv(f64::sin) * &self.weights).sum())
    }

    fn complex_loss(&self, at: ArrayView1<Complex<f64>>) -> Result<Complex<f64>, Error> {
        let sines = Self::outputs(at)?.mapv(Complex::sin);
        Ok(sines.iter().zip(&self.weights).map(|(sine, weight)| sine * weight).sum())
    }

    fn options(&self) -> Options<f64> {
        Options { initial: Some(self.at.slice(s![2 * LEN..]).to_owned()), ..Options::default() }
    }

    /// The gradient by backward pass, in the order of `at`.
    fn gradient(&self) -> Result<Array1<f64>, Error> {
        let outputs = Self::outputs(self.at.view())?;
        let d_outputs = (outputs.mapv(f64::cos) * &self.weights).insert_axis(Axis(0));
        let (coeffs, outputs) = (self.at.slice(s![LEN..2 * LEN]), outputs.insert_axis(Axis(0)));
        let coeffs = coeffs.insert_axis(Axis(0));
        let d = ENGINE.backward(d_outputs.view(), coeffs, outputs.view(), &self.options())?;
        Ok(d.d_inputs.iter().chain(&d.d_coeffs).chain(&d.d_initial).copied().collect())
    }

    /// How far slopes and gradient may be apart.
    fn limits(&self) -> Result<Limits, Error> {
        let rounding = Rounding { levels: 0, exp_ulps: 0.0 };
        let inputs = self.at.slice(s![..LEN]).insert_axis(Axis(0));
        let coeffs = self.at.slice(s![LEN..2 * LEN]);
        let row = coeffs.insert_axis(Axis(0));
        let bound = reference::forward_bound(inputs, row, &self.options(), rounding)?;
        let bound = bound.outputs.row(0).to_owned();
        let outputs = Self::outputs(self.at.view())?;
        let (sizes, unit) = (self.weights.abs(), f64::UNIT_ROUNDOFF);

        // Along an input every output is a straight line of slope c̃, along a coefficient one of
        // slope y_{i-1} c̃, along the initial state one of slope c_0 c̃.
        let slopes = mixing_matrix(coeffs)?.abs();
        let before = |first: f64, of: &Array1<f64>| {
            let earlier = of.slice(s![..LEN - 1]);
            [first].iter().chain(earlier).copied().collect::<Array1<f64>>()
        };
        let factors = before(self.at[2 * LEN], &outputs).abs();
        let all = |of_inputs: Array1<f64>, of_coeffs: Array1<f64>, initial: f64| {
            of_inputs.iter().chain(&of_coeffs).copied().chain([initial]).collect()
        };

        // The third derivative of w sin(a + b t) is at most |w| |b|³.
        let cubes = slopes.powi(3).dot(&sizes);
        let (of_coeffs, of_initial) =
            (&cubes * &factors.powi(3), cubes[0] * coeffs[0].abs().powi(3));
        let third_derivatives = all(cubes, of_coeffs, of_initial);
        // A sine is off by two units, its product by one; a term meets at most L additions.
        let loss = (&bound * &sizes).sum() + (LEN as f64 + 3.0) * unit * sizes.sum();
        // One pass forward and one back: every term meets at most 4 L + 8 roundings in complex
        // numbers, and inherits the errors of the outputs in its cosine and in y_{i-1}.
        let passes = (4 * LEN + 8) as f64 * unit;
        let terms = slopes.dot(&(&sizes * &(&bound + passes)));
        let inherited = before(0.0, &bound) * slopes.dot(&sizes);
        let (of_coeffs, of_initial) = (&terms * &factors + inherited, terms[0] * coeffs[0].abs());
        Ok(Limits { third_derivatives, loss, gradient: all(terms, of_coeffs, of_initial) })
    }
}

/// What the errors of slopes are made of, to first order; arrays in the order of [`Problem::at`].
struct Limits {
    /// `M`: the truncation error of a central difference is at most `h² M / 6`.
    third_derivatives: Array1<f64>,
    /// `F`: the rounding error of the loss, which becomes `F / h` in a central difference.
    loss: f64,
    /// The rounding error of the gradient.
    gradient: Array1<f64>,
}

impl Limits {
    fn of_central_difference(&self, step: f64) -> Array1<f64> {
        self.third_derivatives.mapv(|m| step * step * m / 6.0 + self.loss / step) + &self.gradient
    }
}

/// Compares the gradient with both kinds of slopes, over many step sizes.
pub fn slopes(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("slopes", "Slopes as a witness")?;
    let problem = Problem::new(&mut StdRng::seed_from_u64(41));
    let gradient = problem.gradient()?;
    let limits = problem.limits()?;
    lesson.say(&format!(
        "A sequence of {LEN} with signed coefficients and the loss Σ w_l sin(y_l). It has {} parameters: \
         inputs, coefficients and the initial state. Each is moved a little, and the loss computed \
         again.",
        gradient.len(),
    ));
    let errors = |step: f64| -> Result<Array1<f64>, Error> {
        let slopes = central_differences(problem.at.view(), step, |at| problem.loss(at))?;
        Ok((slopes - &gradient).abs())
    };
    let largest = |values: &Array1<f64>| values.iter().copied().fold(0.0, f64::max);
    let (mut measured, mut limit) = (Vec::new(), Vec::new());
    for exponent in -48..=0 {
        let step = 10f64.powf(f64::from(exponent) / 4.0);
        measured.push((step, largest(&errors(step)?)));
        limit.push((step, largest(&limits.of_central_difference(step))));
    }
    let by_complex = complex_step(problem.at.view(), |at| problem.complex_loss(at))?;
    let complex_errors = (by_complex - &gradient).abs();
    let complex_error = largest(&complex_errors);
    let chart = Chart::new("Slope minus gradient, the largest of all parameters")
        .axes("step size h", "error")
        .log_x(10.0)
        .log_y(10.0)
        .y_range(1e-21, 1e2)
        .measured("central difference", measured.iter().copied())
        .dashed("its limit", limit)
        .line("complex step", [(1e-12, complex_error), (1.0, complex_error)]);
    lesson.figure("slopes.svg", "The error of a slope", Kind::Timed, &plot::svg(&[&chart])?)?;

    let best = measured.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((1.0, 1.0));
    lesson.say(&format!(
        "Too large a step sees the curve, too small a step sees the rounding of the loss. The best of \
         them, h = {:.0e}, is off by {:.0e}.",
        best.0, best.1,
    ));
    let ratios = errors(1e-5)? / limits.of_central_difference(1e-5);
    lesson.check("central difference at h = 1e-5, largest error / limit", largest(&ratios), 1.0);
    lesson.say(
        "A step of 1e-100 in the imaginary direction subtracts nothing, so nothing cancels: the \
         engine's complex numbers give slopes to the last digits.",
    );
    // Two gradients are compared here, and each may be off by that much.
    let ratios = complex_errors / (2.0 * &limits.gradient);
    lesson.check("complex step, largest error / limit", largest(&ratios), 1.0);
    Ok(())
}
