//! S5: all channels share their states, and steps may differ (Smith, Warrington, Linderman 2023).

use linrec::Error;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2};
use num_complex::Complex;

use crate::{Problem, expect};

/// `P` complex states over `H` channels: `s'(t) = Λ s(t) + B u(t)`, `y = 2 Re(C s)`.
#[derive(Debug, Clone)]
pub struct S5 {
    /// `Λ`, `[P]`.
    pub eigenvalues: Array1<Complex<f64>>,
    /// `B`, `[P, H]`.
    pub b: Array2<Complex<f64>>,
    /// `C`, `[H, P]`.
    pub c: Array2<Complex<f64>>,
}

impl S5 {
    /// Makes the problem, with one row for each state. `signals` has the shape `[H, seq_len]`;
    /// `steps`, `[seq_len]`, is the time up to each sample, during which its signals are held.
    ///
    /// # Errors
    ///
    /// Returns an error if the shapes do not match.
    // ANCHOR: s5
    pub fn problem(
        &self,
        signals: ArrayView2<f64>,
        steps: ArrayView1<f64>,
    ) -> Result<Problem<Complex<f64>>, Error> {
        self.check(signals, steps)?;
        let shape = (self.eigenvalues.len(), steps.len());
        let coeffs = Array2::from_shape_fn(shape, |(p, l)| (self.eigenvalues[p] * steps[l]).exp());
        let mut inputs = self.b.dot(&signals.mapv(Complex::from));
        for ((p, l), input) in inputs.indexed_iter_mut() {
            *input = *input * (coeffs[[p, l]] - 1.0) / self.eigenvalues[p];
        }
        Ok(Problem::new(inputs, coeffs))
    }
    // ANCHOR_END: s5

    fn check(&self, signals: ArrayView2<f64>, steps: ArrayView1<f64>) -> Result<(), Error> {
        let (states, channels) = (self.eigenvalues.len(), signals.nrows());
        expect("s5", ("eigenvalues by signals", &[states, channels]), ("B", &self.b))?;
        expect("s5", ("signals by eigenvalues", &[channels, states]), ("C", &self.c))?;
        expect("s5", ("signals' columns", &[signals.ncols()]), ("steps", &steps))
    }

    /// Computes the output, `[H, seq_len]`.
    pub fn read(&self, states: ArrayView2<Complex<f64>>) -> Array2<f64> {
        self.c.dot(&states).mapv(|y| 2.0 * y.re)
    }

    /// Computes the states from time stamps, by the solution of the differential equation: the sum
    /// of the remainders of all held inputs. It forms no product of coefficients.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`S5::problem`].
    pub fn direct(
        &self,
        signals: ArrayView2<f64>,
        steps: ArrayView1<f64>,
    ) -> Result<Array2<Complex<f64>>, Error> {
        self.check(signals, steps)?;
        let times: Vec<f64> = (0..steps.len()).map(|l| steps.iter().take(l + 1).sum()).collect();
        let drive = self.b.dot(&signals.mapv(Complex::from));
        Ok(Array2::from_shape_fn(drive.dim(), |(p, l)| {
            let eigenvalue = self.eigenvalues[p];
            let since = |k: usize| {
                let (ended, began) = (times[l] - times[k], times[l] - times[k] + steps[k]);
                ((eigenvalue * began).exp() - (eigenvalue * ended).exp()) / eigenvalue
            };
            (0..=l).map(|k| since(k) * drive[[p, k]]).sum()
        }))
    }
}
