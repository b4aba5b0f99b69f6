//! The memory of a block that receives one token at a time.

use linrec::Error;
use ndarray::{Array2, Array3, ArrayView2};

use super::{Block, convolution};
use crate::{Real, step};

/// All that a block remembers of the tokens it has seen. Its size does not grow with their number.
#[derive(Debug, Clone, PartialEq)]
// ANCHOR: memory
pub struct Memory<T> {
    /// The latest inputs of the convolution without the current one, newest first:
    /// `[channels, batch, reach - 1]`.
    window: Array3<T>,
    /// The states of the scan, `[batch, channels, states]`.
    states: Array3<T>,
}
// ANCHOR_END: memory

impl<T> Memory<T> {
    /// Returns the number of elements in the memory.
    pub fn len(&self) -> usize {
        self.window.len() + self.states.len()
    }

    /// Returns true if this is the memory of no sequence at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T: Real> Block<T> {
    /// Returns the memory of `batch` sequences before their first token.
    pub fn memory(&self, batch: usize) -> Memory<T> {
        let config = &self.config;
        Memory {
            window: Array3::zeros((config.channels, batch, config.reach.saturating_sub(1))),
            states: Array3::zeros((batch, config.channels, config.states)),
        }
    }

    /// Feeds the block the next token of each sequence; returns the logits, `[answers, batch]`.
    ///
    /// # Errors
    ///
    /// Returns an error if a token is unknown to the block, or if the batch size is not the
    /// memory's.
    // ANCHOR: step
    pub fn step(&self, tokens: &[usize], memory: &mut Memory<T>) -> Result<Array2<T>, Error> {
        let Memory { window, states } = memory;
        if tokens.len() != states.dim().0 {
            return Err(Error::ShapeMismatch {
                operation: "step",
                arrays: vec![("states", states.shape().to_vec()), ("tokens", vec![tokens.len()])],
            });
        }
        // One token of each sequence is a batch of sequences of length 1.
        let tokens = Array2::from_shape_fn((tokens.len(), 1), |(i, _)| tokens[i]);
        let (w, bias) = (&self.weights.convolution, &self.weights.convolution_bias);
        let mut inside = self.before_scan(tokens.view(), |x: ArrayView2<T>| {
            convolution::step(x, window, w.view(), bias.view())
        })?;
        let y = step(&self.arguments(&inside), 0, states)?;
        self.after_scan(&mut inside, y.reversed_axes());
        Ok(inside.logits)
    }
    // ANCHOR_END: step
}
