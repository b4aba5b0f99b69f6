//! The story of chapter 4: follows a gradient by hand, then checks it against other witnesses.
//!
//! A gradient that is derived on paper can be wrong in ways that look right, so the story asks
//! several witnesses: central differences and complex steps with derived error limits, the
//! transposed matrix of chapter 3, PyTorch's numbers, and the test contract. It also shows how far
//! back a gradient reaches and which factor coefficients as logarithms need. The module `training`
//! uses the gradient. `cargo xtask record --check` compares the checks and values of a run with the
//! committed record.

mod training;

use ch01_sequential_loop::Loop;
use ch03_matrix_form::Matrix;
use ch03_matrix_form::mixing::{mix, mixing_matrix};
use lesson::plot::{self, Chart};
use lesson::{Kind, Lesson, Table};
use linrec::contract::{self, Domain, golden};
use linrec::reference::{self, Rounding};
use linrec::{Direction, Element, Engine, Error, Options};
use ndarray::{Array1, Array2, ArrayView1, Axis, array, s};
use num_complex::Complex;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::ThroughForward;
use crate::differences::{central_differences, complex_step};
use crate::shift::shift;

pub(crate) fn run(lesson: &mut Lesson) -> lesson::Result {
    lesson.engine("loop, backward through forward");
    by_hand(lesson)?;
    reach(lesson)?;
    slopes(lesson)?;
    witnesses(lesson)?;
    logarithms(lesson)?;
    training::chain_rule(lesson)?;
    training::training(lesson)
}

/// The engine of all steps: chapter 1's loop with a backward pass through its forward pass.
const ENGINE: ThroughForward<Loop> = ThroughForward(Loop);

fn by_hand(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("by-hand", "Four steps there and back")?;
    let (inputs, coeffs) = (array![[1.0, 1.0, 2.0, 0.0]], array![[7.0, 2.0, 3.0, 5.0]]);
    let options = Options { initial: Some(array![1.0].into()), ..Options::default() };
    let outputs = ENGINE.forward(inputs.view(), coeffs.view(), &options)?.outputs;
    // The loss is y_0 + y_3.
    let d_outputs = array![[1.0, 0.0, 0.0, 1.0]];
    let d = ENGINE.backward(d_outputs.view(), coeffs.view(), outputs.view(), &options)?;
    let next_coeffs = shift(coeffs.view(), Direction::Reverse, array![0.0].view())?;
    let previous = shift(outputs.view(), Direction::Forward, array![1.0].view())?;

    lesson.say(
        "The loss is y_0 + y_3, and the initial state y_{-1} is 1. Read the gradients from the last \
         row upwards: each δ^(x) is the one below times c_{l+1}, plus δ^(y).",
    );
    let header = ["l", "x", "c", "y", "δ^(y)", "c_{l+1}", "δ^(x)", "y_{l-1}", "δ^(c)"];
    let mut table = Table::new(header);
    for l in 0..4 {
        let columns = [&inputs, &coeffs, &outputs, &d_outputs];
        let gradients = [&next_coeffs, &d.d_inputs, &previous, &d.d_coeffs];
        let numbers = columns.into_iter().chain(gradients).map(|array| array[[0, l]].to_string());
        table.row([l.to_string()].into_iter().chain(numbers));
    }
    lesson.table("by-hand.csv", Kind::Computed, &table)?;
    lesson.say(&format!(
        "One step further up the initial state gets c_0 δ^(x)_0 = 7 · {} = {}.",
        d.d_inputs[[0, 0]],
        d.d_initial[0],
    ));
    let by_hand = [array![31.0, 15.0, 5.0, 1.0], array![31.0, 120.0, 85.0, 53.0]];
    let mut wrong = (d.d_initial[0] - 217.0_f64).abs();
    for (got, expected) in [&d.d_inputs, &d.d_coeffs].into_iter().zip(by_hand) {
        wrong += (&got.row(0) - &expected).abs().sum();
    }
    lesson.check("gradients minus those found by hand", wrong, 0.0);
    Ok(())
}

