//! The fused selective scan, cut along its length: each rank hands on the states batch by batch,
//! and backward their gradients.

pub mod problem;

use linrec::Error;
use linrec::device::{
    Buffer, Rank, ScanBackwardOptions, ScanCoupling, ScanForwardOptions, ScanGradients, ScanInputs,
    ScanShape, SelectiveScan,
};

/// A rank's part of the arrays, its stretch of time of every batch and channel; or the gradients
/// with respect to it.
#[derive(Debug)]
pub struct Stretch {
    /// `u`, `[batch, channels, steps]`.
    pub u: Buffer<f32>,
    /// The step sizes, `[batch, channels, steps]`.
    pub delta: Buffer<f32>,
    /// The rates, `[channels, states]`, which are the same on all ranks.
    pub a: Buffer<f32>,
    /// `B`, `[batch, groups, states, steps]`.
    pub b: Buffer<f32>,
    /// `C`, `[batch, groups, states, steps]`.
    pub c: Buffer<f32>,
}

impl Stretch {
    /// Borrows one batch of `batches`, in the same memory.
    fn of(&self, batch: usize, batches: usize) -> Result<Stretch, Error> {
        let part = |array| part(array, batch, batches);
        Ok(Stretch {
            u: part(&self.u)?,
            delta: part(&self.delta)?,
            a: self.a.slice(..)?,
            b: part(&self.b)?,
            c: part(&self.c)?,
        })
    }

    fn inputs<'a>(&'a self, initial: Option<&'a Buffer<f32>>) -> ScanInputs<'a, f32> {
        ScanInputs {
            u: &self.u,
            delta: &self.delta,
            a: &self.a,
            b: ScanCoupling::Varying(&self.b),
            c: ScanCoupling::Varying(&self.c),
            d: None,
            z: None,
            delta_bias: None,
            softplus: true,
            initial,
            restarts: None,
        }
    }

    /// Returns the destinations of all gradients, from the given ones of rates and initial states.
    fn gradients<'a>(
        &'a mut self,
        a: &'a mut Buffer<f32>,
        initial: Option<&'a mut Buffer<f32>>,
    ) -> ScanGradients<'a, f32> {
        ScanGradients {
            u: &mut self.u,
            delta: &mut self.delta,
            a,
            b: (&mut self.b).into(),
            c: (&mut self.c).into(),
            d: None,
            z: None,
            delta_bias: None,
            initial,
        }
    }
}

/// Borrows a batch's part of an array. All parts together are the whole array: if its length is
/// wrong, so is the length of a part.
fn part(array: &Buffer<f32>, batch: usize, batches: usize) -> Result<Buffer<f32>, Error> {
    array.slice(batch * array.len() / batches..(batch + 1) * array.len() / batches)
}

/// Returns the ranks before and after this one.
fn neighbours(rank: &Rank) -> [Option<usize>; 2] {
    let next = rank.number() + 1;
    [rank.number().checked_sub(1), Some(next).filter(|&next| next < rank.size())]
}

// ANCHOR: pipeline
/// Goes batch by batch: receives `[channels, states]` from one neighbour, or uses zeros without
/// one; does the rank's own work, which makes the message for the other neighbour; and sends it.
fn pipeline(
    rank: &Rank,
    shape: ScanShape,
    [from, to]: [Option<usize>; 2],
    mut work: impl FnMut(usize, &Buffer<f32>, &mut Buffer<f32>) -> Result<(), Error>,
) -> Result<(), Error> {
    let states = shape.channels.saturating_mul(shape.states);
    let mut received = rank.device().zeros(states)?;
    let mut sent = rank.device().allocate(states)?;
    for batch in 0..shape.batch {
        if let Some(from) = from {
            rank.receive(&mut received, from)?;
        }
        work(batch, &received, &mut sent)?;
        if let Some(to) = to {
            rank.send(&sent, to)?;
        }
    }
    Ok(())
}
// ANCHOR_END: pipeline

