//! Filters with an infinite impulse response: sound, control, time series.

use linrec::Error;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2};
use num_complex::Complex;

use crate::Problem;

/// `y_l = a1 y_{l-1} + a2 y_{l-2} + u_l`: a filter that remembers its last two outputs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SecondOrder {
    /// The weight of the last output.
    pub a1: f64,
    /// The weight of the output before the last.
    pub a2: f64,
}

// ANCHOR: poles
impl SecondOrder {
    /// Returns the two roots of `z² = a1 z + a2`.
    pub fn poles(&self) -> [Complex<f64>; 2] {
        let root = Complex::new(self.a1 * self.a1 / 4.0 + self.a2, 0.0).sqrt();
        [self.a1 / 2.0 + root, self.a1 / 2.0 - root]
    }

    /// Makes two recurrences of the first order over one signal, one for each pole.
    pub fn problem(&self, signal: ArrayView1<f64>) -> Problem<Complex<f64>> {
        let shape = (2, signal.len());
        let inputs = Array2::from_shape_fn(shape, |(_, l)| Complex::from(signal[l]));
        let poles = self.poles();
        Problem::new(inputs, Array2::from_shape_fn(shape, |(k, _)| poles[k]))
    }

    /// Computes the filter's output, a weighted sum of the two states.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Unsupported`] if the poles coincide: partial fractions need two different
    /// poles.
    pub fn read(&self, states: ArrayView2<Complex<f64>>) -> Result<Array1<f64>, Error> {
        let [p, q] = self.poles();
        if p == q {
            let what = format!("a double pole, here at {p}; filter twice instead");
            return Err(Error::Unsupported { engine: "partial fractions".into(), what });
        }
        let weights = [p / (p - q), q / (q - p)];
        Ok(Array1::from_shape_fn(states.ncols(), |l| {
            (weights[0] * states[[0, l]] + weights[1] * states[[1, l]]).re
        }))
    }
}
// ANCHOR_END: poles

impl SecondOrder {
    /// Filters a signal.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`SecondOrder::read`].
    pub fn filter(&self, signal: ArrayView1<f64>) -> Result<Array1<f64>, Error> {
        self.read(self.problem(signal).solve()?.view())
    }

    /// Makes a filter with this period that keeps `radius` of its amplitude at each step.
    pub fn swinging(period: f64, radius: f64) -> Self {
        let angle = std::f64::consts::TAU / period;
        SecondOrder { a1: 2.0 * radius * angle.cos(), a2: -radius * radius }
    }

    /// Returns the response to a single 1, by the formula with sines: `r^l sin((l + 1) θ) / sin θ`
    /// for poles `r e^{±iθ}`.
    pub fn impulse_response(&self, len: usize) -> Array1<f64> {
        let (radius, angle) = self.poles()[0].to_polar();
        Array1::from_shape_fn(len, |l| {
            radius.powi(l as i32) * ((l + 1) as f64 * angle).sin() / angle.sin()
        })
    }

    /// Filters by the definition: a loop that looks back twice.
    pub fn direct(&self, signal: ArrayView1<f64>) -> Array1<f64> {
        let mut outputs = Array1::zeros(signal.len());
        for l in 0..signal.len() {
            let back = |steps: usize| if l >= steps { outputs[l - steps] } else { 0.0 };
            outputs[l] = self.a1 * back(1) + self.a2 * back(2) + signal[l];
        }
        outputs
    }
}

/// Makes a bank of resonators, whose rows swing up where the signal has their period.
///
/// `memory` is the number of steps over which a row averages. The inputs are scaled so that a
/// cosine of amplitude 1 with the row's period gives a state of modulus near 1.
// ANCHOR: bank
pub fn bank(
    signal: ArrayView1<f64>,
    periods: ArrayView1<f64>,
    memory: f64,
) -> Problem<Complex<f64>> {
    let shape = (periods.len(), signal.len());
    let keep = 1.0 - 1.0 / memory;
    let inputs =
        Array2::from_shape_fn(shape, |(_, l)| Complex::from(2.0 * (1.0 - keep) * signal[l]));
    let coeffs = Array2::from_shape_fn(shape, |(row, _)| {
        Complex::from_polar(keep, std::f64::consts::TAU / periods[row])
    });
    Problem::new(inputs, coeffs)
}
// ANCHOR_END: bank

/// Computes a state of the bank by definition: the sum of the past signal, turned and faded.
pub fn bank_direct(signal: ArrayView1<f64>, period: f64, memory: f64, l: usize) -> Complex<f64> {
    let keep = 1.0 - 1.0 / memory;
    let back = |k: usize| {
        let steps = (l - k) as f64;
        let (size, angle) = (keep.powf(steps), std::f64::consts::TAU * steps / period);
        Complex::from_polar(2.0 * (1.0 - keep) * signal[k] * size, angle)
    };
    (0..=l).map(back).sum()
}
