//! Solutions to the exercises that ask for code.

use linrec::{Direction, Error, Options};
use ndarray::{Array1, ArrayView1, Axis, array};

use crate::models::iir::SecondOrder;
use crate::models::interest::account;
use crate::{Problem, expect};

/// Computes the advantage of what was done over what was expected (generalised advantage
/// estimation, Schulman et al. 2016): `A_l = δ_l + γ λ A_{l+1}`, with
/// `δ_l = r_l + γ v_{l+1} − v_l`. `values` has one element more than `rewards`.
///
/// # Errors
///
/// Returns an error if the lengths do not match.
// ANCHOR: advantages
pub fn advantages(
    rewards: ArrayView1<f64>,
    values: ArrayView1<f64>,
    discount: f64,
    lambda: f64,
) -> Result<Array1<f64>, Error> {
    expect("advantages", ("rewards and one", &[rewards.len() + 1]), ("values", &values))?;
    let delta = |l: usize| rewards[l] + discount * values[l + 1] - values[l];
    let inputs = Array1::from_shape_fn(rewards.len(), delta).insert_axis(Axis(0));
    let coeffs = inputs.mapv(|_| discount * lambda);
    let options = Options { direction: Direction::Reverse, ..Options::default() };
    Ok(Problem { inputs, coeffs, options }.solve()?.row(0).to_owned())
}
// ANCHOR_END: advantages

/// Filters by two recurrences one after the other, which is right for every pair of poles,
/// including a double one.
///
/// # Errors
///
/// Returns an error if the engine fails.
// ANCHOR: cascade
pub fn cascade(filter: SecondOrder, signal: ArrayView1<f64>) -> Result<Array1<f64>, Error> {
    let mut signal = signal.mapv(num_complex::Complex::from).insert_axis(Axis(0));
    for pole in filter.poles() {
        let coeffs = signal.mapv(|_| pole);
        signal = Problem::new(signal, coeffs).solve()?;
    }
    Ok(signal.row(0).mapv(|y| y.re))
}
// ANCHOR_END: cascade

/// Returns the constant payment that settles a loan when every period has its own rate.
///
/// The balance is linear in the payment: the balance of the loan alone, minus the payment times the
/// balance of payments of one.
///
/// # Errors
///
/// Returns an error if the engine fails.
// ANCHOR: settle
pub fn settle(loan: f64, rates: ArrayView1<f64>) -> Result<f64, Error> {
    let last = |opening: f64, deposit: f64| -> Result<f64, Error> {
        let deposits = Array1::from_elem(rates.len(), deposit);
        let balances = account(opening, rates, deposits.view()).solve()?;
        Ok(balances.last().copied().unwrap_or(opening))
    };
    Ok(last(loan, 0.0)? / last(0.0, 1.0)?)
}
// ANCHOR_END: settle

/// Returns true where the number of ones so far is odd, by a coefficient of −1 for each one.
///
/// # Errors
///
/// Returns an error if the engine fails.
// ANCHOR: parity
pub fn parity(bits: &[bool]) -> Result<Vec<bool>, Error> {
    let coeffs = Array1::from_iter(bits.iter().map(|&bit| if bit { -1.0 } else { 1.0 }));
    let coeffs = coeffs.insert_axis(Axis(0));
    let options = Options { initial: Some(array![1.0].into()), ..Options::default() };
    let states = Problem { inputs: coeffs.mapv(|_| 0.0), coeffs, options }.solve()?;
    Ok(states.iter().map(|&state| state < 0.0).collect())
}
// ANCHOR_END: parity

#[cfg(test)]
mod tests {
    use super::{advantages, cascade, parity, settle};
    use crate::models::iir::SecondOrder;
    use crate::models::interest::payment;
    use crate::models::rwkv::Wkv;
    use approx::{assert_abs_diff_eq, assert_relative_eq};
    use linrec::contract::golden::array_distance;
    use ndarray::{Array1, Array2, array};

    #[test]
    fn advantages_follow_their_definition() {
        let rewards = array![1.0, 0.0, -2.0, 3.0];
        let values = array![0.5, 0.25, 1.0, -1.0, 2.0];
        let (discount, lambda) = (0.9, 0.8);
        let got = advantages(rewards.view(), values.view(), discount, lambda).unwrap();
        for l in 0..4 {
            let term = |k: usize| {
                let delta = rewards[k] + discount * values[k + 1] - values[k];
                (discount * lambda).powi((k - l) as i32) * delta
            };
            let sum: f64 = (l..4).map(term).sum();
            assert_abs_diff_eq!(got[l], sum, epsilon = 1e-14);
        }
        // With λ = 1 the values in between cancel: the discounted return minus the value remains.
        let whole = advantages(rewards.view(), values.view(), discount, 1.0).unwrap();
        let expected = 1.0 - 2.0 * 0.81 + 3.0 * 0.729 + 2.0 * 0.6561 - 0.5;
        assert_abs_diff_eq!(whole[0], expected, epsilon = 1e-14);
        assert!(advantages(rewards.view(), rewards.view(), discount, lambda).is_err());
    }

    #[test]
    fn a_cascade_takes_a_double_pole() {
        let signal = Array1::from_shape_fn(100, |l| (l as f64 * 0.7).sin());
        for filter in [
            SecondOrder { a1: 1.8, a2: -0.81 }, // twice 0.9
            SecondOrder::swinging(11.0, 0.95),
            SecondOrder { a1: 0.5, a2: 0.3 }, // real poles
        ] {
            let got = cascade(filter, signal.view()).unwrap();
            assert!(array_distance(&got, &filter.direct(signal.view())) < 1e-11, "{filter:?}");
        }
        let double = SecondOrder { a1: 1.0, a2: -0.25 }; // twice 1/2, and no rounding in between
        let message = double.filter(signal.view()).unwrap_err().to_string();
        assert!(message.contains("a double pole"), "{message}");
    }

    #[test]
    fn a_loan_is_settled_at_any_rates() {
        let constant = settle(200_000.0, Array1::from_elem(360, 0.0025).view()).unwrap();
        assert_relative_eq!(constant, payment(200_000.0, 0.0025, 360), max_relative = 1e-7);
        let rates = array![0.1, 0.0, 0.2];
        let pay = settle(100.0, rates.view()).unwrap();
        let balance = ((100.0 * 1.1 - pay) - pay) * 1.2 - pay;
        assert_abs_diff_eq!(balance, 0.0, epsilon = 1e-12);
    }

    #[test]
    fn parity_counts_ones() {
        let bits: Vec<bool> = (0..1000).map(|l| l * l % 7 < 3).collect();
        let mut odd = false;
        let expected: Vec<bool> = bits
            .iter()
            .map(|&bit| {
                odd ^= bit;
                odd
            })
            .collect();
        assert_eq!(parity(&bits).unwrap(), expected);
        assert!(parity(&[]).unwrap().is_empty());
    }

    #[test]
    fn a_bonus_equal_to_the_decay_reads_the_states_unchanged() {
        let wkv = Wkv { decay: array![0.3], bonus: array![0.3] };
        let keys = Array2::from_shape_fn((1, 50), |(_, l)| (l as f64).sin());
        let values = Array2::from_shape_fn((1, 50), |(_, l)| (l as f64 * 0.3).cos());
        let states = wkv.problem(keys.view(), values.view()).unwrap().solve().unwrap();
        let averages = wkv.read(states.view(), keys.view(), values.view());
        let ratio = &states.row(0) / &states.row(1);
        assert!(array_distance(&averages.row(0).to_owned(), &ratio) < 1e-12);
    }
}
