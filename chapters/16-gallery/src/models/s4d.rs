//! S4D: a diagonal state space model (Gu, Gupta, Goel, Ré 2022).

use linrec::Error;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2};
use num_complex::Complex;

use crate::{Problem, expect};

/// A channel with `N` complex states: `s' = A s + B u`, `y = 2 Re(C s)`, sampled in equal steps.
#[derive(Debug, Clone)]
pub struct S4d {
    /// `A`, `[N]`, with negative real parts.
    pub a: Array1<Complex<f64>>,
    /// `B`, `[N]`.
    pub b: Array1<Complex<f64>>,
    /// `C`, `[N]`.
    pub c: Array1<Complex<f64>>,
    /// `Δ`, the time between two samples.
    pub step: f64,
}

impl S4d {
    /// Makes the initialisation called S4D-Lin: `A_n = −1/2 + iπn`, and `B_n = 1`.
    pub fn linear(c: Array1<Complex<f64>>, step: f64) -> Self {
        let a =
            Array1::from_shape_fn(c.len(), |n| Complex::new(-0.5, std::f64::consts::PI * n as f64));
        S4d { b: Array1::from_elem(c.len(), Complex::from(1.0)), a, c, step }
    }

    fn check(&self) -> Result<(), Error> {
        expect("s4d", ("A", self.a.shape()), ("B", &self.b))?;
        expect("s4d", ("A", self.a.shape()), ("C", &self.c))
    }

    // ANCHOR: s4d
    /// Returns the factor of a state per step, and of an input that is held for the step.
    pub fn discretised(&self) -> (Array1<Complex<f64>>, Array1<Complex<f64>>) {
        let keep = self.a.mapv(|a| (a * self.step).exp());
        let enter = (&keep - Complex::from(1.0)) / &self.a * &self.b;
        (keep, enter)
    }

    /// Makes the problem, with one row for each state.
    ///
    /// # Errors
    ///
    /// Returns an error if `A`, `B` and `C` have different lengths.
    pub fn problem(&self, signal: ArrayView1<f64>) -> Result<Problem<Complex<f64>>, Error> {
        self.check()?;
        let (keep, enter) = self.discretised();
        let shape = (self.a.len(), signal.len());
        let inputs = Array2::from_shape_fn(shape, |(n, l)| enter[n] * signal[l]);
        Ok(Problem::new(inputs, Array2::from_shape_fn(shape, |(n, _)| keep[n])))
    }

    /// Computes the output: each state represents itself and its conjugate.
    pub fn read(&self, states: ArrayView2<Complex<f64>>) -> Array1<f64> {
        states.columns().into_iter().map(|s| 2.0 * self.c.dot(&s).re).collect()
    }
    // ANCHOR_END: s4d

    /// Computes the output by a convolution with `K_l = 2 Re Σ_n C_n B̄_n e^{l Δ A_n}`.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`S4d::problem`].
    pub fn convolution(&self, signal: ArrayView1<f64>) -> Result<Array1<f64>, Error> {
        self.check()?;
        let (_, enter) = self.discretised();
        let kernel = Array1::from_shape_fn(signal.len(), |l| {
            let power = |n: usize| (self.a[n] * (self.step * l as f64)).exp();
            2.0 * (0..self.a.len())
                .map(|n| self.c[n] * enter[n] * power(n))
                .sum::<Complex<f64>>()
                .re
        });
        Ok(Array1::from_shape_fn(signal.len(), |l| {
            (0..=l).map(|k| kernel[l - k] * signal[k]).sum()
        }))
    }

    /// Computes the output in one pass over the signal, the fused form: the states are in a small
    /// array and are never stored as a sequence.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`S4d::problem`].
    // ANCHOR: fused
    pub fn fused(&self, signal: ArrayView1<f64>) -> Result<Array1<f64>, Error> {
        self.check()?;
        let (keep, enter) = self.discretised();
        let readout = self.c.mapv(|c| 2.0 * c);
        let mut states = vec![Complex::from(0.0); self.a.len()];
        let step = |&input: &f64| {
            let mut output = 0.0;
            for (n, state) in states.iter_mut().enumerate() {
                *state = *state * keep[n] + enter[n] * input;
                output += (readout[n] * *state).re;
            }
            output
        };
        Ok(signal.iter().map(step).collect())
    }
    // ANCHOR_END: fused
}
