//! A small Mamba block between an embedding and an answer, with its gradient.
//!
//! Every array with positions is a matrix `[features, batch · len]`: first the positions of
//! sequence 0, then the positions of sequence 1, and so on. A projection is therefore one product
//! of matrices. `tests/suite/block.rs` compares the gradients with finite differences, and the
//! block's memory, token by token, with the pass over whole sequences.

pub mod convolution;
mod memory;
mod scanner;
mod weights;

use linrec::Error;
use linrec::cpu::{Cpu, Simd};
use ndarray::{Array2, ArrayView2, ArrayView3, Axis, concatenate, s};

use crate::activation::{rounded, silu, silu_slope};
use crate::{Arguments, Mixing, MixingArray, Real};
pub use memory::Memory;
pub use scanner::Scanner;
use weights::rows;
pub use weights::{Config, Weights};

/// The engine of a block. It uses the same instructions on every machine of an architecture, so
/// that training gives the same weights everywhere.
pub fn engine() -> Cpu {
    Cpu::new().with_simd(Simd::Portable).unwrap_or_default()
}

/// A block: sizes and weights.
#[derive(Debug, Clone)]
pub struct Block<T> {
    /// The sizes.
    pub config: Config,
    /// The weights.
    pub weights: Weights<T>,
}

/// The intermediate arrays of a forward pass, which the backward pass needs.
#[derive(Debug, Clone)]
pub struct Inside<T> {
    batch: usize,
    len: usize,
    /// The embedded tokens, `[width, batch · len]`.
    pub embedded: Array2<T>,
    /// `x` and `z` after the first projection, `[2 · channels, batch · len]`.
    pub projected: Array2<T>,
    /// `x` after the convolution, `[channels, batch · len]`.
    pub convolved: Array2<T>,
    /// The scan's input, `[channels, batch · len]`.
    pub u: Array2<T>,
    /// The source of `Δ`, then `B`, then `C`: `[rank + 2 · states, batch · len]`; empty if fixed.
    pub selected: Array2<T>,
    /// `B`, `[batch, 1, states, len]`, or `[channels, states]` in a fixed block.
    pub b: MixingArray<T>,
    /// `C`, of the same shape.
    pub c: MixingArray<T>,
    /// `Δ` before its bias, `[channels, batch · len]`; zero in a fixed block.
    pub delta: Array2<T>,
    /// `-e^(log_a)`.
    pub a: Array2<T>,
    /// The scan's output, `[channels, batch · len]`.
    pub scanned: Array2<T>,
    /// The input of the answer's projection, `[width, batch · len]`.
    pub mixed: Array2<T>,
    /// The logits, `[answers, batch · len]`.
    pub logits: Array2<T>,
}

impl<T: Real> Block<T> {
    /// Makes a block with these weights.
    pub fn new(config: Config, weights: Weights<T>) -> Self {
        Block { config, weights }
    }

    /// Computes the answers to a batch of tokens `[batch, len]`.
    ///
    /// # Errors
    ///
    /// Returns an error if there are no positions, if a token is unknown to the block, or if the
    /// scan fails.
    // ANCHOR: forward
    pub fn forward(
        &self,
        scanner: &impl Scanner<T>,
        tokens: ArrayView2<usize>,
    ) -> Result<Inside<T>, Error> {
        let (len, w) = (tokens.ncols(), &self.weights);
        let mut inside = self.before_scan(tokens, |x| {
            convolution::forward(x, len, w.convolution.view(), w.convolution_bias.view())
        })?;
        let y = scanner.outputs(&self.arguments(&inside))?;
        self.after_scan(&mut inside, features(y.view()));
        Ok(inside)
    }

