//! The library's scan of sequences that are cut into chunks of time.

use linrec::Error;
use linrec::device::{Device, Exponential, ScanForwardOptions, SelectiveScan};

use crate::ladder::Arrays;
use crate::problem::{Problem, STATES};

/// Computes the outputs with at most `chunks` chunks, and the number of instructions for each state
/// of each output, which is zero on a GPU.
///
/// # Errors
///
/// Returns an error if the device fails.
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
