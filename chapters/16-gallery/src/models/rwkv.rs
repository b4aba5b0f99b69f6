//! The decay of RWKV-4: an average whose weights fade with distance (Peng et al. 2023).

use linrec::Error;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2};

use crate::{Problem, expect};

/// One layer's memory, with a decay and a bonus for each channel.
#[derive(Debug, Clone)]
pub struct Wkv {
    /// `w`, `[channels]`: a step multiplies the past by `e^{−w}`.
    pub decay: Array1<f64>,
    /// `u`, `[channels]`: the newest value has the factor `e^u`.
    pub bonus: Array1<f64>,
}

impl Wkv {
    /// Makes the problem, with two rows for each channel, a numerator and a denominator; `keys` and
    /// `values` are `[channels, seq_len]`.
    ///
    /// # Errors
    ///
    /// Returns an error if the shapes do not match.
    // ANCHOR: rwkv
    pub fn problem(
        &self,
        keys: ArrayView2<f64>,
        values: ArrayView2<f64>,
    ) -> Result<Problem<f64>, Error> {
        self.check(keys, values)?;
        let shape = (2 * keys.nrows(), keys.ncols());
        let inputs = Array2::from_shape_fn(shape, |(row, l)| {
            let at = [row / 2, l];
            keys[at].exp() * if row % 2 == 0 { values[at] } else { 1.0 }
        });
        Ok(Problem::new(
            inputs,
            Array2::from_shape_fn(shape, |(row, _)| (-self.decay[row / 2]).exp()),
        ))
    }

    /// Computes the average, `[channels, seq_len]`, from the states of the step before and the
    /// newest value with its bonus.
    pub fn read(
        &self,
        states: ArrayView2<f64>,
        keys: ArrayView2<f64>,
        values: ArrayView2<f64>,
    ) -> Array2<f64> {
        Array2::from_shape_fn(keys.dim(), |(channel, l)| {
            let before = |row: usize| if l > 0 { states[[row, l - 1]] } else { 0.0 };
            let newest = (self.bonus[channel] + keys[[channel, l]]).exp();
            (before(2 * channel) + newest * values[[channel, l]])
                / (before(2 * channel + 1) + newest)
        })
    }
    // ANCHOR_END: rwkv

    fn check(&self, keys: ArrayView2<f64>, values: ArrayView2<f64>) -> Result<(), Error> {
        expect("wkv", ("keys", keys.shape()), ("values", &values))?;
        expect("wkv", ("keys' rows", &[keys.nrows()]), ("decay", &self.decay))?;
        expect("wkv", ("keys' rows", &[keys.nrows()]), ("bonus", &self.bonus))
    }

    /// Computes the average by its definition: position `k < l` has the weight
    /// `exp(−(l − 1 − k) w + k_k)`, and the newest `exp(u + k_l)`.
    pub fn direct(&self, keys: ArrayView2<f64>, values: ArrayView2<f64>) -> Array2<f64> {
        Array2::from_shape_fn(keys.dim(), |(channel, l)| {
            let weights = self.weights(channel, keys.row(channel), l);
            let sum: f64 = weights.iter().zip(values.row(channel)).map(|(w, v)| w * v).sum();
            sum / weights.sum()
        })
    }

    /// Returns the weights of positions 0 to `l`, before the division by their sum.
    pub fn weights(&self, channel: usize, keys: ArrayView1<f64>, l: usize) -> Array1<f64> {
        Array1::from_shape_fn(l + 1, |k| match l - k {
            0 => (self.bonus[channel] + keys[l]).exp(),
            steps => (keys[k] - (steps - 1) as f64 * self.decay[channel]).exp(),
        })
    }
}