/// Puts a gradient of 1 on the last output and follows it back.
fn reach(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("reach", "How far back a gradient reaches")?;
    let seq_len = 200;
    let mut rng = StdRng::seed_from_u64(40);
    let mut draw = |low: f64, high: f64| {
        Array2::from_shape_simple_fn((1, seq_len), || rng.random_range(low..high))
    };
    let kinds = [
        ("c in [1, 1.04)", draw(1.0, 1.04)),
        ("c in [0.98, 1)", draw(0.98, 1.0)),
        ("c = 0.9", Array2::from_elem((1, seq_len), 0.9)),
        ("c in [0, 1)", draw(0.0, 1.0)),
    ];
    lesson.say(&format!(
        "Sequences of {seq_len}; only the last output counts. What does a change of the first input \
         mean to it?",
    ));
    let mut d_outputs = Array2::zeros((1, seq_len));
    d_outputs[[0, seq_len - 1]] = 1.0;
    let mut chart = Chart::new("A gradient of 1 at the last output, on its way back")
        .axes("position k", "gradient of the input at k")
        .log_y(10.0)
        .y_range(1e-16, 1e3);
    let zeros = Array2::zeros((1, seq_len));
    let mut first = Vec::new();
    for (name, coeffs) in &kinds {
        let d =
            ENGINE.backward(d_outputs.view(), coeffs.view(), zeros.view(), &Options::default())?;
        let points = d.d_inputs.iter().enumerate().map(|(k, &d)| (k as f64, d));
        // Points below the chart's edge are not drawn.
        chart = chart.line(name, points.filter(|&(_, d)| d >= 1e-16));
        first.push(format!("{:.0e} with {name}", d.d_inputs[[0, 0]]));
    }
    lesson.say(&format!("δ^(x)_0 is {}.", first.join(", ")));
    lesson.figure(
        "reach.svg",
        "How far back a gradient reaches",
        Kind::Computed,
        &plot::svg(&[&chart])?,
    )?;
    lesson.say(
        "The same products that let the past fade in the outputs let the gradient fade on its way \
         back: what a state has forgotten, training cannot reach.",
    );
    Ok(())
}

const LEN: usize = 40;

/// A loss `Σ w_l sin(y_l)` of one sequence, as a function of inputs, coefficients and initial
/// state.
struct Problem {
    weights: Array1<f64>,
    /// The inputs, the coefficients and the initial state, one after another.
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

    /// Computes the outputs, in real or complex numbers.
    fn outputs<T: Element>(at: ArrayView1<T>) -> Result<Array1<T>, Error> {
        let (inputs, rest) = at.split_at(Axis(0), LEN);
        let (coeffs, initial) = rest.split_at(Axis(0), LEN);
        let options = Options { initial: Some(initial.to_owned().into()), ..Options::default() };
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

    fn options(&self) -> Options<'static, f64> {
        Options {
            initial: Some(self.at.slice(s![2 * LEN..]).to_owned().into()),
            ..Options::default()
        }
    }

    fn gradient(&self) -> Result<Array1<f64>, Error> {
        let outputs = Self::outputs(self.at.view())?;
        let d_outputs = (outputs.mapv(f64::cos) * &self.weights).insert_axis(Axis(0));
        let (coeffs, outputs) = (self.at.slice(s![LEN..2 * LEN]), outputs.insert_axis(Axis(0)));
        let coeffs = coeffs.insert_axis(Axis(0));
        let d = ENGINE.backward(d_outputs.view(), coeffs, outputs.view(), &self.options())?;
        Ok(d.d_inputs.iter().chain(&d.d_coeffs).chain(&d.d_initial).copied().collect())
    }

    /// Returns the possible distance between slopes and gradient.
    fn limits(&self) -> Result<Limits, Error> {
        let rounding = Rounding { levels: 0, exp_ulps: 0.0 };
        let inputs = self.at.slice(s![..LEN]).insert_axis(Axis(0));
        let coeffs = self.at.slice(s![LEN..2 * LEN]);
        let row = coeffs.insert_axis(Axis(0));
        let bound = reference::forward_bound(inputs, row, &self.options(), rounding)?;
        let bound = bound.outputs.row(0).to_owned();
        let outputs = Self::outputs(self.at.view())?;
        let (sizes, unit) = (self.weights.abs(), f64::UNIT_ROUNDOFF);

        // Every output is a straight line along each variable. Its slope is c̃ along an input,
        // y_{i-1} c̃ along a coefficient, and c_0 c̃ along the initial state.
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
        // A sine is off by two units and its product by one; a term takes part in at most L
        // additions.
        let loss = (&bound * &sizes).sum() + (LEN as f64 + 3.0) * unit * sizes.sum();
        // In a pass forward and a pass back, every term is rounded at most 4 L + 8 times in complex
        // numbers. It inherits the errors of the outputs through its cosine and through y_{i-1}.
        let passes = (4 * LEN + 8) as f64 * unit;
        let terms = slopes.dot(&(&sizes * &(&bound + passes)));
        let inherited = before(0.0, &bound) * slopes.dot(&sizes);
        let (of_coeffs, of_initial) = (&terms * &factors + inherited, terms[0] * coeffs[0].abs());
        Ok(Limits { third_derivatives, loss, gradient: all(terms, of_coeffs, of_initial) })
    }
}

/// The parts of the slopes' errors, to first order, as arrays in the order of [`Problem::at`].
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
fn slopes(lesson: &mut Lesson) -> lesson::Result {
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
    // Two gradients are compared here, and each may be off by the limit.
    let ratios = complex_errors / (2.0 * &limits.gradient);
    lesson.check("complex step, largest error / limit", largest(&ratios), 1.0);
    Ok(())
}

