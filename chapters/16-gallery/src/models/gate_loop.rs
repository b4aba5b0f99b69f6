//! GateLoop: a matrix of states with complex gates made from the data (Katsch 2023).

use linrec::Error;
use ndarray::{Array2, ArrayView2};
use num_complex::Complex;

use super::sigmoid;
use crate::{Problem, expect};

/// The inputs of one head: keys, queries and gate `[K, seq_len]`, values `[V, seq_len]`.
#[derive(Debug, Clone, Copy)]
pub struct Head<'a> {
    /// `q`: the queries, which read from the state.
    pub queries: ArrayView2<'a, f64>,
    /// `k`: the keys, under which values are stored.
    pub keys: ArrayView2<'a, f64>,
    /// `v`: the values, which are stored.
    pub values: ArrayView2<'a, f64>,
    /// The argument of a sigmoid that gives the modulus of the gate.
    pub modulus: ArrayView2<'a, f64>,
    /// The angle of the gate.
    pub angle: ArrayView2<'a, f64>,
}

impl Head<'_> {
    /// Makes the problem, with one row for each pair of a key and a value, `K · V` rows in all.
    ///
    /// # Errors
    ///
    /// Returns an error if the shapes do not match.
    // ANCHOR: gate_loop
    pub fn problem(&self) -> Result<Problem<Complex<f64>>, Error> {
        self.check()?;
        let ((num_keys, seq_len), num_values) = (self.keys.dim(), self.values.nrows());
        let rows = |of: &dyn Fn(usize, usize, usize) -> Complex<f64>| {
            Array2::from_shape_fn((num_keys * num_values, seq_len), |(row, l)| {
                of(row / num_values, row % num_values, l)
            })
        };
        let inputs = rows(&|i, j, l| Complex::from(self.keys[[i, l]] * self.values[[j, l]]));
        Ok(Problem::new(inputs, rows(&|i, _, l| self.gate(i, l))))
    }

    /// Computes the output, `[V, seq_len]`: the query reads from the matrix of states.
    pub fn read(&self, states: ArrayView2<Complex<f64>>) -> Array2<f64> {
        let (num_keys, num_values) = (self.keys.nrows(), self.values.nrows());
        Array2::from_shape_fn(self.values.dim(), |(j, l)| {
            (0..num_keys).map(|i| self.queries[[i, l]] * states[[i * num_values + j, l]].re).sum()
        })
    }
    // ANCHOR_END: gate_loop

    fn gate(&self, i: usize, l: usize) -> Complex<f64> {
        Complex::from_polar(sigmoid(self.modulus[[i, l]]), self.angle[[i, l]])
    }

    fn check(&self) -> Result<(), Error> {
        let keys = ("keys", self.keys.shape());
        expect("gate_loop", keys, ("queries", &self.queries))?;
        expect("gate_loop", keys, ("modulus", &self.modulus))?;
        expect("gate_loop", keys, ("angle", &self.angle))?;
        let values = [self.values.nrows(), self.keys.ncols()];
        expect("gate_loop", ("values by keys' columns", &values), ("values", &self.values))
    }

    /// Computes the output as attention, without a state:
    /// `y_l = Σ_k (q_l · a_{k+1} ⋯ a_l · k_k) v_k`, with a matrix of weights over all pairs of
    /// positions.
    pub fn attention(&self) -> Array2<f64> {
        let seq_len = self.keys.ncols();
        let mut weights = Array2::<f64>::zeros((seq_len, seq_len));
        for i in 0..self.keys.nrows() {
            for l in 0..seq_len {
                let mut log_modulus = 0.0;
                let mut angle = 0.0;
                for k in (0..=l).rev() {
                    let product = f64::exp(log_modulus) * f64::cos(angle);
                    weights[[l, k]] += self.queries[[i, l]] * product * self.keys[[i, k]];
                    log_modulus += super::log_sigmoid(self.modulus[[i, k]]);
                    angle += self.angle[[i, k]];
                }
            }
        }
        self.values.dot(&weights.t())
    }
}
