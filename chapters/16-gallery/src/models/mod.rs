//! The gallery: one file for each model.
//!
//! Every model makes a [`Problem`](crate::Problem) and reads its outputs. Its file also contains a
//! check without a recurrence: a closed formula, a sum, or a convolution.

pub mod gate_loop;
pub mod iir;
pub mod interest;
pub mod lru;
pub mod min_rnn;
pub mod returns;
pub mod rg_lru;
pub mod rwkv;
pub mod s4d;
pub mod s5;
pub mod slstm;

/// The sigmoid, which maps any number to a number between 0 and 1.
pub fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// `ln σ(x)`, without overflow for large `-x` and without losing digits for large `x`.
pub fn log_sigmoid(x: f64) -> f64 {
    x.min(0.0) - (-x.abs()).exp().ln_1p()
}

#[cfg(test)]
mod tests {
    use super::{log_sigmoid, sigmoid};

    #[test]
    fn the_logarithm_of_the_sigmoid_holds_at_both_ends() {
        for x in [-3.0, -0.1, 0.0, 0.7, 20.0] {
            let difference = log_sigmoid(x) - sigmoid(x).ln();
            assert!(
                difference.abs() <= 4.0 * f64::EPSILON * (1.0 + x.abs()),
                "{x}: {difference:e}"
            );
        }
        assert_eq!(log_sigmoid(-1000.0), -1000.0);
        assert_eq!(log_sigmoid(1000.0), 0.0);
    }
}
