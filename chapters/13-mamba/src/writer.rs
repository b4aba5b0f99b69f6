//! A block that writes: it learns which character comes next in a text, and then draws one
//! character after the other.

use ch04_gradient::model::Adam;
use linrec::Error;
use ndarray::{Array1, Array2};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::Real;
use crate::block::{Block, Config, Memory, Scanner, Weights};
use crate::task::Batch;
use crate::training::{loss_and_gradient, score};

/// "The Star" by Jane Taylor (1806), in lower case and without punctuation.
pub const TEXT: &str = "twinkle twinkle little star\nhow i wonder what you are\nup above the world so high\nlike a \
                        diamond in the sky\n\nwhen the blazing sun is gone\nwhen he nothing shines upon\nthen you show \
                        your little light\ntwinkle twinkle all the night\n\nthen the traveller in the dark\nthanks you \
                        for your tiny spark\nhe could not see which way to go\nif you did not twinkle so\n\n";

/// A text as numbers: each different character, in sorted order, is a token.
#[derive(Debug, Clone)]
pub struct Text {
    alphabet: Vec<char>,
    tokens: Vec<usize>,
}

impl Text {
    /// Splits a text into tokens.
    pub fn new(text: &str) -> Text {
        let mut alphabet: Vec<char> = text.chars().collect();
        alphabet.sort_unstable();
        alphabet.dedup();
        let place = |c| alphabet.partition_point(|&other| other < c);
        let tokens = text.chars().map(place).collect();
        Text { alphabet, tokens }
    }

    /// Returns the number of different characters.
    pub fn alphabet(&self) -> usize {
        self.alphabet.len()
    }

    /// Returns the characters of tokens; unknown tokens are left out.
    pub fn read(&self, tokens: &[usize]) -> String {
        tokens.iter().filter_map(|&token| self.alphabet.get(token)).collect()
    }

    /// Returns the token of a character, if the text has it.
    pub fn token(&self, character: char) -> Option<usize> {
        self.alphabet.binary_search(&character).ok()
    }

    /// Draws pieces of the text from random places, where the text continues at its beginning: the
    /// answer at each position is the next token.
    // ANCHOR: draw
    pub fn draw(&self, rng: &mut StdRng, num_seqs: usize, len: usize) -> Batch {
        let size = self.tokens.len();
        // An empty text has only empty pieces.
        let len = if size == 0 { 0 } else { len };
        let begins: Vec<usize> = (0..num_seqs).map(|_| rng.random_range(0..size.max(1))).collect();
        let from = |ahead: usize| {
            Array2::from_shape_fn((num_seqs, len), |(i, l)| {
                self.tokens[(begins[i] + l + ahead) % size]
            })
        };
        Batch { tokens: from(0), answers: from(1) }
    }
    // ANCHOR_END: draw
}

/// The plan of a block's lessons in writing.
#[derive(Debug, Clone, Copy)]
pub struct Lessons {
    /// The number of training steps.
    pub steps: usize,
    /// The number of pieces of the text in each step.
    pub batch: usize,
    /// The number of characters in a piece.
    pub len: usize,
    /// The learning rate.
    pub rate: f64,
}

impl Lessons {
    /// The lessons of this chapter.
    pub const OF_THE_CHAPTER: Lessons = Lessons { steps: 400, batch: 8, len: 48, rate: 0.02 };

    /// Teaches a block of this chapter's sizes; all randomness comes from `seed`. Also returns the
    /// mean loss over the last tenth of the steps, in bits per character.
    ///
    /// # Errors
    ///
    /// Returns an error if the scan fails.
    // ANCHOR: teach
    pub fn teach(
        &self,
        scanner: &impl Scanner<f32>,
        text: &Text,
        seed: u64,
    ) -> Result<(Block<f32>, f64), Error> {
        let config = Config {
            tokens: text.alphabet(),
            answers: text.alphabet(),
            width: 24,
            channels: 48,
            states: 8,
            rank: 2,
            reach: 4,
            is_selective: true,
        };
        let mut rng = StdRng::seed_from_u64(seed);
        let mut weights = Weights::initial(&config, seed).flat();
        let mut adam = Adam::new(weights.len(), self.rate);
        let block =
            |flat: &Array1<f64>| Block::new(config, Weights::from_flat(&config, flat.view()));
        let (mut bits, last) = (0.0, (self.steps / 10).max(1));
        for step in 0..self.steps {
            let batch = text.draw(&mut rng, self.batch, self.len);
            let (loss, gradient) = loss_and_gradient(scanner, &block(&weights), &batch)?;
            adam.step(&mut weights, &gradient.flat());
            if step + last >= self.steps {
                bits += loss / std::f64::consts::LN_2 / last as f64;
            }
        }
        Ok((block(&weights), bits))
    }
    // ANCHOR_END: teach
}

/// Writes with a block, one token at a time. The text so far exists only in the block's memory.
// ANCHOR: sampler
pub struct Sampler<'a, T> {
    block: &'a Block<T>,
    memory: Memory<T>,
    token: usize,
    temperature: f64,
    rng: StdRng,
}

impl<'a, T: Real> Sampler<'a, T> {
    /// Begins with the token `first`. The temperature divides the logits: at 1 a token is drawn
    /// with the block's own probability, and towards 0 the likeliest token is drawn more and more
    /// often.
    ///
    /// # Errors
    ///
    /// Returns an error if the temperature is not a positive number.
    pub fn new(
        block: &'a Block<T>,
        first: usize,
        temperature: f64,
        seed: u64,
    ) -> Result<Self, Error> {
        if !(temperature > 0.0 && temperature.is_finite()) {
            return Err(refused(format!(
                "a temperature of {temperature}, which has to be positive"
            )));
        }
        let rng = StdRng::seed_from_u64(seed);
        Ok(Sampler { block, memory: block.memory(1), token: first, temperature, rng })
    }

    /// Draws the next token.
    ///
    /// # Errors
    ///
    /// Returns an error if the block's step fails, or if its logits give no probabilities.
    pub fn write(&mut self) -> Result<usize, Error> {
        let logits = self.block.step(&[self.token], &mut self.memory)?;
        let logits = logits.column(0).mapv(|logit| logit.widen() / self.temperature);
        let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights = logits.mapv(|logit| (logit - largest).exp());
        let sum = weights.sum();
        if !(sum > 0.0 && sum.is_finite()) {
            return Err(refused(format!("to draw by logits whose powers add up to {sum}")));
        }
        let mut left = self.rng.random_range(0.0..sum);
        let drawn = weights.iter().position(|weight| {
            left -= weight;
            left < 0.0
        });
        // Rounding may leave a remainder behind the last token.
        self.token = drawn.unwrap_or(weights.len() - 1);
        Ok(self.token)
    }
}
// ANCHOR_END: sampler

fn refused(what: String) -> Error {
    Error::Unsupported { engine: "a sampler".to_owned(), what }
}

/// Returns the share of a text's characters that the block, given those before, finds likeliest.
///
/// # Errors
///
/// Returns an error if the scan fails.
pub fn foreseen<T: Real>(
    scanner: &impl Scanner<T>,
    block: &Block<T>,
    text: &Text,
) -> Result<f64, Error> {
    let len = text.tokens.len();
    let batch = text.draw(&mut StdRng::seed_from_u64(0), 1, len);
    let right = score(&block.forward(scanner, batch.tokens.view())?.logits, &batch).right;
    Ok(right.iter().sum::<f64>() / len.max(1) as f64)
}
