//! The training of a block: the loss, its gradient, and the steps of descent.

use ch04_gradient::model::Adam;
use linrec::Error;
use ndarray::{Array1, Array2};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::Real;
use crate::block::{Block, Config, Scanner, Weights, engine};
use crate::task::{Batch, Task};

/// The score of a block's answers to a batch.
#[derive(Debug, Clone)]
pub struct Score<T> {
    /// The mean over all questions of minus the logarithm of the right answer's probability.
    pub loss: f64,
    /// For each question, the share of sequences in which the right answer has the largest logit.
    pub right: Vec<f64>,
    /// The gradient of the loss with respect to the logits.
    pub d_logits: Array2<T>,
}

/// Scores logits `[answers, num_seqs · len]`; only the last positions of each sequence count.
// ANCHOR: score
pub fn score<T: Real>(logits: &Array2<T>, batch: &Batch) -> Score<T> {
    let (len, asked) = (batch.tokens.ncols(), batch.answers.ncols());
    let count = batch.answers.len().max(1) as f64;
    let d_logits = Array2::zeros(logits.dim());
    let mut score = Score { loss: 0.0, right: vec![0.0; asked], d_logits };
    for ((seq, number), &answer) in batch.answers.indexed_iter() {
        let position = seq * len + len - asked + number;
        let logits: Array1<f64> = logits.column(position).mapv(|logit| logit.widen());
        let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let powers = logits.mapv(|logit| (logit - largest).exp());
        let probabilities = &powers / powers.sum();
        score.loss -= probabilities[answer].ln() / count;
        if logits[answer] == largest {
            score.right[number] += 1.0;
        }
        for (symbol, probability) in probabilities.iter().enumerate() {
            let target = if symbol == answer { 1.0 } else { 0.0 };
            score.d_logits[[symbol, position]] = T::narrow((probability - target) / count);
        }
    }
    let num_seqs = batch.answers.nrows().max(1) as f64;
    score.right.iter_mut().for_each(|right| *right /= num_seqs);
    score
}
// ANCHOR_END: score

/// Computes the loss of a block and its gradient with respect to all weights.
///
/// # Errors
///
/// Returns an error if the scan fails.
// ANCHOR: gradient
pub fn loss_and_gradient<T: Real>(
    scanner: &impl Scanner<T>,
    block: &Block<T>,
    batch: &Batch,
) -> Result<(f64, Weights<T>), Error> {
    let inside = block.forward(scanner, batch.tokens.view())?;
    let score = score(&inside.logits, batch);
    let gradient = block.backward(scanner, batch.tokens.view(), &inside, score.d_logits.view())?;
    Ok((score.loss, gradient))
}
// ANCHOR_END: gradient

/// The plan of a block's training.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// The task to learn.
    pub task: Task,
    /// The sizes of the block.
    pub config: Config,
    /// The number of sequences per step.
    pub batch: usize,
    /// The number of steps.
    pub steps: usize,
    /// The learning rate.
    pub rate: f64,
    /// The number of steps between two measurements of the accuracy.
    pub every: usize,
    /// The number of test sequences at the end; tests on the way use a quarter of them.
    pub tested: usize,
}

impl Plan {
    /// Returns the plan of this chapter; the two kinds of block differ only in `is_selective`.
    pub fn of_the_chapter(is_selective: bool) -> Plan {
        let task = Task { symbols: 8, asked: 3, most: 12, positions: 32 };
        let config = Config {
            tokens: task.tokens(),
            answers: task.symbols,
            width: 16,
            channels: 32,
            states: 8,
            rank: 2,
            reach: 4,
            is_selective,
        };
        Plan { task, config, batch: 16, steps: 1600, rate: 0.015, every: 50, tested: 1024 }
    }
}

/// A block after training, and its learning curve.
#[derive(Debug, Clone)]
pub struct Trained {
    /// The block.
    pub block: Block<f32>,
    /// Steps, and the accuracy after them on sequences that training does not use.
    pub curve: Vec<(f64, f64)>,
    /// The final share of right answers to each question, on sequences that nothing else used.
    pub right: Vec<f64>,
}

/// The factor by which the average of the weights decays in each step.
const KEPT: f64 = 0.99;

impl Plan {
    /// Trains a block on fresh sequences in every step; all randomness comes from `seed`.
    ///
    /// The tests use a moving average of the weights, which settles while the weights themselves
    /// still fluctuate: `average = average · 0.99 + weights · 0.01`, a linear recurrence.
    ///
    /// `watch` is called after every step.
    ///
    /// # Errors
    ///
    /// Returns an error if the scan fails.
    pub fn train(&self, seed: u64, watch: &dyn Fn()) -> Result<Trained, Error> {
        self.train_by(&engine(), seed, watch)
    }

    /// Does the same as [`Plan::train`] with another scanner.
    ///
    /// # Errors
    ///
    /// Returns an error if the scan fails.
    // ANCHOR: train
    pub fn train_by(
        &self,
        scanner: &impl Scanner<f32>,
        seed: u64,
        watch: &dyn Fn(),
    ) -> Result<Trained, Error> {
        let config = self.config;
        let mut rng = StdRng::seed_from_u64(seed);
        let held_out = self.task.draw(&mut rng, self.tested / 4);
        let unseen = self.task.draw(&mut rng, self.tested);
        let mut weights = Weights::initial(&config, seed).flat();
        let mut average = weights.clone();
        let mut adam = Adam::new(weights.len(), self.rate);
        let mut curve = Vec::new();
        let block = |flat: &Array1<f64>| {
            Block::<f32>::new(config, Weights::from_flat(&config, flat.view()))
        };
        for step in 0..=self.steps {
            if step % self.every == 0 {
                let right = right_answers(scanner, &block(&average), &held_out)?;
                curve.push((step as f64, mean(&right)));
            }
            if step < self.steps {
                let batch = self.task.draw(&mut rng, self.batch);
                let (_, gradient) = loss_and_gradient(scanner, &block(&weights), &batch)?;
                adam.step(&mut weights, &gradient.flat());
                average = average * KEPT + &weights * (1.0 - KEPT);
                watch();
            }
        }
        let block = block(&average);
        let right = right_answers(scanner, &block, &unseen)?;
        Ok(Trained { block, curve, right })
    }
    // ANCHOR_END: train
}

impl Trained {
    /// Returns the final share of right answers, over all questions.
    pub fn accuracy(&self) -> f64 {
        mean(&self.right)
    }
}

/// Returns the share of right answers to each question.
///
/// # Errors
///
/// Returns an error if the scan fails.
pub fn right_answers<T: Real>(
    scanner: &impl Scanner<T>,
    block: &Block<T>,
    batch: &Batch,
) -> Result<Vec<f64>, Error> {
    Ok(score(&block.forward(scanner, batch.tokens.view())?.logits, batch).right)
}

/// Returns the mean of some shares.
pub fn mean(shares: &[f64]) -> f64 {
    shares.iter().sum::<f64>() / shares.len().max(1) as f64
}
