//! A selective scan step by step, straight from its definition: the reference for all others.

use linrec::{Element, Error};

use crate::activation::{silu, softplus};
use crate::arguments::zeros;
use crate::{Arguments, Output, State};

/// Computes a selective scan in double precision, one step after the other.
///
/// # Errors
///
/// Returns an error if the shapes do not fit together.
// ANCHOR: direct
pub fn direct<S: State>(arguments: &Arguments<S>) -> Result<Output<S::Wide>, Error> {
    let sizes = arguments.sizes()?;
    let mut y = zeros((sizes.batch, sizes.channels, sizes.len))?;
    let mut last_state = zeros((sizes.batch, sizes.channels, sizes.states))?;
    if let Some(initial) = arguments.initial {
        last_state.zip_mut_with(&initial, |state, initial| *state = initial.widen());
    }
    for i in 0..sizes.batch {
        for j in 0..sizes.channels {
            for l in 0..sizes.len {
                let u = arguments.u[[i, j, l]].widen();
                let mut delta = arguments.delta[[i, j, l]].widen();
                delta += arguments.delta_bias.map_or(0.0, |bias| bias[j].widen());
                if arguments.delta_softplus {
                    delta = softplus(delta);
                }
                let mut sum = arguments.d.map_or(0.0, |d| d[j].widen() * u);
                for n in 0..sizes.states {
                    let (a, place) = (arguments.a[[j, n]].widen(), [i, j, n, l]);
                    let b = arguments.b.at(place, sizes.group_size()).widen();
                    let c = arguments.c.at(place, sizes.group_size()).widen();
                    let state = &mut last_state[[i, j, n]];
                    *state = *state * a.times(delta).exponential() + b.times(delta * u);
                    sum += state.read(c);
                }
                y[[i, j, l]] = sum * arguments.z.map_or(1.0, |z| silu(z[[i, j, l]].widen()));
            }
        }
    }
    Ok(Output { y, last_state })
}
// ANCHOR_END: direct
