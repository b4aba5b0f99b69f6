//! Discounted returns: the value of all rewards from now on.

use linrec::{Direction, Error, Options};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2};

use crate::{Problem, expect};

/// Makes the problem of the discounted return from every step on, until the episode ends.
///
/// `rewards` and `ends` have the shape `[num_envs, steps]`; where `ends` is true, nothing later
/// counts. `beyond`, `[num_envs]`, is the value of everything after the last step.
///
/// # Errors
///
/// Returns an error if the shapes do not match.
// ANCHOR: returns
pub fn returns(
    rewards: ArrayView2<f64>,
    ends: ArrayView2<bool>,
    beyond: ArrayView1<f64>,
    discount: f64,
) -> Result<Problem<f64>, Error> {
    expect("returns", ("rewards", rewards.shape()), ("ends", &ends))?;
    Ok(Problem {
        inputs: rewards.to_owned(),
        coeffs: ends.mapv(|end| if end { 0.0 } else { discount }),
        options: Options {
            direction: Direction::Reverse,
            initial: Some(beyond.to_owned().into()),
            log_coeffs: false,
        },
    })
}
// ANCHOR_END: returns

/// Computes the discounted return from every step on, `[num_envs, steps]`, by its definition: a sum
/// with powers of the discount over the rewards until the episode ends and, if it does not end, the
/// value beyond the last step.
///
/// The arrays have the shapes that [`returns`] takes.
pub fn direct(
    rewards: ArrayView2<f64>,
    ends: ArrayView2<bool>,
    beyond: ArrayView1<f64>,
    discount: f64,
) -> Array2<f64> {
    Array2::from_shape_fn(rewards.dim(), |(env, l)| {
        let steps = rewards.ncols();
        let last = (l..steps).find(|&k| ends[[env, k]]);
        let power = |k: usize| discount.powi((k - l) as i32);
        let within: f64 =
            (l..=last.unwrap_or(steps - 1)).map(|k| power(k) * rewards[[env, k]]).sum();
        within + if last.is_none() { power(steps) * beyond[env] } else { 0.0 }
    })
}

/// Returns the number of steps that count, the sum of the discount's powers `1 / (1 − discount)`.
pub fn horizon(discount: f64) -> f64 {
    1.0 / (1.0 - discount)
}

/// Makes episodes with a reward of 1 in every `period`-th step and an end in every `length`-th.
pub fn episodes(steps: usize, period: usize, length: usize) -> (Array1<f64>, Array1<bool>) {
    let every = |n: usize| move |l: usize| n > 0 && l % n == n - 1;
    let reward = every(period);
    (
        Array1::from_shape_fn(steps, |l| if reward(l) { 1.0 } else { 0.0 }),
        Array1::from_shape_fn(steps, every(length)),
    )
}