fn witnesses(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("witnesses", "Three more witnesses")?;
    let seq_len = lesson.size(1000, 2000);
    lesson.say(&format!(
        "The first is chapter 3's matrix. It knows nothing of shifts: it multiplies by the matrix of \
         the forward pass, transposed; here 8 sequences of {seq_len} in reverse.",
    ));
    lesson.check(
        "recurrence and matrix, largest difference / limit",
        against_matrix(seq_len)?,
        1.0,
    );

    let mut worst: f64 = 0.0;
    let (real, complex) = (golden::real()?, golden::complex()?);
    for case in &real {
        worst = worst.max(golden::distance::<f64>(&ENGINE, case)?);
    }
    for case in &complex {
        worst = worst.max(golden::distance::<Complex<f64>>(&ENGINE, case)?);
    }
    lesson.say(&format!(
        "The second is PyTorch: {} real and {} complex problems, with gradients by its autograd.",
        real.len(),
        complex.len(),
    ));
    lesson.check("golden data, largest relative difference", worst, 1e-12);

    let domain = Domain { max_len: 64, ..Domain::default() };
    let report = contract::run::<f32>(&ENGINE, &domain);
    lesson.say(&format!(
        "The third is the table that every engine of this book must pass; here {} of its cases, in f32.",
        report.cases,
    ));
    let worst = if report.passed() { report.worst } else { f64::INFINITY };
    lesson.check("table of cases, largest error / bound", worst, 1.0);
    Ok(())
}

/// Returns the largest difference between the two ways to the gradients, in units of the rounding
/// bound.
fn against_matrix(seq_len: usize) -> lesson::Result<f64> {
    let mut rng = StdRng::seed_from_u64(42);
    let mut draw = |low: f64, high: f64| {
        Array2::from_shape_simple_fn((8, seq_len), || rng.random_range(low..high))
    };
    let (inputs, coeffs, d_outputs) = (draw(-1.0, 1.0), draw(0.9, 1.0), draw(-1.0, 1.0));
    let initial = Some(Array1::from_elem(8, 10.0));
    let options = Options {
        direction: Direction::Reverse,
        initial: initial.map(Into::into),
        log_coeffs: false,
    };
    let outputs = ENGINE.forward(inputs.view(), coeffs.view(), &options)?.outputs;
    let (dy, c, y) = (d_outputs.view(), coeffs.view(), outputs.view());
    let ours = ENGINE.backward(dy, c, y, &options)?;
    let theirs = Matrix.backward(dy, c, y, &options)?;
    let rounding = Rounding { levels: 0, exp_ulps: 0.0 };
    let bound = reference::backward_bound(dy, c, y, &options, rounding)?;
    let pairs = [
        (ours.d_inputs - theirs.d_inputs, bound.d_inputs),
        (ours.d_coeffs - theirs.d_coeffs, bound.d_coeffs),
    ];
    // Each of the two may be off by the bound.
    let ratios = pairs.into_iter().flat_map(|(difference, bound)| difference.abs() / (2.0 * bound));
    Ok(ratios.fold(0.0, f64::max))
}

const STEP: f64 = 1e-5;

/// Compares the right factor and the shifted factor with slopes.
fn logarithms(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("logarithms", "Coefficients as logarithms")?;
    let inputs = array![[1.0, -1.0, 2.0, 0.5, 1.0]];
    let coeffs = array![[0.9_f64, 0.5, 0.8, 0.25, 0.6]];
    let log_coeffs = coeffs.ln();
    let options = Options { log_coeffs: true, ..Options::default() };
    // The loss is half the sum of squares, so its gradient with respect to the outputs is the
    // outputs.
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
    lesson.check("unshifted difference / shifted difference", errors.0 / errors.1, 1e-6);
    lesson.value("shifted_error", format!("{:.2}", errors.1), Kind::Computed);
    Ok(())
}

/// Bounds the distance of a central difference of half the sum of squares from the gradient with
/// respect to `ln c`.
fn slope_limit(coeffs: &Array2<f64>, outputs: &Array2<f64>, step: f64) -> Result<f64, Error> {
    let (matrix, seq_len) = (mixing_matrix(coeffs.row(0))?, coeffs.ncols());
    let unit = f64::UNIT_ROUNDOFF;
    let mut third_derivative: f64 = 0.0;
    for i in 1..seq_len {
        // y_l = a + b e^t with b e^t = y_{i-1} c_i c̃_{i,l}; the third derivative of y²/2 with
        // respect to t is 3 (b e^t)² + y b e^t.
        let slope = |l: usize| (outputs[[0, i - 1]] * coeffs[[0, i]] * matrix[[i, l]]).abs();
        let terms = (i..seq_len).map(|l| slope(l) * (3.0 * slope(l) + outputs[[0, l]].abs()));
        third_derivative = third_derivative.max(terms.sum());
    }
    // Five steps of three roundings (one of them of the logarithm), a square and a sum of squares:
    // no term of the loss is rounded more than 40 times. With signs, an output's terms may exceed
    // it.
    let sizes = mix(matrix.abs().view(), Array1::from_elem(seq_len, 2.0).view())?;
    let evaluation = 40.0 * unit * sizes.mapv(|y| y * y / 2.0).sum();
    // The variable moves along the way, and the values computed here move with it, but by far less
    // than half.
    Ok(1.5 * (step * step * third_derivative / 6.0 + evaluation / step))
}
