//! Solutions of the page's exercises.

use linrec::{Direction, Element, Engine, Error, Options};
use ndarray::ArrayView1;

use crate::{Loop, linrec};

// ANCHOR: horner
/// Computes the polynomial `w_0 t^n + w_1 t^{n-1} + … + w_n` at `t`. The highest power's
/// coefficient comes first.
pub fn polynomial(w: &[f64], t: f64) -> f64 {
    let states = linrec(w, &vec![t; w.len()], 0.0);
    states.last().copied().unwrap_or(0.0)
}
// ANCHOR_END: horner

// ANCHOR: undo
/// Recovers the inputs of a recurrence from zero with these outputs and coefficients.
pub fn undo<T: Element>(outputs: &[T], coeffs: &[T]) -> Vec<T> {
    let previous = [T::zero()].into_iter().chain(outputs.iter().copied());
    let all = outputs.iter().zip(coeffs).zip(previous);
    all.map(|((&y, &c), previous)| y - previous * c).collect()
}
// ANCHOR_END: undo

// ANCHOR: returns
/// Computes the discounted return from every time step to the end of its episode: `g_l = r_l + d_l
/// g_{l+1}`. The coefficient `d_l` is `discount`, or 0 where `last[l]` marks the end of an episode.
pub fn discounted_returns(
    rewards: ArrayView1<f64>,
    last: &[bool],
    discount: f64,
) -> Result<Vec<f64>, Error> {
    let discounts: Vec<f64> = last.iter().map(|&end| if end { 0.0 } else { discount }).collect();
    let coeffs = ArrayView1::from(&discounts);
    let options = Options { direction: Direction::Reverse, ..Options::default() };
    let row = ndarray::Axis(0);
    let result = Loop.forward(rewards.insert_axis(row), coeffs.insert_axis(row), &options)?;
    Ok(result.outputs.into_iter().collect())
}
// ANCHOR_END: returns

// ANCHOR: half_life
/// Returns the coefficient with which the past loses half of its weight every `steps` steps.
pub fn coeff_of_half_life(steps: f64) -> f64 {
    0.5_f64.powf(1.0 / steps)
}
// ANCHOR_END: half_life
