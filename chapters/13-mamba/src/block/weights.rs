//! The weights of a block, as named arrays and as one vector.

use ndarray::{Array1, Array2, ArrayView1, Axis, Slice};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::Real;

/// The sizes of a block, and whether its recurrence depends on the sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// The number of different tokens.
    pub tokens: usize,
    /// The number of different answers.
    pub answers: usize,
    /// `d_model`: the width of the block's input and output.
    pub width: usize,
    /// `d_inner`: the number of channels inside the block.
    pub channels: usize,
    /// `d_state`: the number of states of each channel.
    pub states: usize,
    /// `dt_rank`: the number of values from which the `Δ` of all channels is made.
    pub rank: usize,
    /// The number of positions that the convolution sees.
    pub reach: usize,
    /// True if `Δ`, `B` and `C` are computed from the sequence. Otherwise each channel has its own
    /// values, the same at every position.
    pub is_selective: bool,
}

macro_rules! weights {
    ($($(#[$doc:meta])* $name:ident: $shape:expr;)*) => {
        /// The weights of a block, or their gradient. Vectors are matrices of one column.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Weights<T> {
            $($(#[$doc])* pub $name: Array2<T>,)*
        }

        impl<T: Real> Weights<T> {
            /// Weights of zero.
            pub fn zeros(config: &Config) -> Self {
                Weights { $($name: Array2::zeros($shape(config)),)* }
            }

            /// Returns all arrays with their names, in the order of [`flat`](Weights::flat).
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
    /// One column for each token.
    embedding: |c: &Config| (c.width, c.tokens);
    /// The projection into the block: rows for `x`, then for `z`.
    project_in: |c: &Config| (2 * c.channels, c.width);
    /// The convolution's weights, the latest position last.
    convolution: |c: &Config| (c.channels, c.reach);
    /// The bias of the convolution.
    convolution_bias: |c: &Config| (c.channels, 1);
    /// The projection of `x` to the source of `Δ`, to `B` and to `C`; in a fixed block, `B` and `C`
    /// themselves.
    select: |c: &Config| match c.is_selective {
        true => (c.rank + 2 * c.states, c.channels),
        false => (2 * c.states, c.channels),
    };
    /// The projection of the source of `Δ` to the `Δ` of every channel.
    spread: |c: &Config| (if c.is_selective { c.channels } else { 0 }, c.rank);
    /// The bias of `Δ`, added before softplus.
    delta_bias: |c: &Config| (c.channels, 1);
    /// `ln(-A)`.
    log_a: |c: &Config| (c.channels, c.states);
    /// The skip connection `D`.
    skip: |c: &Config| (c.channels, 1);
    /// The projection out of the block.
    project_out: |c: &Config| (c.width, c.channels);
    /// One row for each answer.
    answer: |c: &Config| (c.answers, c.width);
}

impl<T: Real> Weights<T> {
    /// Returns all elements as one vector.
    pub fn flat(&self) -> Array1<f64> {
        self.arrays().iter().flat_map(|(_, array)| array.iter().map(|w| w.widen())).collect()
    }

    /// Inverts [`flat`](Weights::flat); missing elements stay zero.
    pub fn from_flat(config: &Config, flat: ArrayView1<f64>) -> Self {
        let mut weights = Weights::zeros(config);
        let places = weights.arrays_mut().into_iter().flatten();
        places.zip(flat).for_each(|(place, &number)| *place = T::narrow(number));
        weights
    }
}

impl Weights<f64> {
    /// Returns Mamba's initial weights. Matrices are uniform within ±1/√n, where n is the number of
    /// terms of their sums. `A = -1, …, -states` and `D = 1`. The biases put `Δ` between 0.001 and
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
        // In a fixed block these are B and C themselves, which have size one.
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

/// Borrows a range of rows of a matrix.
pub(super) fn rows<T>(
    matrix: &Array2<T>,
    range: std::ops::Range<usize>,
) -> ndarray::ArrayView2<'_, T> {
    matrix.slice_axis(Axis(0), Slice::from(range))
}
