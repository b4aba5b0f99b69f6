//! Fused scans with one planted mistake each, and what is found in them.

use linrec::Error;
use linrec::contract::suspect::{self, Finding};
use linrec::device::Device;

use crate::ladder::{Kernel, Rung};
use crate::problem::{Problem, Sizes, worst};

/// The file of the kernel without a mistake.
pub const TWIN: &str = "fused/quad.cu";

/// Returns the names of the mistakes, in the order of the page.
pub fn names() -> Vec<&'static str> {
    suspect::names(TWIN).collect()
}

/// Returns what is found in the kernel of this name, or in the correct one by the name of
/// `fused/quad`; `None` if nothing is found.
///
/// # Errors
///
/// Returns [`Error::Device`] if no kernel of this name is shipped.
// ANCHOR: examine
pub fn examine(name: &str) -> Result<Option<Finding>, Error> {
    let file = if name.contains('/') { format!("{name}.cu") } else { format!("broken/{name}.cu") };
    let kernel = Kernel::load(&Device::simt(), Rung::Quad, &file)?;
    // Partly filled blocks and tiles, and decays near one.
    let sizes = Sizes { batch: 2, channels: 70, len: 75 };
    let problem = Problem::draw(sizes, true, 142);
    let case = format!("{} channels, {} steps", sizes.channels, sizes.len);
    let what = match kernel.compute(&problem) {
        Err(error) => error.to_string(),
        Ok((out, _)) => {
            let expected = problem.outputs(Rung::Quad.order(sizes.len));
            let share = worst(&out, &expected);
            if share <= 1.0 {
                return Ok(None);
            }
            let off = |(got, expected): (&f32, &crate::problem::Bounded)| {
                let right = (f64::from(*got) - expected.value).abs() <= 1.001 * expected.bound;
                !right
            };
            let first = out.iter().zip(&expected).position(off).unwrap_or(0);
            format!(
                "out[{first}] is {} instead of {:.6}: the largest error is {share:.0} times its bound",
                out[first], expected[first].value,
            )
        }
    };
    Ok(Some(Finding { case, what }))
}
// ANCHOR_END: examine
