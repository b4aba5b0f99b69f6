//! Compound interest: the balance of an account.

use linrec::Options;
use ndarray::{Array1, ArrayView1, Axis, array};

use crate::Problem;

/// Makes the problem of an account's balance after each period: it grows by the period's rate, and
/// the deposit is added.
///
/// A rate of 0.01 is one percent per period; a payment out of the account is a negative deposit.
// ANCHOR: account
pub fn account(opening: f64, rates: ArrayView1<f64>, deposits: ArrayView1<f64>) -> Problem<f64> {
    Problem {
        inputs: deposits.insert_axis(Axis(0)).to_owned(),
        coeffs: rates.insert_axis(Axis(0)).mapv(|rate| 1.0 + rate),
        options: Options { initial: Some(array![opening].into()), ..Options::default() },
    }
}
// ANCHOR_END: account

/// Returns the payment that settles a loan at a constant rate, by the annuity formula.
pub fn payment(loan: f64, rate: f64, periods: usize) -> f64 {
    if rate == 0.0 {
        return loan / periods as f64;
    }
    loan * rate / -f64::exp_m1(-(periods as f64) * rate.ln_1p())
}

/// Returns the rest of the loan after each payment, by the formula for a geometric series.
pub fn remaining(loan: f64, rate: f64, payment: f64, periods: usize) -> Array1<f64> {
    Array1::from_shape_fn(periods, |l| {
        let growth = f64::exp_m1((l + 1) as f64 * rate.ln_1p());
        loan * (1.0 + growth) - payment * if rate == 0.0 { (l + 1) as f64 } else { growth / rate }
    })
}