/// Writes the outputs of a rank's stretch, `[batch, channels, steps]`, and its `checkpoints`,
/// `[batch, ceil(steps / 8), channels, states]`, the states that [`gradients`] needs. `shape` is
/// the shape of the rank's arrays; ranks may have different numbers of steps.
///
/// Within a stretch, states go from the first step to the last, and the next rank continues with
/// the state itself. All roundings, and so all bits, are the same as on one device.
///
/// # Errors
///
/// Returns [`Error::ShapeMismatch`] if an array does not have the elements of its shape; and if a
/// rank or a device fails.
// ANCHOR: scan
pub fn outputs(
    rank: &Rank,
    scan: &SelectiveScan<f32>,
    mine: &Stretch,
    shape: ScanShape,
    [out, checkpoints]: [&mut Buffer<f32>; 2],
) -> Result<(), Error> {
    let [before, behind] = neighbours(rank);
    let one = ScanShape { batch: 1, ..shape };
    pipeline(rank, shape, [before, behind], |batch, first, last| {
        let options = ScanForwardOptions {
            last: Some(last),
            checkpoints: Some(&mut part(checkpoints, batch, shape.batch)?),
            chunks: Some(1),
            ..Default::default()
        };
        let mine = mine.of(batch, shape.batch)?;
        let mut out = part(out, batch, shape.batch)?;
        scan.forward_into(&mine.inputs(Some(first)), &mut out, one, options).map(drop)
    })
}
// ANCHOR_END: scan

/// Writes the gradients with respect to a rank's stretch, from the gradients with respect to its
/// outputs, `d_out`, and the `checkpoints` of [`outputs`]. The gradient of the rates is the sum
/// over all ranks, on each of them.
///
/// A rank hands the gradients with respect to the states before its stretch to the rank before.
/// They go from the last step to the first as on one device, so the gradients of `u`, `delta`, `B`
/// and `C` have the same bits (if one device has at most 2^22 steps). The gradients of the rates
/// are sums over time, added stretch by stretch: their bits depend on the stretches, and are the
/// same on all ranks. Only this sum is sent to all ranks: each rank receives 4 bytes for each rate
/// from each of the others.
///
/// # Errors
///
/// Returns the same errors as [`outputs`].
// ANCHOR: gradients
pub fn gradients(
    rank: &Rank,
    scan: &SelectiveScan<f32>,
    mine: &Stretch,
    shape: ScanShape,
    [d_out, checkpoints]: [&Buffer<f32>; 2],
    d: &mut Stretch,
) -> Result<(), Error> {
    let [before, behind] = neighbours(rank);
    let one = ScanShape { batch: 1, ..shape };
    let d_rates = rank.device().allocate(shape.batch.saturating_mul(d.a.len()))?;
    pipeline(rank, shape, [behind, before], |batch, d_last, d_first| {
        let mine = mine.of(batch, shape.batch)?;
        let [d_out, checkpoints] =
            [d_out, checkpoints].map(|array| part(array, batch, shape.batch));
        let (mut d, mut d_rates) = (d.of(batch, shape.batch)?, part(&d_rates, batch, shape.batch)?);
        let d = d.gradients(&mut d_rates, Some(d_first));
        let options =
            ScanBackwardOptions { d_last: Some(d_last), chunks: Some(1), ..Default::default() };
        scan.backward_into(&mine.inputs(None), &d_out?, &checkpoints?, d, one, options).map(drop)
    })?;
    // Each rank sums its part of the rates' gradient over the batches; then every rank adds up the
    // parts of all, in the order of the ranks.
    let mine = rank.device().upload(&sum(&d_rates.download()?, d.a.len()))?;
    let mut all = rank.device().allocate(rank.size() * mine.len())?;
    rank.all_gather(&mine, &mut all)?;
    d.a.upload(&sum(&all.download()?, mine.len()))
}

/// Adds up arrays of `len` numbers, the first array first.
fn sum(arrays: &[f32], len: usize) -> Vec<f32> {
    let mut sum = vec![0.0; len];
    for array in arrays.chunks(len.max(1)) {
        sum.iter_mut().zip(array).for_each(|(sum, number)| *sum += number);
    }
    sum
}
// ANCHOR_END: gradients
