//! How far a selective scan in `f32` may be from the same one in double precision: every operation once
//! more, on [`Count`]s.

use linrec::{Element, Error};
use ndarray::{Array1, Array2, Array3, Array4, ArrayView3, Axis, Zip};
use rayon::prelude::*;

use crate::activation::{sigmoid, silu, silu_slope, softplus};
use crate::arguments::{Arguments, Sizes};
use crate::rounding::Count;
use crate::{Gradients, Output, Real};

/// A function that is computed in double precision and rounded once. (The second one is far more than
/// the error of double precision.)
const ACTIVATION_ROUNDINGS: f64 = 2.0;

/// The largest errors that [`selective_scan`](crate::selective_scan) may make, result by result.
///
/// `levels` are the levels of additions that the engine of the recurrence combines partial results with, see
/// [`Rounding`](linrec::reference::Rounding).
///
/// # Errors
///
/// If the shapes do not fit together.
pub fn forward<T: Real>(arguments: &Arguments<T>, levels: usize) -> Result<Output<f64>, Error> {
    let Sizes { batch, channels, states, len, .. } = arguments.sizes()?;
    let mut y = Array3::zeros((batch, channels, len));
    let mut last_state = Array3::zeros((batch, channels, states));
    let rows: Vec<_> = Zip::indexed(y.lanes_mut(Axis(2)))
        .and(last_state.lanes_mut(Axis(2)))
        .into_par_iter()
        .collect::<Vec<_>>();
    rows.into_par_iter().for_each(|((i, j), mut y, mut last_state)| {
        let counted = Counted::of(arguments, levels, i, j);
        for (l, y) in y.iter_mut().enumerate() {
            *y = counted.y(l).bound::<T>();
        }
        for (n, state) in last_state.iter_mut().enumerate().filter(|_| len > 0) {
            *state = counted.states[[n, len - 1]].bound::<T>();
        }
    });
    Ok(Output { y, last_state })
}

/// One channel, counted.
struct Counted<'a, T> {
    arguments: &'a Arguments<'a, T>,
    place: [usize; 3],
    levels: f64,
    delta: Vec<Count>,
    coeffs: Array2<Count>,
    states: Array2<Count>,
}

impl<'a, T: Real> Counted<'a, T> {
    fn of(arguments: &'a Arguments<'_, T>, levels: usize, i: usize, j: usize) -> Self {
        todo!()
    }
}
