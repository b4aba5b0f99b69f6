//! A small network for the cups, its loss and its gradient.

use linrec::Error;
use linrec::cpu::Cpu;
use ndarray::{Array1, Array2, ArrayView2, s};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::layer::{Kind, STATE, stack};
use super::{START, Swap, ball};

/// The number of tokens: the beginning, a left swap, a right swap.
const TOKENS: usize = 3;

/// The number of cups, and so of answers.
const CUPS: usize = 3;

/// The number of values made from a layer's states at each position, for the next layer or readout.
const HIDDEN: usize = 32;

/// Sequences, one after another; each starts with an extra position, the beginning.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The token of each position, as ones and zeros, `[TOKENS, positions]`.
    pub tokens: Array2<f64>,
    /// True at the positions where sequences begin.
    pub is_start: Vec<bool>,
    /// The cup with the ball after each position.
    pub cups: Vec<usize>,
}

impl Batch {
    /// Draws random sequences of `len` swaps each.
    pub fn draw(rng: &mut StdRng, num_seqs: usize, len: usize) -> Batch {
        let positions = num_seqs * (len + 1);
        let mut tokens = Array2::zeros((TOKENS, positions));
        let is_start: Vec<bool> = (0..positions).map(|l| l % (len + 1) == 0).collect();
        let mut order = START;
        let mut cups = Vec::with_capacity(positions);
        for (l, &start) in is_start.iter().enumerate() {
            let swap = if rng.random_bool(0.5) { Swap::Left } else { Swap::Right };
            order = if start { START } else { swap.apply(order) };
            let token = if start { 0 } else { 1 + swap as usize };
            tokens[[token, l]] = 1.0;
            cups.push(ball(order));
        }
        Batch { tokens, is_start, cups }
    }
}

/// Layers of recurrences, each followed by a map with a tanh, and a readout.
///
/// A layer sees the token and the output of the layer before: its coefficients and inputs are
/// weighted sums of these.
#[derive(Debug, Clone)]
pub struct Network {
    /// The kind of each layer's coefficients.
    pub layers: Vec<Kind>,
    /// The weights of each layer and of the map after it; last, the weights of the readout.
    pub weights: Vec<Array2<f64>>,
}

/// The intermediate arrays of a forward pass.
struct Inside {
    features: Vec<Array2<f64>>,
    made: Vec<Array2<f64>>,
    states: Vec<Array2<f64>>,
    logits: Array2<f64>,
}

impl Network {
    /// Draws a network with random weights; all randomness comes from `seed`.
    ///
    /// The coefficients of each token begin at a modulus near 0.9, with either sign or any angle if
    /// their kind allows it.
    pub fn draw(layers: &[Kind], seed: u64) -> Network {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut weights = Vec::new();
        for (number, &kind) in layers.iter().enumerate() {
            let seen = TOKENS + if number == 0 { 0 } else { HIDDEN };
            let mut array = uniform(&mut rng, (kind.rows(), seen));
            for row in STATE..kind.rows() {
                for token in 0..TOKENS {
                    array[[row, token]] = match kind {
                        Kind::Gate => 2.0 + rng.random_range(-1.0..1.0),
                        Kind::Complex if row < 3 * STATE / 2 => 2.0 + rng.random_range(-1.0..1.0),
                        Kind::Complex => rng.random_range(-3.1..3.1),
                        Kind::Signed if rng.random_bool(0.5) => 1.5,
                        Kind::Signed => -1.5,
                        Kind::Delta(_) => rng.random_range(-1.0..1.0),
                    };
                }
            }
            weights.push(array);
            weights.push(uniform(&mut rng, (HIDDEN, STATE + seen)));
        }
        weights.push(uniform(&mut rng, (CUPS, TOKENS + HIDDEN)));
        Network { layers: layers.to_vec(), weights }
    }

    /// Returns all weights as one vector.
    pub fn flat(&self) -> Array1<f64> {
        self.weights.iter().flatten().copied().collect()
    }

    /// Sets all weights from one vector, in the order of [`flat`](Network::flat).
    pub fn set(&mut self, flat: &Array1<f64>) {
        let places = self.weights.iter_mut().flatten();
        places.zip(flat).for_each(|(place, &weight)| *place = weight);
    }

