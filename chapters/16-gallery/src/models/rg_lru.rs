//! RG-LRU: the gated recurrence of Hawk and Griffin (De, Smith, Fernando et al. 2024).

use linrec::{Error, Options};
use ndarray::{Array1, Array2, ArrayView2, Zip};

use super::{log_sigmoid, sigmoid};
use crate::{Problem, expect};

/// The factor by which a fully open gate multiplies the logarithm of the decay: the paper's `c`.
pub const SHARPNESS: f64 = 8.0;

/// `channels` real states, each of which decides at every step how much it forgets.
#[derive(Debug, Clone)]
pub struct RgLru {
    /// `Λ`, `[channels]`: `σ(Λ)` is the decay, and the gate is its exponent.
    pub decay: Array1<f64>,
}

impl RgLru {
    /// Makes the problem, with one row for each channel. All arrays have the shape
    /// `[channels, seq_len]`: the signals, and the arguments of the sigmoids of the recurrence gate
    /// and of the input gate. The coefficients are logarithms.
    ///
    /// # Errors
    ///
    /// Returns an error if the shapes do not match.
    // ANCHOR: rg_lru
    pub fn problem(
        &self,
        signals: ArrayView2<f64>,
        recurrence_gate: ArrayView2<f64>,
        input_gate: ArrayView2<f64>,
    ) -> Result<Problem<f64>, Error> {
        self.check(signals, recurrence_gate, input_gate)?;
        let coeffs = Array2::from_shape_fn(signals.dim(), |(channel, l)| {
            SHARPNESS * sigmoid(recurrence_gate[[channel, l]]) * log_sigmoid(self.decay[channel])
        });
        let mut inputs = signals.to_owned();
        Zip::from(&mut inputs).and(&coeffs).and(input_gate).for_each(|input, log_coeff, gate| {
            // √(1 − c²), without cancellation for c close to one.
            *input *= sigmoid(*gate) * (-f64::exp_m1(2.0 * log_coeff)).sqrt();
        });
        Ok(Problem { inputs, coeffs, options: Options { log_coeffs: true, ..Options::default() } })
    }
    // ANCHOR_END: rg_lru

    fn check(
        &self,
        signals: ArrayView2<f64>,
        recurrence_gate: ArrayView2<f64>,
        input_gate: ArrayView2<f64>,
    ) -> Result<(), Error> {
        expect("rg_lru", ("signals' rows", &[signals.nrows()]), ("decay", &self.decay))?;
        expect("rg_lru", ("signals", signals.shape()), ("recurrence gate", &recurrence_gate))?;
        expect("rg_lru", ("signals", signals.shape()), ("input gate", &input_gate))
    }

    /// Computes the states step by step, as in the paper, by the power `a = σ(Λ)^(8r)`.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`RgLru::problem`].
    pub fn direct(
        &self,
        signals: ArrayView2<f64>,
        recurrence_gate: ArrayView2<f64>,
        input_gate: ArrayView2<f64>,
    ) -> Result<Array2<f64>, Error> {
        self.check(signals, recurrence_gate, input_gate)?;
        let mut outputs = Array2::zeros(signals.dim());
        for channel in 0..signals.nrows() {
            let mut state = 0.0;
            for l in 0..signals.ncols() {
                let at = [channel, l];
                let a = sigmoid(self.decay[channel]).powf(SHARPNESS * sigmoid(recurrence_gate[at]));
                state = a * state + (1.0 - a * a).sqrt() * (sigmoid(input_gate[at]) * signals[at]);
                outputs[at] = state;
            }
        }
        Ok(outputs)
    }
}

/// Returns `Λ` for a decay `σ(Λ)^8`, which the paper draws between 0.9 and 0.999.
pub fn decay_from(open: f64) -> f64 {
    let log = open.ln() / SHARPNESS;
    log - (-f64::exp_m1(log)).ln()
}
