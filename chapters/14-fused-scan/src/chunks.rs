//! The library's scan of sequences that are cut into chunks of time.

use linrec::Error;
use linrec::device::{Device, Exponential, ScanForwardOptions, SelectiveScan};

use crate::ladder::Arrays;
use crate::problem::{Problem, STATES};

/// The outputs, and how many instructions there were for each state of each output, with so many
/// chunks at most.
///
/// # Errors
///
/// Those of the device; the second number is zero on a GPU.
pub fn compute(
    device: &Device,
    exponential: Exponential,
    problem: &Problem,
    chunks: usize,
) -> Result<(Vec<f32>, f64), Error> {
    let arrays = Arrays::upload(device, problem)?;
    let (inputs, shape) = arrays.for_the_library();
    let elements = problem.sizes.elements();
    let mut out = device.allocate(elements)?;
    out.poison()?;
    let options = ScanForwardOptions { chunks: Some(chunks), ..Default::default() };
    let scan = SelectiveScan::<f32>::new(device, exponential);
    let launched = scan.forward_into(&inputs, &mut out, shape, options)?;
    let of_warps = launched.counters().map_or(0, |counters| counters.instructions);
    let each = 32.0 * of_warps as f64 / (elements * STATES) as f64;
    Ok((out.download()?, each))
}