    fn before_scan(
        &self,
        tokens: ArrayView2<usize>,
        convolve: impl FnOnce(ArrayView2<T>) -> Array2<T>,
    ) -> Result<Inside<T>, Error> {
        let (Config { channels, rank, states, .. }, w) = (self.config, &self.weights);
        let (batch, len) = tokens.dim();
        let embedded = self.embed(tokens)?;
        let projected = w.project_in.dot(&embedded);
        let convolved = convolve(rows(&projected, 0..channels));
        let u = convolved.mapv(|x| rounded(silu, x));
        let (selected, delta, b, c) = if self.config.is_selective {
            let selected = w.select.dot(&u);
            let delta = w.spread.dot(&rows(&selected, 0..rank));
            let b = shared_by_all(rows(&selected, rank..rank + states), (batch, len));
            let c = shared_by_all(rows(&selected, rank + states..rank + 2 * states), (batch, len));
            (selected, delta, b, c)
        } else {
            let of_each = |range| rows(&w.select, range).t().to_owned().into();
            let (b, c) = (of_each(0..states), of_each(states..2 * states));
            (Array2::zeros((0, 0)), Array2::zeros(u.dim()), b, c)
        };
        let a = w.log_a.mapv(|a| T::narrow(-a.widen().exp()));
        Ok(Inside {
            batch,
            len,
            scanned: Array2::zeros((0, 0)),
            mixed: Array2::zeros((0, 0)),
            logits: Array2::zeros((0, 0)),
            embedded,
            projected,
            convolved,
            u,
            selected,
            b,
            c,
            delta,
            a,
        })
    }

    /// `scanned` is `[channels, batch · len]`.
    fn after_scan(&self, inside: &mut Inside<T>, scanned: Array2<T>) {
        let w = &self.weights;
        inside.mixed = &inside.embedded + &w.project_out.dot(&scanned);
        inside.logits = w.answer.dot(&inside.mixed);
        inside.scanned = scanned;
    }
    // ANCHOR_END: forward

    /// Returns the arguments of the block's scan.
    // ANCHOR: arguments
    pub fn arguments<'a>(&'a self, inside: &'a Inside<T>) -> Arguments<'a, T> {
        let channels = self.config.channels;
        let shape = (inside.batch, inside.len);
        Arguments {
            u: sequences(inside.u.view(), shape),
            delta: sequences(inside.delta.view(), shape),
            a: inside.a.view(),
            b: inside.b.view(),
            c: inside.c.view(),
            d: Some(self.weights.skip.column(0)),
            z: Some(sequences(rows(&inside.projected, channels..2 * channels), shape)),
            delta_bias: Some(self.weights.delta_bias.column(0)),
            delta_softplus: true,
            initial: None,
        }
    }
    // ANCHOR_END: arguments

