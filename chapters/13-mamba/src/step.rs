//! One position at a time, as a model that writes text computes.

use linrec::{Element, Error};
use ndarray::{Array2, Array3, s};

use crate::activation::{rounded, silu};
use crate::arguments::{Arguments, zeros};
use crate::scan::step_size;
use crate::{Output, State};

/// Advances the states `[batch, channels, states]` by one step, past position `l` of the arguments,
/// and returns `y` at `l`, `[batch, channels]`.
///
/// Other positions of the arguments are ignored, and so is `initial`. Each operation is rounded as
/// in [`selective_scan_by`](crate::selective_scan_by) with the sequential loop, so the bits are the
/// same.
///
/// # Errors
///
/// Returns [`Error::ShapeMismatch`] if the shapes do not fit together, or if `l` is out of range.
// ANCHOR: step
pub fn step<S: State>(
    arguments: &Arguments<S>,
    l: usize,
    states: &mut Array3<S>,
) -> Result<Array2<S::Real>, Error> {
    let (sizes, given) = (check(arguments, l, states)?, arguments);
    let mut y = zeros((sizes.batch, sizes.channels))?;
    for ((i, j), y) in y.indexed_iter_mut() {
        let u = given.u[[i, j, l]];
        let bias = given.delta_bias.map_or(0.0, |bias| bias[j].widen());
        let delta = step_size(given.delta[[i, j, l]], bias, given.delta_softplus);
        for (n, state) in states.slice_mut(s![i, j, ..]).iter_mut().enumerate() {
            let [b, c] =
                [given.b, given.c].map(|mixing| mixing.at([i, j, n, l], sizes.group_size()));
            let coeff = given.a[[j, n]].times(delta).exponential();
            *state = *state * coeff + b.times(delta * u);
            *y += state.read(c);
        }
        if let Some(d) = given.d {
            *y += d[j] * u;
        }
        if let Some(z) = given.z {
            *y = *y * rounded(silu, z[[i, j, l]]);
        }
    }
    Ok(y)
}
// ANCHOR_END: step

fn check<S: State>(
    arguments: &Arguments<S>,
    l: usize,
    states: &Array3<S>,
) -> Result<crate::Sizes, Error> {
    let sizes = arguments.sizes()?;
    let mismatch = |expected: (&'static str, Vec<usize>), name, shape: Vec<usize>| {
        Err(Error::ShapeMismatch { operation: "step", arrays: vec![expected, (name, shape)] })
    };
    let expected = [sizes.batch, sizes.channels, sizes.states];
    if states.shape() != expected {
        return mismatch(("last_state", expected.to_vec()), "states", states.shape().to_vec());
    }
    if l >= sizes.len {
        return mismatch(("u", arguments.u.shape().to_vec()), "position", vec![l]);
    }
    Ok(sizes)
}

/// Scans a sequence position by position, from the initial states.
///
/// # Errors
///
/// Returns an error if the shapes do not fit together.
pub fn step_by_step<S: State>(arguments: &Arguments<S>) -> Result<Output<S>, Error> {
    let sizes = arguments.sizes()?;
    let mut y = zeros((sizes.batch, sizes.channels, sizes.len))?;
    let mut last_state = zeros((sizes.batch, sizes.channels, sizes.states))?;
    if let Some(initial) = arguments.initial {
        last_state.assign(&initial);
    }
    for l in 0..sizes.len {
        y.slice_mut(s![.., .., l]).assign(&step(arguments, l, &mut last_state)?);
    }
    Ok(Output { y, last_state })
}
