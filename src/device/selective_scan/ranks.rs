//! The selective scan over the ranks of a group, each with its stretch of time of all sequences.
//!
//! Stretches are treated as chunks of one device are. In forward direction a rank computes the
//! states that leave its stretch, as if those before it were zero, and the sums of its step sizes;
//! backward the gradient that it passes back, and the product of its decays. All ranks gather
//! these, and each composes those of the ranks on one side of it into what arrives at its stretch.
//! So every rank but one walks its stretch twice, and no rank waits for another one's outputs. The
//! tests are `tests/suite/scan_gradients/ranks.rs`.

use super::{ScanInputs, ScanShape, SelectiveScan};
use crate::Error;
use crate::device::{
    Buffer, Rank, ScanBackwardOptions, ScanForwardOptions, ScanGradients, Storage, Stream,
};

/// A [`SelectiveScan`] over the ranks of a group ([`SelectiveScan::over`]), each of which has its
/// stretch of time of all sequences, in the order of the ranks.
///
/// All ranks make the same calls. A shape has the steps of the rank's own stretch, which may be
/// none; everything else is the same on all ranks.
#[derive(Debug, Clone, Copy)]
pub struct ScanOver<'a, S> {
    scan: &'a SelectiveScan<S>,
    rank: &'a Rank,
}

impl<S: Storage<Accum = f32>> SelectiveScan<S> {
    /// Returns the scan of sequences that are cut over the ranks of a group. It computes on the
    /// device of the rank.
    pub fn over<'a>(&'a self, rank: &'a Rank) -> ScanOver<'a, S> {
        ScanOver { scan: self, rank }
    }
}

