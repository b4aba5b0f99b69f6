//! A task that needs memory: keep the last marked number.

use ndarray::Array2;
use rand::rngs::StdRng;
use rand::{Rng, RngExt};
use rand_distr::{Distribution, StandardNormal};

/// A batch of sequences. All shapes are `[num_seqs, seq_len]`.
#[derive(Debug, Clone)]
pub struct Batch {
    /// A random number at every position, normally distributed.
    pub values: Array2<f64>,
    /// 1 where the number must be kept, else 0.
    pub keep: Array2<f64>,
    /// 1 where there is another mark without a meaning, else 0.
    pub decoy: Array2<f64>,
    /// The target: at every position, the last value that was marked *keep*.
    pub targets: Array2<f64>,
}

impl Batch {
    /// Draws a batch. The first position is always marked *keep*; at the others each mark has
    /// probability 1/8.
    pub fn draw(rng: &mut StdRng, num_seqs: usize, seq_len: usize) -> Self {
        let shape = (num_seqs, seq_len);
        let zeros = || Array2::zeros(shape);
        let (mut keep, mut decoy, mut targets) = (zeros(), zeros(), zeros());
        let values = Array2::from_shape_simple_fn(shape, || normal(rng));
        for seq in 0..num_seqs {
            let mut kept = 0.0;
            for l in 0..seq_len {
                match if l == 0 { 0 } else { rng.random_range(0..8) } {
                    0 => keep[[seq, l]] = 1.0,
                    1 => decoy[[seq, l]] = 1.0,
                    _ => {}
                }
                if keep[[seq, l]] == 1.0 {
                    kept = values[[seq, l]];
                }
                targets[[seq, l]] = kept;
            }
        }
        Batch { values, keep, decoy, targets }
    }
}

fn normal(rng: &mut impl Rng) -> f64 {
    StandardNormal.sample(rng)
}