    fn forward(&self, cpu: &Cpu, batch: &Batch) -> Result<Inside, Error> {
        let mut features = vec![batch.tokens.clone()];
        let (mut made, mut states) = (Vec::new(), Vec::new());
        for (number, kind) in self.layers.iter().enumerate() {
            let [layer, map] = [&self.weights[2 * number], &self.weights[2 * number + 1]];
            let seen = features[number].clone();
            let of_layer = layer.dot(&seen);
            let of_states = kind.forward(cpu, of_layer.view(), &batch.is_start)?;
            let hidden = map.dot(&stack(&[of_states.clone(), seen])).mapv_into(f64::tanh);
            features.push(stack(&[batch.tokens.clone(), hidden]));
            made.push(of_layer);
            states.push(of_states);
        }
        let logits = self.weights[2 * self.layers.len()].dot(&features[self.layers.len()]);
        Ok(Inside { features, made, states, logits })
    }

    /// Computes the loss and its gradient with respect to all weights. The loss is minus the
    /// logarithm of the right cup's probability, averaged over all positions except the beginnings.
    ///
    /// # Errors
    ///
    /// Returns an error if the engine fails.
    pub fn loss_and_gradient(&self, cpu: &Cpu, batch: &Batch) -> Result<(f64, Array1<f64>), Error> {
        let inside = self.forward(cpu, batch)?;
        let (loss, d_logits) = cross_entropy(inside.logits.view(), batch);
        let readout = 2 * self.layers.len();
        let mut gradient: Vec<_> = self.weights.iter().map(|w| Array2::zeros(w.dim())).collect();
        gradient[readout] = d_logits.dot(&inside.features[self.layers.len()].t());
        let mut d_features = self.weights[readout].t().dot(&d_logits);
        for (number, kind) in self.layers.iter().enumerate().rev() {
            let [layer, map] = [&self.weights[2 * number], &self.weights[2 * number + 1]];
            let hidden = inside.features[number + 1].slice(s![TOKENS.., ..]);
            let d_hidden = &d_features.slice(s![TOKENS.., ..]) * &hidden.mapv(|h| 1.0 - h * h);
            let (seen, states) = (&inside.features[number], &inside.states[number]);
            gradient[2 * number + 1] = d_hidden.dot(&stack(&[states.clone(), seen.clone()]).t());
            let d_both = map.t().dot(&d_hidden);
            let d_states = d_both.slice(s![..STATE, ..]);
            let made = inside.made[number].view();
            let d_made = kind.backward(cpu, made, &batch.is_start, states.view(), d_states)?;
            gradient[2 * number] = d_made.dot(&seen.t());
            d_features = layer.t().dot(&d_made) + d_both.slice(s![STATE.., ..]);
        }
        Ok((loss, gradient.iter().flatten().copied().collect()))
    }

    /// Returns, for each position, true if the cup with the largest logit is the right one.
    ///
    /// # Errors
    ///
    /// Returns an error if the engine fails.
    pub fn is_right(&self, cpu: &Cpu, batch: &Batch) -> Result<Vec<bool>, Error> {
        let logits = self.forward(cpu, batch)?.logits;
        let is_right = |(column, &cup): (ndarray::ArrayView1<f64>, &usize)| {
            (0..CUPS).all(|other| other == cup || column[other] < column[cup])
        };
        Ok(logits.columns().into_iter().zip(&batch.cups).map(is_right).collect())
    }
}

/// Computes the mean of minus the logarithm of the right cup's probability, and its gradient with
/// respect to the logits.
fn cross_entropy(logits: ArrayView2<f64>, batch: &Batch) -> (f64, Array2<f64>) {
    let count = batch.is_start.iter().filter(|start| !**start).count().max(1) as f64;
    let (mut loss, mut d_logits) = (0.0, Array2::zeros(logits.dim()));
    for (l, column) in logits.columns().into_iter().enumerate() {
        if batch.is_start[l] {
            continue;
        }
        let largest = column.fold(f64::NEG_INFINITY, |a: f64, &b| a.max(b));
        let powers = column.mapv(|logit| (logit - largest).exp());
        let shares = &powers / powers.sum();
        loss -= shares[batch.cups[l]].ln() / count;
        d_logits.column_mut(l).assign(&(&shares / count));
        d_logits[[batch.cups[l], l]] -= 1.0 / count;
    }
    (loss, d_logits)
}

fn uniform(rng: &mut StdRng, (rows, seen): (usize, usize)) -> Array2<f64> {
    let reach = 1.0 / (seen as f64).sqrt();
    Array2::from_shape_simple_fn((rows, seen), || rng.random_range(-reach..reach))
}