    /// Computes the gradient of a loss with respect to all weights from its gradient with respect
    /// to the logits, `[answers, batch · len]`.
    ///
    /// # Errors
    ///
    /// Returns an error if the scan fails.
    pub fn backward(
        &self,
        scanner: &impl Scanner<T>,
        tokens: ArrayView2<usize>,
        inside: &Inside<T>,
        d_logits: ArrayView2<T>,
    ) -> Result<Weights<T>, Error> {
        let (Config { channels, rank, states, is_selective, .. }, w) = (self.config, &self.weights);
        let mut d = Weights::zeros(&self.config);
        d.answer = d_logits.dot(&inside.mixed.t());
        let d_mixed = w.answer.t().dot(&d_logits);
        d.project_out = d_mixed.dot(&inside.scanned.t());
        let d_scanned = w.project_out.t().dot(&d_mixed);

        let d_y = sequences(d_scanned.view(), (inside.batch, inside.len));
        let scan = scanner.gradients(&self.arguments(inside), d_y)?;
        d.log_a = scan.d_a * &inside.a;
        d.skip = scan.d_d.insert_axis(Axis(1));
        d.delta_bias = scan.d_delta_bias.insert_axis(Axis(1));
        let mut d_u = features(scan.d_u.view());
        let (d_b, d_c) = (gradient(&scan.d_b), gradient(&scan.d_c));
        if is_selective {
            let d_delta = features(scan.d_delta.view());
            d.spread = d_delta.dot(&rows(&inside.selected, 0..rank).t());
            let d_low = w.spread.t().dot(&d_delta);
            let parts = [d_low.view(), d_b.view(), d_c.view()];
            // All three have one column for each position.
            let d_selected = concatenate(Axis(0), &parts).unwrap_or_default();
            d.select = d_selected.dot(&inside.u.t());
            d_u += &w.select.t().dot(&d_selected);
        } else {
            d.select.slice_mut(s![..states, ..]).assign(&d_b);
            d.select.slice_mut(s![states.., ..]).assign(&d_c);
        }

        let d_convolved = d_u * inside.convolved.mapv(|x| rounded(silu_slope, x));
        let x = rows(&inside.projected, 0..channels);
        let back = convolution::backward(d_convolved.view(), x, inside.len, w.convolution.view());
        d.convolution = back.d_weights;
        d.convolution_bias = back.d_bias;
        let d_z = features(scan.d_z.view());
        let d_projected = concatenate(Axis(0), &[back.d_x.view(), d_z.view()]).unwrap_or_default();
        d.project_in = d_projected.dot(&inside.embedded.t());
        let d_embedded = d_mixed + w.project_in.t().dot(&d_projected);
        for (&token, column) in tokens.iter().zip(d_embedded.columns()) {
            let mut sum = d.embedding.column_mut(token);
            sum += &column;
        }
        Ok(d)
    }

    /// Returns the token's column of the embedding at every position, `[width, batch · len]`.
    fn embed(&self, tokens: ArrayView2<usize>) -> Result<Array2<T>, Error> {
        let known = self.config.tokens;
        let unsupported = |what| Error::Unsupported {
            engine: format!("a block with tokens below {known}"),
            what,
        };
        if tokens.is_empty() {
            return Err(unsupported(format!("a batch of shape {:?}", tokens.shape())));
        }
        if let Some(token) = tokens.iter().find(|token| **token >= known) {
            return Err(unsupported(format!("token {token}")));
        }
        let indices: Vec<usize> = tokens.iter().copied().collect();
        let columns = self.weights.embedding.select(Axis(1), &indices);
        Ok(columns.as_standard_layout().into_owned())
    }
}

/// Views `[features, batch · len]` as `[batch, features, len]`.
fn sequences<T>(matrix: ArrayView2<'_, T>, (batch, len): (usize, usize)) -> ArrayView3<'_, T> {
    let features = matrix.nrows();
    // The matrix has batch · len columns and consists of whole rows of one in standard layout.
    let split = matrix.into_shape_with_order((features, batch, len));
    split.unwrap_or_else(|_| unreachable!("columns are positions")).permuted_axes([1, 0, 2])
}

/// Copies `[batch, features, len]` into `[features, batch · len]`.
fn features<T: Real>(array: ArrayView3<T>) -> Array2<T> {
    let (batch, features, len) = array.dim();
    let permuted = array.permuted_axes([1, 0, 2]);
    let flat = permuted.iter().copied().collect();
    Array2::from_shape_vec((features, batch * len), flat).unwrap_or_default()
}

/// Copies `[states, batch · len]` into `B` or `C` of all channels, `[batch, 1, states, len]`.
fn shared_by_all<T: Real>(matrix: ArrayView2<T>, shape: (usize, usize)) -> MixingArray<T> {
    sequences(matrix, shape).insert_axis(Axis(1)).to_owned().into()
}

/// Turns the gradient back into a matrix: `[states, batch · len]`, or `[states, channels]` if
/// fixed.
fn gradient<T: Real>(gradient: &MixingArray<T>) -> Array2<T> {
    match gradient {
        Mixing::Varying(array) => features(array.index_axis(Axis(1), 0)),
        Mixing::Fixed(array) => array.t().to_owned(),
    }
}
