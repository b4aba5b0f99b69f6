//! A gated memory, its gradient written out by hand, and the optimiser that trains it.

use linrec::{Engine, Error, Options};
use ndarray::{Array1, Array2, ArrayView2};

use crate::chain::{sigmoid, sigmoid_slope};
use crate::task::Batch;

/// A feature that a gate may depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// The mark that asks to keep the number.
    Keep,
    /// The mark without a meaning.
    Decoy,
    /// The number itself.
    Value,
    /// The constant 1.
    Bias,
}

impl Feature {
    /// Returns the feature at every position, `[num_seqs, seq_len]`.
    fn of(self, batch: &Batch) -> Array2<f64> {
        match self {
            Feature::Keep => batch.keep.clone(),
            Feature::Decoy => batch.decoy.clone(),
            Feature::Value => batch.values.clone(),
            Feature::Bias => Array2::ones(batch.values.dim()),
        }
    }
}

/// A memory of one number with a gate: `y_l = (1 - g_l) y_{l-1} + g_l v_l`.
///
/// The gate is `g = σ(Σ w_f φ_f)` over its features `φ_f`. That is the recurrence with the
/// coefficients `1 - g` and the inputs `g v`.
#[derive(Debug, Clone)]
pub struct Memory {
    /// The features that the gate depends on.
    pub features: &'static [Feature],
    /// One weight per feature.
    pub weights: Array1<f64>,
}

impl Memory {
    /// Makes a gate that depends on every feature. Its weights are zero, so it begins half open.
    pub fn selective() -> Self {
        Self::with(&[Feature::Keep, Feature::Decoy, Feature::Value, Feature::Bias])
    }

    /// Makes a gate that depends on no feature: it has the same coefficient at every position, a
    /// moving average.
    pub fn fixed() -> Self {
        Self::with(&[Feature::Bias])
    }

    fn with(features: &'static [Feature]) -> Self {
        Memory { features, weights: Array1::zeros(features.len()) }
    }

    /// Computes the gates, `[num_seqs, seq_len]`.
    // ANCHOR: forward
    pub fn gates(&self, batch: &Batch) -> Array2<f64> {
        let mut sums = Array2::zeros(batch.values.dim());
        for (feature, &weight) in self.features.iter().zip(&self.weights) {
            sums.scaled_add(weight, &feature.of(batch));
        }
        sums.mapv_into(sigmoid)
    }

    /// Computes the outputs for these gates, `[num_seqs, seq_len]`.
    ///
    /// # Errors
    ///
    /// Returns the engine's error.
    pub fn outputs(
        &self,
        engine: &dyn Engine<f64>,
        batch: &Batch,
        gates: ArrayView2<f64>,
    ) -> Result<Array2<f64>, Error> {
        let (inputs, coeffs) = (&gates * &batch.values, 1.0 - &gates);
        Ok(engine.forward(inputs.view(), coeffs.view(), &Options::default())?.outputs)
    }
    // ANCHOR_END: forward

    /// Computes the loss, the mean square of outputs minus targets, and its gradient with respect
    /// to the weights.
    ///
    /// # Errors
    ///
    /// Returns the engine's error.
    // ANCHOR: gradient
    pub fn loss_and_gradient(
        &self,
        engine: &dyn Engine<f64>,
        batch: &Batch,
    ) -> Result<(f64, Array1<f64>), Error> {
        let gates = self.gates(batch);
        let outputs = self.outputs(engine, batch, gates.view())?;
        let errors = &outputs - &batch.targets;
        let count = errors.len() as f64;
        let loss = errors.mapv(|e| e * e).sum() / count;

        let d_outputs = errors * (2.0 / count);
        let coeffs = 1.0 - &gates;
        let d = engine.backward(
            d_outputs.view(),
            coeffs.view(),
            outputs.view(),
            &Options::default(),
        )?;
        // x = g v and c = 1 - g: both gradients reach the gate, and then pass the sigmoid.
        let d_gates = d.d_inputs * &batch.values - d.d_coeffs;
        let d_sums = d_gates * gates.mapv(sigmoid_slope);
        // Every position shares the weights, so their gradients are added.
        let gradient = self.features.iter().map(|feature| (&d_sums * &feature.of(batch)).sum());
        Ok((loss, gradient.collect()))
    }
    // ANCHOR_END: gradient
}

/// The optimiser Adam (Kingma and Ba, 2015): steps along the gradient's running mean, divided by
/// the root of its running square. Both running means are linear recurrences with one shared
/// coefficient.
// ANCHOR: adam
#[derive(Debug, Clone)]
pub struct Adam {
    rate: f64,
    mean: Array1<f64>,
    square: Array1<f64>,
    steps: i32,
}

impl Adam {
    /// Makes an optimiser for `num_weights` weights with this learning rate.
    pub fn new(num_weights: usize, rate: f64) -> Self {
        Adam {
            rate,
            mean: Array1::zeros(num_weights),
            square: Array1::zeros(num_weights),
            steps: 0,
        }
    }

    /// Changes the weights by one step against the gradient.
    pub fn step(&mut self, weights: &mut Array1<f64>, gradient: &Array1<f64>) {
        const MEAN: f64 = 0.9;
        const SQUARE: f64 = 0.99;
        self.steps += 1;
        // Corrects for running means that started from zero.
        let (of_mean, of_square) = (1.0 - MEAN.powi(self.steps), 1.0 - SQUARE.powi(self.steps));
        for (i, &slope) in gradient.iter().enumerate().take(weights.len().min(self.mean.len())) {
            self.mean[i] = MEAN * self.mean[i] + (1.0 - MEAN) * slope;
            self.square[i] = SQUARE * self.square[i] + (1.0 - SQUARE) * slope * slope;
            let root = (self.square[i] / of_square).sqrt();
            weights[i] -= self.rate * (self.mean[i] / of_mean) / (root + 1e-8);
        }
    }
}
// ANCHOR_END: adam

impl Adam {
    /// Changes the learning rate from the next step on.
    pub fn set_rate(&mut self, rate: f64) {
        self.rate = rate;
    }
}
