//! The library's scan of sequences that are cut into chunks of time.

use linrec::Error;
use linrec::device::{
    Device, Exponential, ScanCoupling, ScanForwardOptions, ScanInputs, ScanShape, SelectiveScan,
};

use crate::problem::{Problem, STATES, Sizes};

/// The outputs, and how many instructions there were for each state of each output, with so many chunks at most.
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
    let Problem { u, delta, z, b, c, a, d, sizes } = problem;
    let Sizes { batch, channels, len } = *sizes;
    let upload = |values: &[f32]| device.upload(values);
    let inputs = ScanInputs {
        u: &upload(u)?,
        delta: &upload(delta)?,
        a: &upload(a)?,
        b: ScanCoupling::Varying(&upload(b)?),
        c: ScanCoupling::Varying(&upload(c)?),
        d: Some(&upload(d)?),
        z: Some(&upload(z)?),
        delta_bias: None,
        softplus: true,
        initial: None,
        restarts: None,
    };
    let shape = ScanShape { batch, channels, seq_len: len, states: STATES, groups: 1 };
    let mut out = device.allocate(sizes.elements())?;
    out.poison()?;
    let options = ScanForwardOptions { chunks: Some(chunks), ..Default::default() };
    let scan = SelectiveScan::<f32>::new(device, exponential);
    let launched = scan.forward_into(&inputs, &mut out, shape, options)?;
    let of_warps = launched.counters().map_or(0, |counters| counters.instructions);
    let each = 32.0 * of_warps as f64 / (sizes.elements() * STATES) as f64;
    Ok((out.download()?, each))
}
