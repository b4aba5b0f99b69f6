//! Special cases of the recurrence for particular inputs and coefficients.

use linrec::Element;

use crate::linrec;

// ANCHOR: sum_and_product
/// Computes the sums of the first 1, 2, … inputs: every coefficient is 1.
pub fn cumulative_sum<T: Element>(inputs: &[T]) -> Vec<T> {
    linrec(inputs, &vec![T::one(); inputs.len()], T::zero())
}

/// Computes the products of the first 1, 2, … coefficients: all inputs are 0, and the state starts
/// at 1.
pub fn cumulative_product<T: Element>(coeffs: &[T]) -> Vec<T> {
    linrec(&vec![T::zero(); coeffs.len()], coeffs, T::one())
}
// ANCHOR_END: sum_and_product

// ANCHOR: averages
/// Computes the moving average `y_l = c y_{l-1} + (1 - c) x_l`, in which the past fades
/// exponentially.
pub fn exponential_average(inputs: &[f64], coeff: f64, initial: f64) -> Vec<f64> {
    let shares: Vec<f64> = inputs.iter().map(|x| (1.0 - coeff) * x).collect();
    linrec(&shares, &vec![coeff; inputs.len()], initial)
}

/// Computes the mean of the first 1, 2, … inputs: input `l` joins `l` others with weight `1/(l+1)`.
pub fn running_mean(inputs: &[f64]) -> Vec<f64> {
    let count = |l: usize| (l + 1) as f64;
    let shares: Vec<f64> = inputs.iter().enumerate().map(|(l, x)| x / count(l)).collect();
    let coeffs: Vec<f64> = (0..inputs.len()).map(|l| l as f64 / count(l)).collect();
    linrec(&shares, &coeffs, 0.0)
}
// ANCHOR_END: averages

// ANCHOR: restart
/// Sets the coefficient of every position in `starts` to 0, so that the state forgets the past and
/// a new sequence begins. Positions past the end are ignored.
pub fn restart<T: Element>(coeffs: &mut [T], starts: &[usize]) {
    for &start in starts {
        if let Some(c) = coeffs.get_mut(start) {
            *c = T::zero();
        }
    }
}
// ANCHOR_END: restart

// ANCHOR: gate
/// Computes the average since the last jump, over about `1/(1-slowest)` inputs at most. An input
/// that differs from the previous one by more than `jump` erases the past.
///
/// Returns the averages and the coefficients that made them.
pub fn gated_average(inputs: &[f64], jump: f64, slowest: f64) -> (Vec<f64>, Vec<f64>) {
    let mut coeffs = Vec::with_capacity(inputs.len());
    let mut since_jump = 0.0;
    for (l, x) in inputs.iter().enumerate() {
        if l == 0 || (x - inputs[l - 1]).abs() > jump {
            since_jump = 0.0;
        }
        coeffs.push(f64::min(since_jump / (since_jump + 1.0), slowest));
        since_jump += 1.0;
    }
    let shares: Vec<f64> = inputs.iter().zip(&coeffs).map(|(x, c)| (1.0 - c) * x).collect();
    (linrec(&shares, &coeffs, 0.0), coeffs)
}
// ANCHOR_END: gate
