//! One recurrence of a network for the cups: its coefficients, states and gradient.

use ch04_gradient::chain::{sigmoid, sigmoid_slope};
use linrec::cpu::Cpu;
use linrec::{Engine, Error, Options};
use ndarray::{Array1, Array2, ArrayView2, Axis, concatenate, s};
use num_complex::Complex;

/// The number of values in a layer's state: pairs, or vectors of [`KEY`] for the delta rule.
pub const STATE: usize = 32;

/// The number of elements in a key of the delta rule.
pub const KEY: usize = 4;

const PAIRS: usize = STATE / 2;
const HEADS: usize = STATE / KEY;

/// The kind of a layer's coefficients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Between 0 and 1: `σ(a)`, shared by the two values of a pair.
    Gate,
    /// Between −1 and 1: `tanh(a)`, shared by the two values of a pair.
    Signed,
    /// Complex, inside the unit circle: `σ(a) exp(iθ)`, with a pair as one complex number.
    Complex,
    /// A matrix for each vector `S` of the state: the delta rule, `S + β k (v − k · S)`, with `k`
    /// of length 1. `β` is between 0 and the number given here; above 1 it can reverse a direction.
    Delta(u8),
}

impl Kind {
    /// Returns the number of rows of the layer's weights: its values at each position.
    pub fn rows(self) -> usize {
        match self {
            Kind::Gate | Kind::Signed => 3 * PAIRS,
            Kind::Complex => 4 * PAIRS,
            Kind::Delta(_) => HEADS * (KEY + 2),
        }
    }

    /// Computes `c = m exp(iθ)` from weighted features: the moduli `m`, their slopes, and `c`.
    fn coeffs(self, made: ArrayView2<f64>) -> [Array2<Complex<f64>>; 3] {
        let raw = made.slice(s![2 * PAIRS..3 * PAIRS, ..]);
        let (size, slope) = match self {
            Kind::Signed => (raw.mapv(f64::tanh), raw.mapv(|a| 1.0 - a.tanh().powi(2))),
            _ => (raw.mapv(sigmoid), raw.mapv(|a| sigmoid_slope(sigmoid(a)))),
        };
        let turn = match self {
            Kind::Complex => made.slice(s![3 * PAIRS.., ..]).mapv(Complex::cis),
            _ => Array2::ones(raw.dim()),
        };
        [&turn * &size.mapv(Complex::from), &turn * &slope.mapv(Complex::from), turn]
    }

    /// Computes the states `[STATE, positions]` from the weighted features, `[rows, positions]`.
    /// The state restarts at every position with `is_start`.
    ///
    /// # Errors
    ///
    /// Returns an error if the engine fails.
    pub fn forward(
        self,
        cpu: &Cpu,
        made: ArrayView2<f64>,
        is_start: &[bool],
    ) -> Result<Array2<f64>, Error> {
        if let Kind::Delta(most) = self {
            return Ok(delta(made, is_start, f64::from(most)));
        }
        let inputs = pairs(made.slice(s![..2 * PAIRS, ..]));
        let [coeffs, ..] = self.coeffs(made);
        let coeffs = restarted(coeffs, is_start);
        let states = cpu.forward(inputs.view(), coeffs.view(), &Options::default())?.outputs;
        Ok(numbers(&states))
    }

    /// Computes the gradient with respect to `made` from the gradient with respect to the states.
    ///
    /// # Errors
    ///
    /// Returns an error if the engine fails.
    pub fn backward(
        self,
        cpu: &Cpu,
        made: ArrayView2<f64>,
        is_start: &[bool],
        states: ArrayView2<f64>,
        d_states: ArrayView2<f64>,
    ) -> Result<Array2<f64>, Error> {
        if let Kind::Delta(most) = self {
            return Ok(delta_backward(made, is_start, f64::from(most), states, d_states));
        }
        let [coeffs, slopes, _] = self.coeffs(made);
        let (states, d_states) = (pairs(states), pairs(d_states));
        let used = restarted(coeffs.clone(), is_start);
        let options = Options::default();
        let d = cpu.backward(d_states.view(), used.view(), states.view(), &options)?;
        let d_coeffs = restarted(d.d_coeffs, is_start);
        // A complex gradient is the real part's plus i times the imaginary part's.
        let along = |of: &Array2<Complex<f64>>| (of.mapv(|z| z.conj()) * &d_coeffs).mapv(|z| z.re);
        let mut d_made = vec![numbers(&d.d_inputs), along(&slopes)];
        if self == Kind::Complex {
            d_made.push(along(&coeffs.mapv(|c| c * Complex::I)));
        }
        Ok(stack(&d_made))
    }
}

