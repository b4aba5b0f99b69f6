//! A bound on the distance from the states of a guess that hardly changes any more.

use linrec::reference::{self, Rounding};
use linrec::{Element, Error};
use ndarray::{Array1, Array2, ArrayView2, Axis, stack};

use super::{Gated, Slopes, errors};
use crate::Problem;
use ch04_gradient::shift::shift;
use linrec::Direction;

/// The unit round-off.
const U: f64 = f64::UNIT_ROUNDOFF;

impl Gated {
    /// Bounds `|guess − states|` at every position, `[seq_len]`, for the guess that follows `last`.
    ///
    /// Let `J` be the largest row sum of the step's Jacobian, `δ` the last change, `B` the rounding
    /// of the linear recurrence, and `r` the rounding of the step. Then the error grows as
    /// `e_l ≤ J_l e_{l-1} + ρ_l`, where `ρ_l = r + B_l + |c_l| (B_{l-1} + δ_{l-1}) + J_l δ_{l-1}`:
    /// a linear recurrence. It holds to first order, since `J` is taken at the states.
    ///
    /// # Errors
    ///
    /// Returns an error if the shapes do not match.
    pub fn error_bound(
        &self,
        slopes: Slopes,
        last: ArrayView2<f64>,
        guess: ArrayView2<f64>,
        states: ArrayView2<f64>,
    ) -> Result<Array1<f64>, Error> {
        let problem = self.linearised(last, slopes)?;
        let levels = linrec::contract::Domain::tree_levels(self.seq_len());
        let rounding = Rounding { levels, exp_ulps: 0.0 };
        let (x, c) = (problem.inputs.view(), problem.coeffs.view());
        let solving = largest(&reference::forward_bound(x, c, &problem.options, rounding)?.outputs);
        let change = errors(guess, last);
        let slope = largest(&problem.coeffs);
        let (norms, evaluating) = self.norms_and_rounding(states)?;

        let earlier = stack(Axis(0), &[solving.view(), change.view()]);
        let Ok(earlier) = earlier else {
            return Err(Error::OutOfMemory { operation: "bound", bytes: 16 * change.len() });
        };
        let earlier = shift(earlier.view(), Direction::Forward, Array1::zeros(2).view())?;
        let (solving_before, change_before) = (earlier.row(0), earlier.row(1));
        let added = evaluating
            + &solving
            + &slope * &(&solving_before + &change_before)
            + &norms * &change_before;
        let walk = Problem::new(added.insert_axis(Axis(0)), norms.insert_axis(Axis(0)));
        Ok(walk.solve()?.row(0).to_owned())
    }

    /// Returns the largest row sum of the step's Jacobian at every position, and the rounding of
    /// the step in both ways to evaluate it.
    fn norms_and_rounding(
        &self,
        states: ArrayView2<f64>,
    ) -> Result<(Array1<f64>, Array1<f64>), Error> {
        let (size, seq_len) = states.dim();
        let before = shift(states, Direction::Forward, Array1::zeros(size).view())?;
        let step = self.step(before.view(), 0..seq_len);
        // Sums of `size` products and the drive: each product has at most `size + 1` roundings.
        let sizes = before.mapv(f64::abs);
        let sums = |weights: &Array2<f64>, drive: &Array2<f64>| {
            (weights.mapv(f64::abs).dot(&sizes) + drive.mapv(f64::abs)) * ((size + 1) as f64 * U)
        };
        let in_gate = sums(&self.gate, &self.gate_drive);
        let in_candidate = sums(&self.candidate, &self.candidate_drive);
        let mut norms = Array1::<f64>::zeros(seq_len);
        let mut rounding = Array1::<f64>::zeros(seq_len);
        for ((i, l), &h) in before.indexed_iter() {
            let (z, t) = (step.gates[[i, l]], step.candidates[[i, l]]);
            let through = |j: usize| {
                (t - h) * z * (1.0 - z) * self.gate[[i, j]]
                    + z * (1.0 - t * t) * self.candidate[[i, j]]
            };
            let own = |j: usize| if i == j { 1.0 - z } else { 0.0 };
            let row: f64 = (0..size).map(|j| (own(j) + through(j)).abs()).sum();
            norms[l] = norms[l].max(row);
            // The slopes are at most 1/4 and 1; each function itself rounds by a few units.
            let gate = in_gate[[i, l]] / 4.0 + 4.0 * U;
            let candidate = in_candidate[[i, l]] + 4.0 * U;
            let once = (t - h).abs() * gate + z * candidate + 4.0 * U;
            // Twice for the step itself; then `after − c before`, of numbers below 1 and a slope
            // near the row sum.
            rounding[l] = rounding[l].max(2.0 * once + (2.0 + 2.0 * row) * U);
        }
        Ok((norms, rounding))
    }
}

/// Returns the largest absolute value at every position.
fn largest(array: &Array2<f64>) -> Array1<f64> {
    array.map_axis(Axis(0), |column| column.iter().fold(0.0, |a: f64, b| a.max(b.abs())))
}
