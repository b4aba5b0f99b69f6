//! The recurrence as two prefix sums.

use num_traits::Float;

use crate::{Order, Real, SignedLog};

// ANCHOR: heinsen
/// Computes `ln y` of a sequence with positive inputs, coefficients and initial state from their
/// logarithms (Heinsen 2023, the special case).
///
/// The result has one element for every pair of an input and a coefficient.
pub fn heinsen<T: Real>(
    order: Order,
    log_inputs: &[T],
    log_coeffs: &[T],
    log_initial: T,
) -> Vec<T> {
    // The first prefix sum: a_l = ln (c_0 ⋯ c_l).
    let mut a = log_coeffs.to_vec();
    order.prefix(&mut a, |left, right| left + right);

    // The second: b_l = ln (y_{-1} + Σ x_k / (c_0 ⋯ c_k)).
    let terms = log_inputs.iter().zip(&a).map(|(&log_x, &a)| log_x - a);
    let mut b: Vec<T> = std::iter::once(log_initial).chain(terms).collect();
    order.prefix(&mut b, log_add_exp);

    a.iter().zip(&b[1..]).map(|(&a, &b)| a + b).collect()
}
// ANCHOR_END: heinsen

// ANCHOR: log_add_exp
/// `ln (e^a + e^b)`, for any size of `a` and `b`.
pub fn log_add_exp<T: Real>(a: T, b: T) -> T {
    let (large, small) = if a >= b { (a, b) } else { (b, a) };
    if small == T::neg_infinity() {
        return large; // e^-∞ adds nothing
    }
    large + Float::ln_1p(Float::exp(small - large))
}
// ANCHOR_END: log_add_exp

// ANCHOR: two_sums
/// The general case: the same two sums, over numbers that carry their sign.
///
/// No coefficient may be zero: its logarithm could not be subtracted again.
pub fn two_sums<T: Real>(
    order: Order,
    inputs: &[SignedLog<T>],
    coeffs: &[SignedLog<T>],
    initial: SignedLog<T>,
) -> Vec<SignedLog<T>> {
    let mut a = coeffs.to_vec();
    order.prefix(&mut a, SignedLog::times);

    let terms = inputs.iter().zip(&a).map(|(&x, &a)| x.over(a));
    let mut b: Vec<_> = std::iter::once(initial).chain(terms).collect();
    order.prefix(&mut b, SignedLog::plus);

    a.iter().zip(&b[1..]).map(|(&a, &b)| a.times(b)).collect()
}
// ANCHOR_END: two_sums

#[cfg(test)]
mod tests {
    use super::{heinsen, two_sums};
    use crate::{Order, SignedLog};
    use approx::{assert_abs_diff_eq, assert_relative_eq};
    use ch01_sequential_loop::linrec;

    #[test]
    fn both_cases_solve_the_recurrence() {
        let (inputs, coeffs) = ([1.0_f64, 0.0, 3.0, 0.5, 2.0], [0.5_f64, 0.9, 2.0, 0.1, 1.0]);
        let signs = [1.0, -1.0, -1.0, 1.0, -1.0];
        let signed: Vec<f64> = coeffs.iter().zip(signs).map(|(c, s)| c * s).collect();
        for order in [Order::InOrder, Order::Tree] {
            let logs = |values: &[f64]| values.iter().map(|v| v.ln()).collect::<Vec<_>>();
            let special = heinsen(order, &logs(&inputs), &logs(&coeffs), 4_f64.ln());
            for (log, exact) in special.iter().zip(linrec(&inputs, &coeffs, 4.0)) {
                assert_relative_eq!(log.exp(), exact, max_relative = 1e-14);
            }
            let pack =
                |values: &[f64]| values.iter().map(|&v| SignedLog::of(v)).collect::<Vec<_>>();
            let general = two_sums(order, &pack(&inputs), &pack(&signed), SignedLog::of(-4.0));
            for (y, exact) in general.iter().zip(linrec(&inputs, &signed, -4.0)) {
                assert_abs_diff_eq!(y.value(), exact, epsilon = 1e-14);
            }
        }
    }

    #[test]
    fn logarithms_may_exceed_the_range_of_numbers() {
        // 5000 doublings: 2^5000 exceeds f64, its logarithm does not.
        let (zeros, doublings) = (vec![f64::NEG_INFINITY; 5000], vec![2_f64.ln(); 5000]);
        let last = heinsen(Order::Tree, &zeros, &doublings, 0.0)[4999];
        assert_abs_diff_eq!(last, 5000.0 * 2_f64.ln(), epsilon = 1e-10);
    }

    #[test]
    fn an_empty_sequence_has_an_empty_result() {
        assert!(heinsen::<f32>(Order::Tree, &[], &[], 0.0).is_empty());
        assert!(two_sums::<f32>(Order::InOrder, &[], &[], SignedLog::of(1.0)).is_empty());
    }
}
