//! The weights of a block: named arrays, and all of them as one vector.

use ndarray::{Array1, Array2, ArrayView1, Axis, Slice};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::Real;

/// The sizes of a block, and what its recurrence may look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// The number of different tokens.
    pub tokens: usize,
    /// The number of different answers.
    pub answers: usize,
    /// `d_model`: the width of what goes in and out of the block.
    pub width: usize,
    /// `d_inner`: the number of channels in it.
    pub channels: usize,
    /// `d_state`: the number of states of each channel.
    pub states: usize,
    /// The number of numbers that all channels' `Δ` are made of.
    pub rank: usize,
    /// The number of positions that the convolution sees.
    pub reach: usize,
    /// Whether `Δ`, `B` and `C` are computed from the sequence. Otherwise each channel has its own,
    /// the same at every position.
    pub is_selective: bool,
}

macro_rules! weights {
    ($($(#[$doc:meta])* $name:ident: $shape:expr;)*) => {
        /// The weights of a block, or a gradient by them. Vectors are matrices of one column.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Weights<T> {
            $($(#[$doc])* pub $name: Array2<T>,)*
        }

        impl<T: Real> Weights<T> {
            /// Weights of zero.
            pub fn zeros(config: &Config) -> Self {
                Weights { $($name: Array2::zeros($shape(config)),)* }
            }

            /// All arrays with their names, in the order of [`flat`](Weights::flat).
            pub fn arrays(&self) -> Vec<(&'static str, &Array2<T>)> {
                vec![$((stringify!($name), &self.$name),)*]
            }

            fn arrays_mut(&mut self) -> Vec<&mut Array2<T>> {
                vec![$(&mut self.$name,)*]
            }
        }
    };
}

weights! {
    /// A column for each token.
    embedding: |c: &Config| (c.width, c.tokens);
    /// The projection into the block: rows for `x`, then for `z`.
    project_in: |c: &Config| (2 * c.channels, c.width);
    /// The convolution, the latest position last.
    convolution: |c: &Config| (c.channels, c.reach);
    /// Added after the convolution.
    convolution_bias: |c: &Config| (c.channels, 1);
    /// From `x` to what `Δ` is made of, to `B` and to `C`; in a fixed block `B` and `C` themselves.
    select: |c: &Config| match c.is_selective {
        true => (c.rank + 2 * c.states, c.channels),
        false => (2 * c.states, c.channels),
    };
    /// From there to every channel's `Δ`.
    spread: |c: &Config| (if c.is_selective { c.channels } else { 0 }, c.rank);
    /// Added to `Δ` before softplus.
    delta_bias: |c: &Config| (c.channels, 1);
    /// `ln(-A)`.
    log_a: |c: &Config| (c.channels, c.states);
    /// `D`.
    skip: |c: &Config| (c.channels, 1);
    /// The projection out of the block.
    project_out: |c: &Config| (c.width, c.channels);
    /// A row for each answer.
    answer: |c: &Config| (c.answers, c.width);
}

impl<T: Real> Weights<T> {
    /// All numbers in a row.
    pub fn flat(&self) -> Array1<f64> {
        self.arrays().iter().flat_map(|(_, array)| array.iter().map(|w| w.widen())).collect()
    }

    /// The inverse of [`flat`](Weights::flat); numbers that are missing stay zero.
    pub fn from_flat(config: &Config, flat: ArrayView1<f64>) -> Self {
        let mut weights = Weights::zeros(config);
        let places = weights.arrays_mut().into_iter().flatten();
        places.zip(flat).for_each(|(place, &number)| *place = T::narrow(number));
        weights
    }
}

impl Weights<f64> {
    /// Where training starts, as in Mamba: matrices uniform within one over the root of what they
    /// sum over, `A = -1, …, -states`, `D = 1`, and biases for which `Δ` lies between 0.001 and
    /// 0.1, evenly on a logarithmic scale.
    pub fn initial(config: &Config, seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut weights = Weights::zeros(config);
        let mut uniform = |array: &mut Array2<f64>, bound: f64| {
            array.mapv_inplace(|_| rng.random_range(-bound..=bound));
        };
        let root = |n: usize| 1.0 / (n.max(1) as f64).sqrt();
        uniform(&mut weights.embedding, 3f64.sqrt());
        uniform(&mut weights.project_in, root(config.width));
        uniform(&mut weights.convolution, root(config.reach));
        uniform(&mut weights.convolution_bias, root(config.reach));
        // In a fixed block these are B and C themselves: of size one, not small.
        let is_matrix = config.is_selective;
        uniform(&mut weights.select, if is_matrix { root(config.channels) } else { 1.0 });
        uniform(&mut weights.spread, root(config.rank));
        uniform(&mut weights.project_out, root(config.channels));
        uniform(&mut weights.answer, root(config.width));
        for bias in &mut weights.delta_bias {
            let delta: f64 = (rng.random_range(0.001f64.ln()..0.1f64.ln())).exp();
            *bias = delta.exp_m1().ln();
        }
        for mut row in weights.log_a.rows_mut() {
            row.iter_mut().enumerate().for_each(|(n, a)| *a = ((n + 1) as f64).ln());
        }
        weights.skip.fill(1.0);
        weights
    }
}

/// Some rows of a matrix.
pub(super) fn rows<T>(
    matrix: &Array2<T>,
    range: std::ops::Range<usize>,
) -> ndarray::ArrayView2<'_, T> {
    matrix.slice_axis(Axis(0), Slice::from(range))
}
