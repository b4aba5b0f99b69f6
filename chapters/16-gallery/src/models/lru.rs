//! LRU: the linear recurrent unit (Orvieto et al. 2023).

use linrec::Error;
use ndarray::{Array1, Array2, ArrayView2};
use num_complex::Complex;

use crate::{Problem, expect};

/// `N` complex states over `H` channels, with coefficients that cannot leave the unit circle.
#[derive(Debug, Clone)]
pub struct Lru {
    /// `ν`, `[N]`: the coefficient's modulus is `exp(−exp(ν))`.
    pub nu: Array1<f64>,
    /// `θ`, `[N]`: the coefficient's angle is `exp(θ)`.
    pub theta: Array1<f64>,
    /// `B`, `[N, H]`.
    pub b: Array2<Complex<f64>>,
}

impl Lru {
    // ANCHOR: lru
    /// Returns the coefficients `λ`, one for each state.
    pub fn coefficients(&self) -> Array1<Complex<f64>> {
        let of = |n: usize| Complex::new(-self.nu[n].exp(), self.theta[n].exp()).exp();
        Array1::from_shape_fn(self.nu.len(), of)
    }

    /// Returns `γ = √(1 − |λ|²)`, which keeps the states' mean square equal to the inputs'.
    pub fn scales(&self) -> Array1<f64> {
        self.nu.mapv(|nu| (-f64::exp_m1(-2.0 * nu.exp())).sqrt())
    }

    /// Makes the problem, with one row for each state; `signals` has the shape `[H, seq_len]`.
    ///
    /// # Errors
    ///
    /// Returns an error if the shapes do not match.
    pub fn problem(&self, signals: ArrayView2<f64>) -> Result<Problem<Complex<f64>>, Error> {
        expect("lru", ("nu", self.nu.shape()), ("theta", &self.theta))?;
        let shape = [self.nu.len(), signals.nrows()];
        expect("lru", ("nu by signals", &shape), ("B", &self.b))?;
        let (coefficients, scales) = (self.coefficients(), self.scales());
        let mut inputs = self.b.dot(&signals.mapv(Complex::from));
        inputs.indexed_iter_mut().for_each(|((n, _), input)| *input *= scales[n]);
        let coeffs = Array2::from_shape_fn(inputs.dim(), |(n, _)| coefficients[n]);
        Ok(Problem::new(inputs, coeffs))
    }
    // ANCHOR_END: lru

    /// Computes the states as a sum over the past, with each `λ^(l−k)` as one exponential.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Lru::problem`].
    pub fn direct(&self, signals: ArrayView2<f64>) -> Result<Array2<Complex<f64>>, Error> {
        let inputs = self.problem(signals)?.inputs;
        Ok(Array2::from_shape_fn(inputs.dim(), |(n, l)| {
            let power = |steps: usize| {
                let steps = steps as f64;
                Complex::new(-self.nu[n].exp() * steps, self.theta[n].exp() * steps).exp()
            };
            (0..=l).map(|k| power(l - k) * inputs[[n, k]]).sum()
        }))
    }
}

/// Spreads coefficients over a ring: `|λ|²` and the angle at regular places within limits.
///
/// The paper draws them at random; regular places make a better picture.
pub fn ring(count: usize, (low, high): (f64, f64), max_angle: f64) -> (Array1<f64>, Array1<f64>) {
    let share = |n: usize, factor: f64| ((n as f64 + 0.5) * factor).fract();
    let nu = |n: usize| {
        let square = low * low + (high * high - low * low) * share(n, 1.0 / count as f64);
        (-0.5 * square.ln()).ln()
    };
    // Multiples of the golden ratio are spread over all angles without a pattern.
    let theta = |n: usize| (max_angle * share(n, 0.618_033_988_749_895)).ln();
    (Array1::from_shape_fn(count, nu), Array1::from_shape_fn(count, theta))
}
