//! Selective copying: remember the symbols, in order, and nothing else.

use ndarray::Array2;
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::index;

/// The task's sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// The number of different symbols.
    pub symbols: usize,
    /// How many are to be remembered.
    pub remembered: usize,
    /// The number of positions among which they are strewn; all others hold the blank token.
    pub positions: usize,
}

/// A batch of sequences with their answers.
#[derive(Debug, Clone)]
pub struct Batch {
    /// `[num_seqs, len]`: 0 is the blank, then come the symbols, then a question for each remembered one.
    pub tokens: Array2<usize>,
    /// The symbol asked for at each of the last `remembered` positions, `[num_seqs, remembered]`.
    pub answers: Array2<usize>,
}

impl Task {
    /// The number of different tokens.
    pub fn tokens(&self) -> usize {
        1 + self.symbols + self.remembered
    }

    /// The length of a sequence: the positions, and then the questions.
    pub fn len(&self) -> usize {
        self.positions + self.remembered
    }

    /// Whether sequences have no positions.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Draws a batch: random symbols at random positions, then the questions "what was the first?", "what was the
    /// second?" and so on.
    // ANCHOR: draw
    pub fn draw(&self, rng: &mut StdRng, num_seqs: usize) -> Batch {
        let mut tokens = Array2::zeros((num_seqs, self.len()));
        let mut answers = Array2::zeros((num_seqs, self.remembered));
        for (mut tokens, mut answers) in tokens.rows_mut().into_iter().zip(answers.rows_mut()) {
            let mut places = index::sample(rng, self.positions, self.remembered).into_vec();
            places.sort_unstable();
            for (number, place) in places.into_iter().enumerate() {
                let symbol = rng.random_range(0..self.symbols);
                tokens[place] = 1 + symbol;
                tokens[self.positions + number] = 1 + self.symbols + number;
                answers[number] = symbol;
            }
        }
        Batch { tokens, answers }
    }
    // ANCHOR_END: draw
}
