//! Training a block: the loss, its gradient, and the steps down.

use ch04_gradient::model::Adam;
use linrec::Error;
use linrec::cpu::Cpu;
use ndarray::{Array1, Array2};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::Real;
use crate::block::{Block, Config, Weights, engine};
use crate::task::{Batch, Task};

/// What a block's answers to a batch are worth.
#[derive(Debug, Clone)]
pub struct Score<T> {
    /// The mean over all questions of minus the logarithm of the probability given to the right answer.
    pub loss: f64,
    /// The share of questions whose right answer has the largest logit.
    pub accuracy: f64,
    /// The gradient of the loss by the logits.
    pub d_logits: Array2<T>,
}

/// Judges logits `[answers, num_seqs · len]`, of which only the last positions of each sequence count.
// ANCHOR: score
pub fn score<T: Real>(logits: &Array2<T>, batch: &Batch) -> Score<T> {
    let (len, asked) = (batch.tokens.ncols(), batch.answers.ncols());
    let count = batch.answers.len().max(1) as f64;
    let mut score = Score { loss: 0.0, accuracy: 0.0, d_logits: Array2::zeros(logits.dim()) };
    for ((seq, number), &answer) in batch.answers.indexed_iter() {
        let position = seq * len + len - asked + number;
        let logits: Array1<f64> = logits.column(position).mapv(|logit| logit.widen());
        let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let powers = logits.mapv(|logit| (logit - largest).exp());
        let probabilities = &powers / powers.sum();
        score.loss -= probabilities[answer].ln() / count;
        if logits[answer] == largest {
            score.accuracy += 1.0 / count;
        }
        for (symbol, probability) in probabilities.iter().enumerate() {
            let target = if symbol == answer { 1.0 } else { 0.0 };
            score.d_logits[[symbol, position]] = T::narrow((probability - target) / count);
        }
    }
    score
}
// ANCHOR_END: score

/// The loss of a block and its gradient by all weights.
///
/// # Errors
///
/// Those of the scan.
// ANCHOR: gradient
pub fn loss_and_gradient<T: Real>(
    cpu: &Cpu,
    block: &Block<T>,
    batch: &Batch,
) -> Result<(f64, Weights<T>), Error> {
    let inside = block.forward(cpu, batch.tokens.view())?;
    let score = score(&inside.logits, batch);
    let gradient = block.backward(cpu, batch.tokens.view(), &inside, score.d_logits.view())?;
    Ok((score.loss, gradient))
}
// ANCHOR_END: gradient

/// How a block is trained.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// What it is to learn.
    pub task: Task,
    /// Its sizes.
    pub config: Config,
    /// Sequences per step.
    pub batch: usize,
    /// Steps.
    pub steps: usize,
    /// The learning rate.
    pub rate: f64,
    /// The held-out accuracy is taken after every so many steps.
    pub every: usize,
    /// Training ends when the held-out accuracy reaches this.
    pub enough: f64,
}

/// A block after training, and how it went.
#[derive(Debug, Clone)]
pub struct Trained {
    /// The block.
    pub block: Block<f32>,
    /// Step and held-out accuracy.
    pub curve: Vec<(f64, f64)>,
    /// The accuracy at the end, on sequences that were used for nothing else.
    pub accuracy: f64,
}

impl Plan {
    /// Trains a block on fresh sequences in every step; all randomness comes from `seed`.
    ///
    /// `watch` is called after every step with its number.
    ///
    /// # Errors
    ///
    /// Those of the scan.
    pub fn train(&self, seed: u64, mut watch: impl FnMut(usize)) -> Result<Trained, Error> {
        let cpu = engine();
        let mut rng = StdRng::seed_from_u64(seed);
        let held_out = self.task.draw(&mut rng, 256);
        let last = self.task.draw(&mut rng, 1024);
        let mut weights = Weights::initial(&self.config, seed).flat();
        let mut adam = Adam::new(weights.len(), self.rate);
        let mut curve = Vec::new();
        let block = |weights: &Array1<f64>| {
            Block::<f32>::new(self.config, Weights::from_flat(&self.config, weights.view()))
        };
        for step in 0..=self.steps {
            let current = block(&weights);
            if step % self.every == 0 {
                let accuracy = accuracy(&cpu, &current, &held_out)?;
                curve.push((step as f64, accuracy));
                if accuracy >= self.enough {
                    break;
                }
            }
            if step == self.steps {
                break;
            }
            let batch = self.task.draw(&mut rng, self.batch);
            let (_, gradient) = loss_and_gradient(&cpu, &current, &batch)?;
            adam.step(&mut weights, &gradient.flat());
            watch(step + 1);
        }
        let block = block(&weights);
        let accuracy = accuracy(&cpu, &block, &last)?;
        Ok(Trained { block, curve, accuracy })
    }
}

/// The share of right answers.
///
/// # Errors
///
/// Those of the scan.
pub fn accuracy<T: Real>(cpu: &Cpu, block: &Block<T>, batch: &Batch) -> Result<f64, Error> {
    Ok(score(&block.forward(cpu, batch.tokens.view())?.logits, batch).accuracy)
}
