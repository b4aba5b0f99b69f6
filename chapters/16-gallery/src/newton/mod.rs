//! A recurrence that is not linear, evaluated by linear ones.
//!
//! DEER (Lim, Zhu, Selfridge, Kasim 2024) guesses all states of a network, replaces every step by
//! its tangent at the guess, and solves the resulting linear recurrence; then it repeats this from
//! the better guess. With only the diagonal of the Jacobian (Gonzalez, Warrington, Smith, Linderman
//! 2024) it is the recurrence of this book.

mod bound;

use ch04_gradient::shift::shift;
use linrec::{Direction, Error};
use ndarray::{Array1, Array2, ArrayView2, Axis, Zip, s};
use rand::RngExt;
use rand::rngs::StdRng;

use crate::models::sigmoid;
use crate::{Problem, expect};

/// A gated network whose gate and candidate depend on the last state: a GRU (Cho et al. 2014)
/// without its reset gate.
///
/// `h_l = (1 − z) h_{l-1} + z tanh(U_t h_{l-1} + …)`, with `z = σ(U_z h_{l-1} + …)`.
#[derive(Debug, Clone)]
pub struct Gated {
    /// `U_z`, `[size, size]`.
    pub gate: Array2<f64>,
    /// `U_t`, `[size, size]`.
    pub candidate: Array2<f64>,
    /// The inputs' contribution inside the sigmoid, `[size, seq_len]`.
    pub gate_drive: Array2<f64>,
    /// The inputs' contribution inside the tangent, `[size, seq_len]`.
    pub candidate_drive: Array2<f64>,
}

/// The replacement for the Jacobian of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slopes {
    /// The diagonal of the Jacobian.
    Diagonal,
    /// Zero: every step is evaluated at the guess (Jacobi's iteration).
    Zero,
}

/// The gates and candidates of a step at many positions.
struct Step {
    gates: Array2<f64>,
    candidates: Array2<f64>,
}

impl Step {
    /// Returns the states after the step.
    fn after(&self, before: ArrayView2<f64>) -> Array2<f64> {
        (1.0 - &self.gates) * before + &self.gates * &self.candidates
    }
}

impl Gated {
    /// Draws a network. The absolute values in each row of `U_z` and `U_t` add up to `gain`: the
    /// larger it is, the more the states influence each other.
    pub fn draw(rng: &mut StdRng, (size, seq_len): (usize, usize), gain: f64) -> Self {
        let mut weights = || {
            let mut weights =
                Array2::from_shape_simple_fn((size, size), || rng.random_range(-1.0..1.0));
            for mut row in weights.rows_mut() {
                let sum = row.mapv(f64::abs).sum();
                row.mapv_inplace(|w| w * gain / sum);
            }
            weights
        };
        let (gate, candidate) = (weights(), weights());
        let mut drive =
            || Array2::from_shape_simple_fn((size, seq_len), || rng.random_range(-1.0..1.0));
        let (gate_drive, candidate_drive) = (drive(), drive());
        Gated { gate, candidate, gate_drive, candidate_drive }
    }

    /// Returns the number of positions.
    pub fn seq_len(&self) -> usize {
        self.gate_drive.ncols()
    }

    fn check(&self) -> Result<(), Error> {
        let size = self.gate_drive.nrows();
        expect("gated", ("size by size", &[size, size]), ("gate", &self.gate))?;
        expect("gated", ("size by size", &[size, size]), ("candidate", &self.candidate))?;
        let drive = ("gate drive", self.gate_drive.shape());
        expect("gated", drive, ("candidate drive", &self.candidate_drive))
    }

    /// Computes the step at some positions from the states before them.
    fn step(&self, before: ArrayView2<f64>, positions: std::ops::Range<usize>) -> Step {
        let part = s![.., positions];
        let gates = (self.gate.dot(&before) + self.gate_drive.slice(part)).mapv_into(sigmoid);
        let candidates = self.candidate.dot(&before) + self.candidate_drive.slice(part);
        Step { gates, candidates: candidates.mapv_into(f64::tanh) }
    }

    /// Computes the states one by one, `[size, seq_len]`; the rest of this file finds them
    /// otherwise.
    ///
    /// # Errors
    ///
    /// Returns an error if the shapes do not match.
    // ANCHOR: sequential
    pub fn sequential(&self) -> Result<Array2<f64>, Error> {
        self.check()?;
        let mut states = Array2::zeros(self.gate_drive.dim());
        let mut state = Array2::zeros((states.nrows(), 1));
        for l in 0..self.seq_len() {
            state = self.step(state.view(), l..l + 1).after(state.view());
            states.column_mut(l).assign(&state.column(0));
        }
        Ok(states)
    }
    // ANCHOR_END: sequential

