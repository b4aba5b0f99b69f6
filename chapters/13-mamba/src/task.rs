//! The task: symbols come at irregular times, and the end of the sequence asks for the last few.

use ndarray::Array2;
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::index;

/// The task's sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// The number of different symbols.
    pub symbols: usize,
    /// The number of questions: how many of the last symbols the sequence asks for.
    pub asked: usize,
    /// The largest number of symbols in a sequence; the smallest is `asked`.
    pub most: usize,
    /// The number of positions before the questions.
    pub positions: usize,
}

/// A batch of sequences with their answers.
#[derive(Debug, Clone)]
pub struct Batch {
    /// `[num_seqs, len]`: 0 is the blank, then come the symbols, then the questions.
    pub tokens: Array2<usize>,
    /// The symbols that are asked for at the last `asked` positions, `[num_seqs, asked]`.
    pub answers: Array2<usize>,
}

impl Task {
    /// Returns the number of different tokens.
    pub fn tokens(&self) -> usize {
        1 + self.symbols + self.asked
    }

    /// Returns the length of a sequence: the positions, then the questions.
    pub fn len(&self) -> usize {
        self.positions + self.asked
    }

    /// Returns true if sequences have no positions.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Draws a batch. Random symbols are at random positions within a stretch of random length and
    /// place; all other positions are blank. The questions are "which was the last symbol?", "which
    /// came before it?" and so on.
    // ANCHOR: draw
    pub fn draw(&self, rng: &mut StdRng, num_seqs: usize) -> Batch {
        let mut tokens = Array2::zeros((num_seqs, self.len()));
        let mut answers = Array2::zeros((num_seqs, self.asked));
        for (mut tokens, mut answers) in tokens.rows_mut().into_iter().zip(answers.rows_mut()) {
            let most = self.most.min(self.positions);
            let count = rng.random_range(self.asked.min(most)..=most);
            let stretch = rng.random_range(count..=self.positions);
            let start = rng.random_range(0..=self.positions - stretch);
            let mut places = index::sample(rng, stretch, count).into_vec();
            places.sort_unstable();
            for (age, place) in places.into_iter().rev().enumerate() {
                let symbol = rng.random_range(0..self.symbols.max(1));
                tokens[start + place] = 1 + symbol;
                if age < self.asked {
                    tokens[self.positions + age] = 1 + self.symbols + age;
                    answers[age] = symbol;
                }
            }
        }
        Batch { tokens, answers }
    }
    // ANCHOR_END: draw
}
