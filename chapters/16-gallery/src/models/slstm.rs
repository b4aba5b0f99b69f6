//! The scalar memory of xLSTM, with exponential gates (Beck et al. 2024), for given gates.
//!
//! The gates of an sLSTM also depend on the last output. Then they are not known beforehand, and
//! the recurrence is not linear. This module is the memory without that feedback.

use linrec::Error;
use ndarray::{Array2, ArrayView2, Axis, Zip, concatenate};

use super::log_sigmoid;
use crate::{Problem, expect};

/// The inputs of a memory, all `[channels, seq_len]`.
#[derive(Debug, Clone, Copy)]
pub struct Gates<'a> {
    /// `z`: the values to write.
    pub values: ArrayView2<'a, f64>,
    /// `ĩ`: the logarithm of the strength of the write.
    pub input: ArrayView2<'a, f64>,
    /// `f̃`: the share `σ(f̃)` of the past stays.
    pub forget: ArrayView2<'a, f64>,
}

impl Gates<'_> {
    fn check(&self) -> Result<(), Error> {
        expect("slstm", ("values", self.values.shape()), ("input gate", &self.input))?;
        expect("slstm", ("values", self.values.shape()), ("forget gate", &self.forget))
    }

    /// Computes the running maximum `m_l = max(m_{l-1} + ln f_l, ĩ_l)`: the same recurrence with
    /// `max` in place of the addition and an addition in place of the product.
    // ANCHOR: stabiliser
    pub fn stabiliser(&self) -> Array2<f64> {
        let mut running = self.input.to_owned();
        for (mut row, forget) in running.rows_mut().into_iter().zip(self.forget.rows()) {
            for l in 1..row.len() {
                row[l] = row[l].max(row[l - 1] + log_sigmoid(forget[l]));
            }
        }
        running
    }
    // ANCHOR_END: stabiliser

    /// Makes the problem, with two rows for each channel: first the memories of all channels, then
    /// their normalisers.
    ///
    /// # Errors
    ///
    /// Returns an error if the shapes do not match.
    // ANCHOR: slstm
    pub fn problem(&self) -> Result<Problem<f64>, Error> {
        self.check()?;
        let running = self.stabiliser();
        let strength = (&self.input - &running).mapv_into(f64::exp);
        let keep = Array2::from_shape_fn(running.dim(), |at @ (channel, l)| match l {
            0 => 0.0, // there is nothing to keep
            _ => (log_sigmoid(self.forget[at]) + running[[channel, l - 1]] - running[at]).exp(),
        });
        let both = |memory: &Array2<f64>, normaliser: &Array2<f64>| {
            concatenate(Axis(0), &[memory.view(), normaliser.view()])
        };
        let inputs = both(&(&strength * &self.values), &strength);
        match (inputs, both(&keep, &keep)) {
            (Ok(inputs), Ok(coeffs)) => Ok(Problem::new(inputs, coeffs)),
            _ => Err(Error::OutOfMemory { operation: "slstm", bytes: 16 * keep.len() }),
        }
    }

    /// Computes the output before its own gate: memory over normaliser, `[channels, seq_len]`.
    pub fn read(&self, states: ArrayView2<f64>) -> Array2<f64> {
        let (memory, normaliser) = states.split_at(Axis(0), states.nrows() / 2);
        &memory / &normaliser
    }
    // ANCHOR_END: slstm

    /// Computes the output by its meaning: an average of all values so far with the weights
    /// `exp(ĩ_k + ln f_{k+1} + … + ln f_l)`, after dividing by the largest.
    pub fn direct(&self) -> Array2<f64> {
        Array2::from_shape_fn(self.values.dim(), |(channel, l)| {
            let mut faded = 0.0;
            let mut exponents: Vec<f64> = (0..=l)
                .rev()
                .map(|k| {
                    let exponent = self.input[[channel, k]] + faded;
                    faded += log_sigmoid(self.forget[[channel, k]]);
                    exponent
                })
                .collect();
            exponents.reverse();
            let largest = exponents.iter().fold(f64::NEG_INFINITY, |a, &b| a.max(b));
            let weights: Vec<f64> = exponents.iter().map(|e| (e - largest).exp()).collect();
            let values = self.values.row(channel);
            let sum: f64 = weights.iter().zip(values).map(|(w, z)| w * z).sum();
            sum / weights.iter().sum::<f64>()
        })
    }

    /// Makes the problem without the stabiliser, with `exp` of the input gate.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Gates::problem`].
    pub fn unstabilised(&self) -> Result<Problem<f64>, Error> {
        let mut problem = self.problem()?;
        let channels = self.values.nrows();
        let (mut memory, mut normaliser) = problem.inputs.view_mut().split_at(Axis(0), channels);
        let strength = self.input.mapv(f64::exp);
        normaliser.assign(&strength);
        Zip::from(&mut memory).and(&strength).and(self.values).for_each(|x, s, z| *x = s * z);
        let keep = self.forget.mapv(|f| log_sigmoid(f).exp());
        let (mut first, mut second) = problem.coeffs.view_mut().split_at(Axis(0), channels);
        first.assign(&keep);
        second.assign(&keep);
        Ok(problem)
    }
}
