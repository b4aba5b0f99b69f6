//! Three recurrences that follow the ball through any number of swaps.

use std::f64::consts::TAU;

use linrec::{Error, Options};
use ndarray::{Array1, Array2, Axis, array};
use num_complex::Complex;

use super::Swap;
use crate::Problem;

/// Follows the ball by matrices as coefficients: the state is 1 for its cup and 0 for the others.
// ANCHOR: matrices
pub fn by_matrices(swaps: &[Swap]) -> Vec<usize> {
    let states = swaps.iter().scan(array![1.0, 0.0, 0.0], |state, &swap| {
        *state = matrix(swap).dot(state);
        Some(state.iter().position(|&there| there == 1.0).unwrap_or(0))
    });
    states.collect()
}

/// Returns the matrix `[3, 3]` that exchanges two of three.
pub fn matrix(swap: Swap) -> Array2<f64> {
    match swap {
        Swap::Left => array![[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]],
        Swap::Right => array![[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]],
    }
}
// ANCHOR_END: matrices

/// Follows the ball by one recurrence with numbers as coefficients, whose state is an integer
/// without limit: its remainder by 3 is the cup. A swap mirrors the cups, with a coefficient of −1;
/// the left swap also moves them by one.
///
/// # Errors
///
/// Returns an error if the engine fails.
// ANCHOR: one_row
pub fn by_one_row(swaps: &[Swap]) -> Result<Vec<usize>, Error> {
    let inputs = swaps.iter().map(|swap| if *swap == Swap::Left { 1.0 } else { 0.0 });
    let inputs = Array1::from_iter(inputs).insert_axis(Axis(0));
    let coeffs = inputs.mapv(|_| -1.0);
    let states = Problem::new(inputs, coeffs).solve()?;
    Ok(states.iter().map(|state: &f64| state.rem_euclid(3.0) as usize).collect())
}
// ANCHOR_END: one_row

/// Follows the ball by two recurrences with numbers as coefficients, one after the other: the
/// coefficients of the second depend on the outputs of the first. All inputs are zero.
///
/// # Errors
///
/// Returns an error if the engine fails.
// ANCHOR: two_layers
pub fn by_two_layers(swaps: &[Swap]) -> Result<Vec<usize>, Error> {
    // The first layer: 1 after an even number of swaps, -1 after an odd one.
    let initial = Some(array![1.0].into());
    let options = Options { initial, ..Options::default() };
    let coeffs = Array2::from_elem((1, swaps.len()), -1.0);
    let sides = Problem { inputs: Array2::zeros(coeffs.dim()), coeffs, options }.solve()?;

    // The second layer: a left swap turns by a third, in the direction from the first layer.
    let turn = |(&swap, &side): (&Swap, &f64)| match swap {
        Swap::Left => Complex::cis(side * TAU / 3.0),
        Swap::Right => Complex::ONE,
    };
    let coeffs = Array1::from_iter(swaps.iter().zip(&sides).map(turn)).insert_axis(Axis(0));
    let initial = Some(array![Complex::ONE].into());
    let options = Options { initial, ..Options::default() };
    let turned = Problem { inputs: Array2::zeros(coeffs.dim()), coeffs, options }.solve()?;

    // Cup k is at k thirds of the circle; an odd number of swaps mirrors the picture.
    let cup = |(z, side): (&Complex<f64>, &f64)| {
        let thirds = (side * z.arg() / (TAU / 3.0)).round();
        thirds.rem_euclid(3.0) as usize
    };
    Ok(turned.iter().zip(&sides).map(cup).collect())
}
// ANCHOR_END: two_layers