impl<S: Storage<Accum = f32>> ScanOver<'_, S> {
    /// Computes the outputs of the rank's stretch, as [`SelectiveScan::forward_into`] does for
    /// whole sequences.
    ///
    /// The first rank may have initial states. On every rank, [`ScanForwardOptions::last`] gets the
    /// states after its stretch; on the last rank they are the last ones of the whole sequences.
    /// Stretches that are not cut give the bits of one device that cuts its sequences into the same
    /// chunks.
    ///
    /// # Errors
    ///
    /// As [`SelectiveScan::forward_into`]; [`Error::Unsupported`] for initial states on another
    /// rank than the first; and [`Error::Device`] if ranks have different batches, channels or
    /// states, or if one fails or does not come in time.
    pub fn forward_into(
        &self,
        inputs: &ScanInputs<S>,
        out: &mut Buffer<S>,
        shape: ScanShape,
        options: ScanForwardOptions,
    ) -> Result<(), Error> {
        let ScanOver { scan, rank } = self;
        let (device, number, size) = (scan.device(), rank.number(), rank.size());
        if number > 0 && inputs.initial.is_some() {
            let what = format!("initial states on rank {number}, where only rank 0 has any,");
            return Err(Error::Unsupported {
                engine: "selective scan over ranks".into(),
                what: format!("{what} in forward_into"),
            });
        }
        let rows = shape.batch.saturating_mul(shape.channels);
        let states = rows.saturating_mul(shape.states);
        if size == 1 || states == 0 {
            return scan.forward_into(inputs, out, shape, options).map(drop);
        }
        // The last rank's states leave no stretch that another one follows.
        let (mut state, mut sum) = (device.zeros(states)?, device.zeros(rows)?);
        if number + 1 < size {
            let [carries, sizes] = scan.leaving(inputs, shape, options.chunks, options.stream)?;
            self.finish(options.stream)?;
            state = carries.slice(carries.len() - states..)?;
            sum.upload(&sum_of_parts(&sizes.download()?, rows))?;
        }
        let (mut all, mut sums) = (device.allocate(size * states)?, device.allocate(size * rows)?);
        rank.all_gather(&state, &mut all)?;
        rank.all_gather(&sum, &mut sums)?;
        if number == 0 {
            return scan.forward_into(inputs, out, shape, options).map(drop);
        }
        if number > 1 {
            scan.compose(inputs.a, &sums, &mut all, shape, number, &device.stream())?;
            self.finish(None)?;
        }
        let arriving = all.slice((number - 1) * states..number * states)?;
        let inputs = ScanInputs { initial: Some(&arriving), ..*inputs };
        scan.forward_into(&inputs, out, shape, options).map(drop)
    }

    /// Computes the gradients with respect to the rank's stretch, as
    /// [`SelectiveScan::backward_into`] does for whole sequences, from the `checkpoints` that
    /// [`ScanOver::forward_into`] has written. The loss is the sum of all ranks' losses.
    ///
    /// `A`, `D`, `delta_bias` and constant couplings get the rank's part of their gradients: the
    /// sum over the ranks is the gradient. [`ScanGradients::initial`] gets the gradient with
    /// respect to the states before the rank's stretch.
    ///
    /// # Errors
    ///
    /// As [`SelectiveScan::backward_into`]; and [`Error::Device`] if ranks have different batches,
    /// channels or states, or if one fails or does not come in time.
    pub fn backward_into(
        &self,
        inputs: &ScanInputs<S>,
        d_out: &Buffer<S>,
        checkpoints: &Buffer<f32>,
        gradients: ScanGradients<S>,
        shape: ScanShape,
        options: ScanBackwardOptions,
    ) -> Result<(), Error> {
        let ScanOver { scan, rank } = self;
        let (device, number, size) = (scan.device(), rank.number(), rank.size());
        let states = shape.batch.saturating_mul(shape.channels).saturating_mul(shape.states);
        let mut both = None;
        if size > 1 && states > 0 {
            let mut d_last = match options.d_last {
                Some(d_last) => d_last.download()?,
                None => vec![0.0; states],
            };
            // The first rank passes nothing back to another one.
            let mut pairs = vec![[0.0; 2]; states];
            if number > 0 {
                let mut ends = Vec::new();
                if shape.seq_len > 0 {
                    let all = scan.passed_back(inputs, d_out, checkpoints, shape, options)?;
                    self.finish(options.stream)?;
                    ends = all.download()?;
                }
                pairs = through_chunks(&ends, &d_last);
            }
            let mut all = device.allocate(size * 2 * states)?;
            rank.all_gather(&device.upload(pairs.as_flattened())?, &mut all)?;
            let mut arriving = vec![0.0; states];
            for pairs in all.download()?.chunks(2 * states).skip(number + 1).rev() {
                pass_back(&mut arriving, pairs);
            }
            d_last.iter_mut().zip(&arriving).for_each(|(own, arriving)| *own += arriving);
            both = Some(device.upload(&d_last)?);
        }
        let d_last = both.as_ref().or(options.d_last);
        let options = ScanBackwardOptions { d_last, ..options };
        scan.backward_into(inputs, d_out, checkpoints, gradients, shape, options).map(drop)
    }

    /// Waits for a stream, before what it computes is read on the device's own stream.
    fn finish(&self, stream: Option<&Stream>) -> Result<(), Error> {
        stream.unwrap_or(&self.scan.device().stream()).synchronize()
    }
}

/// Adds up the chunks' sums of step sizes, of `rows` rows each. NaN, through which nothing comes,
/// stays NaN.
fn sum_of_parts(sizes: &[f32], rows: usize) -> Vec<f32> {
    let mut sums = vec![0.0; rows];
    for sizes in sizes.chunks(rows) {
        sums.iter_mut().zip(sizes).for_each(|(sum, size)| *sum += size);
    }
    sums
}

/// Returns for each state the gradient that comes out of all chunks for `d_last` behind the last
/// one, and the product of the chunks' decays, from the pairs of [`SelectiveScan::passed_back`].
fn through_chunks(ends: &[f32], d_last: &[f32]) -> Vec<[f32; 2]> {
    let (mut gradients, mut decays) = (d_last.to_vec(), vec![1.0; d_last.len()]);
    for pairs in ends.chunks(2 * d_last.len()).rev() {
        pass_back(&mut gradients, pairs);
        decays.iter_mut().zip(pairs.chunks(2)).for_each(|(decay, pair)| *decay *= pair[1]);
    }
    gradients.into_iter().zip(decays).map(|(gradient, decay)| [gradient, decay]).collect()
}

/// Takes gradients of states through a chunk, from its end to its beginning.
fn pass_back(gradients: &mut [f32], pairs: &[f32]) {
    for (gradient, pair) in gradients.iter_mut().zip(pairs.chunks(2)) {
        *gradient = pair[1].mul_add(*gradient, pair[0]);
    }
}
