//! A selective scan step by step, straight from its definition: what the other ones are compared with.

use linrec::Error;

use crate::activation::{silu, softplus};
use crate::arguments::zeros;
use crate::{Arguments, Output, Real};

/// Computes a selective scan in double precision, one step after the other.
///
/// # Errors
///
/// If the shapes do not fit together.
// ANCHOR: direct
pub fn direct<T: Real>(arguments: &Arguments<T>) -> Result<Output<f64>, Error> {
    let sizes = arguments.sizes()?;
    let mut y = zeros((sizes.batch, sizes.channels, sizes.len))?;
    let mut last_state = zeros((sizes.batch, sizes.channels, sizes.states))?;
    for i in 0..sizes.batch {
        for j in 0..sizes.channels {
            let group = j / sizes.group_size();
            for l in 0..sizes.len {
                let u = arguments.u[[i, j, l]].widen();
                let mut delta = arguments.delta[[i, j, l]].widen();
                delta += arguments.delta_bias.map_or(0.0, |bias| bias[j].widen());
                if arguments.delta_softplus {
                    delta = softplus(delta);
                }
                let mut sum = arguments.d.map_or(0.0, |d| d[j].widen() * u);
                for n in 0..sizes.states {
                    let (a, b) =
                        (arguments.a[[j, n]].widen(), arguments.b[[i, group, n, l]].widen());
                    let state = &mut last_state[[i, j, n]];
                    *state = *state * (delta * a).exp() + delta * b * u;
                    sum += arguments.c[[i, group, n, l]].widen() * *state;
                }
                y[[i, j, l]] = sum * arguments.z.map_or(1.0, |z| silu(z[[i, j, l]].widen()));
            }
        }
    }
    Ok(Output { y, last_state })
}
// ANCHOR_END: direct