/// Reads pairs of values as complex numbers: the first half of the rows are real parts.
fn pairs(numbers: ArrayView2<f64>) -> Array2<Complex<f64>> {
    let (re, im) = numbers.split_at(Axis(0), numbers.nrows() / 2);
    ndarray::Zip::from(re).and(im).map_collect(|&re, &im| Complex::new(re, im))
}

fn numbers(pairs: &Array2<Complex<f64>>) -> Array2<f64> {
    stack(&[pairs.mapv(|z| z.re), pairs.mapv(|z| z.im)])
}

/// Stacks arrays with the same number of columns.
pub(super) fn stack(parts: &[Array2<f64>]) -> Array2<f64> {
    let views: Vec<_> = parts.iter().map(|part| part.view()).collect();
    concatenate(Axis(0), &views).expect("parts of a network have one column for each position")
}

/// Sets the coefficients to zero where a sequence begins.
fn restarted(mut coeffs: Array2<Complex<f64>>, is_start: &[bool]) -> Array2<Complex<f64>> {
    for (mut column, _) in
        coeffs.columns_mut().into_iter().zip(is_start).filter(|(_, start)| **start)
    {
        column.fill(Complex::ZERO);
    }
    coeffs
}

/// One head of the delta rule at one position.
struct Step {
    key: Array1<f64>,
    /// The length of the key before it was normalised.
    length: f64,
    gate: f64,
    value: f64,
}

impl Step {
    fn read(made: &ArrayView2<f64>, head: usize, l: usize) -> Step {
        let key = made.slice(s![head * KEY..(head + 1) * KEY, l]);
        let length = key.dot(&key).sqrt().max(1e-12);
        let gate = sigmoid(made[[HEADS * KEY + head, l]]);
        Step { key: &key / length, length, gate, value: made[[HEADS * (KEY + 1) + head, l]] }
    }
}

fn delta(made: ArrayView2<f64>, is_start: &[bool], most: f64) -> Array2<f64> {
    let mut states = Array2::zeros((STATE, is_start.len()));
    for head in 0..HEADS {
        let rows = head * KEY..(head + 1) * KEY;
        let mut state = Array1::<f64>::zeros(KEY);
        for (l, &start) in is_start.iter().enumerate() {
            if start {
                state.fill(0.0);
            }
            let step = Step::read(&made, head, l);
            let surprise = step.value - step.key.dot(&state);
            state.scaled_add(most * step.gate * surprise, &step.key);
            states.slice_mut(s![rows.clone(), l]).assign(&state);
        }
    }
    states
}

fn delta_backward(
    made: ArrayView2<f64>,
    is_start: &[bool],
    most: f64,
    states: ArrayView2<f64>,
    d_states: ArrayView2<f64>,
) -> Array2<f64> {
    let mut d_made = Array2::zeros(made.dim());
    for head in 0..HEADS {
        let rows = head * KEY..(head + 1) * KEY;
        let mut d_state = Array1::<f64>::zeros(KEY);
        for l in (0..is_start.len()).rev() {
            d_state += &d_states.slice(s![rows.clone(), l]);
            let before = match is_start[l] {
                true => Array1::zeros(KEY),
                false => states.slice(s![rows.clone(), l - 1]).to_owned(),
            };
            let step = Step::read(&made, head, l);
            let beta = most * step.gate;
            let (surprise, along) = (step.value - step.key.dot(&before), step.key.dot(&d_state));
            let d_key = &d_state * (beta * surprise) - &before * (beta * along);
            // Normalising removes the part along the key.
            let d_raw = (&d_key - &step.key * step.key.dot(&d_key)) / step.length;
            d_made.slice_mut(s![rows.clone(), l]).assign(&d_raw);
            d_made[[HEADS * KEY + head, l]] = along * surprise * most * sigmoid_slope(step.gate);
            d_made[[HEADS * (KEY + 1) + head, l]] = along * beta;
            match is_start[l] {
                true => d_state.fill(0.0),
                false => d_state.scaled_add(-beta * along, &step.key),
            }
        }
    }
    d_made
}
