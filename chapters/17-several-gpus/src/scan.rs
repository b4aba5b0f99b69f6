//! The fused selective scan, cut along its length: ranks hand the states on, batch by batch.

use linrec::Error;
use linrec::device::{
    Buffer, Rank, ScanCoupling, ScanForwardOptions, ScanInputs, ScanShape, SelectiveScan,
};

/// What a rank has of the arrays: its stretch of time, of every batch and channel.
#[derive(Debug)]
pub struct Stretch {
    /// `u`, `[batch, channels, steps]`.
    pub u: Buffer<f32>,
    /// The step sizes, of the same shape.
    pub delta: Buffer<f32>,
    /// The rates, `[channels, states]`.
    pub a: Buffer<f32>,
    /// `B`, `[batch, 1, states, steps]`.
    pub b: Buffer<f32>,
    /// `C`, of the same shape.
    pub c: Buffer<f32>,
}

/// The outputs of a rank's stretch, `shape` being that of its arrays.
///
/// Within a stretch states are walked from the first step to the last, and the next rank goes on with the state itself. So
/// nothing is rounded otherwise than on one device, and the bits are the same.
///
/// # Errors
///
/// If a rank fails, or a device does.
// ANCHOR: scan
pub fn outputs(
    rank: &Rank,
    scan: &SelectiveScan<f32>,
    mine: &Stretch,
    shape: ScanShape,
) -> Result<Buffer<f32>, Error> {
    let ScanShape { batch, channels, seq_len, states, .. } = shape;
    let one = ScanShape { batch: 1, ..shape };
    let out = rank.device().allocate(batch * channels * seq_len)?;
    let mut came = rank.device().zeros(channels * states)?;
    let mut last = rank.device().allocate(channels * states)?;
    for number in 0..batch {
        if rank.number() > 0 {
            rank.receive(&mut came, rank.number() - 1)?;
        }
        let rows = |array: &Buffer<f32>, each: usize| {
            array.slice(number * each * seq_len..(number + 1) * each * seq_len)
        };
        let inputs = ScanInputs {
            u: &rows(&mine.u, channels)?,
            delta: &rows(&mine.delta, channels)?,
            a: &mine.a,
            b: ScanCoupling::Varying(&rows(&mine.b, states)?),
            c: ScanCoupling::Varying(&rows(&mine.c, states)?),
            d: None,
            z: None,
            delta_bias: None,
            softplus: true,
            initial: Some(&came),
            restarts: None,
        };
        let options =
            ScanForwardOptions { last: Some(&mut last), chunks: Some(1), ..Default::default() };
        scan.forward_into(&inputs, &mut rows(&out, channels)?, one, options)?;
        if rank.number() + 1 < rank.size() {
            rank.send(&last, rank.number() + 1)?;
        }
    }
    Ok(out)
}
// ANCHOR_END: scan