    /// Makes the linear recurrence that is tangent to the network at the guess `[size, seq_len]`,
    /// at all positions at once.
    ///
    /// # Errors
    ///
    /// Returns an error if the shapes do not match.
    // ANCHOR: linearised
    pub fn linearised(
        &self,
        guess: ArrayView2<f64>,
        slopes: Slopes,
    ) -> Result<Problem<f64>, Error> {
        self.check()?;
        expect("gated", ("gate drive", self.gate_drive.shape()), ("guess", &guess))?;
        let zero = Array1::zeros(guess.nrows());
        let before = shift(guess, Direction::Forward, zero.view())?;
        let step = self.step(before.view(), 0..self.seq_len());
        let coeffs = match slopes {
            Slopes::Diagonal => self.diagonal(&before, &step),
            Slopes::Zero => Array2::zeros(before.dim()),
        };
        let inputs = step.after(before.view()) - &coeffs * &before;
        Ok(Problem::new(inputs, coeffs))
    }
    // ANCHOR_END: linearised

    /// Returns how much each state depends on its own value before the step: `∂h_l / ∂h_{l-1}`,
    /// without the other states.
    // ANCHOR: diagonal
    fn diagonal(&self, before: &Array2<f64>, step: &Step) -> Array2<f64> {
        Array2::from_shape_fn(before.dim(), |at @ (i, _)| {
            let (z, t, h) = (step.gates[at], step.candidates[at], before[at]);
            let through_gate = (t - h) * z * (1.0 - z) * self.gate[[i, i]];
            let through_candidate = z * (1.0 - t * t) * self.candidate[[i, i]];
            1.0 - z + through_gate + through_candidate
        })
    }
    // ANCHOR_END: diagonal

    /// Returns the guesses, from zero: the first refined once, the last `iterations` times.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Gated::linearised`].
    // ANCHOR: iterate
    pub fn iterate(&self, slopes: Slopes, iterations: usize) -> Result<Vec<Array2<f64>>, Error> {
        let mut guess = Array2::zeros(self.gate_drive.dim());
        let mut guesses = Vec::with_capacity(iterations);
        for _ in 0..iterations {
            guess = self.linearised(guess.view(), slopes)?.solve()?;
            guesses.push(guess.clone());
        }
        Ok(guesses)
    }
    // ANCHOR_END: iterate

    /// Returns the largest Lyapunov exponent along these states: the average growth of a small
    /// difference between two runs, as a logarithm per step. Below zero, differences fade.
    ///
    /// # Errors
    ///
    /// Returns an error if the shapes do not match.
    pub fn lyapunov(&self, states: ArrayView2<f64>) -> Result<f64, Error> {
        let zero = Array1::zeros(states.nrows());
        let before = shift(states, Direction::Forward, zero.view())?;
        let step = self.step(before.view(), 0..self.seq_len());
        let mut difference =
            Array1::from_elem(states.nrows(), (states.nrows() as f64).sqrt().recip());
        let mut growth = 0.0;
        for l in 0..self.seq_len() {
            let (by_gate, by_candidate) =
                (self.gate.dot(&difference), self.candidate.dot(&difference));
            let (z, t) = (step.gates.column(l), step.candidates.column(l));
            let h = before.column(l);
            Zip::indexed(&mut difference).for_each(|i, d| {
                *d = (1.0 - z[i]) * *d
                    + (t[i] - h[i]) * z[i] * (1.0 - z[i]) * by_gate[i]
                    + z[i] * (1.0 - t[i] * t[i]) * by_candidate[i];
            });
            let size = difference.dot(&difference).sqrt();
            growth += size.ln();
            difference /= size;
        }
        Ok(growth / self.seq_len().max(1) as f64)
    }
}

/// Returns the largest difference at every position, over all states.
pub fn errors(guess: ArrayView2<f64>, states: ArrayView2<f64>) -> Array1<f64> {
    let difference = (&guess - &states).mapv_into(f64::abs);
    difference.map_axis(Axis(0), |column| column.iter().fold(0.0, |a: f64, &b| a.max(b)))
}
