//! The selective scan over the ranks of a group, each with its stretch of time of all sequences.
//!
//! In forward direction a rank computes the states that leave its stretch, as if those before it
//! were zero, and the sums of its step sizes, as a device does for a chunk. Backward it computes
//! the gradient that it passes back, and the product of its decays. All ranks gather these, and
//! each composes those of the ranks on one side of it into what arrives at its stretch. So most
//! ranks walk their stretches twice, backward with all gradients, since the kernels for the ends of
//! chunks leave out the first chunk. The tests are in `tests/suite/scan_gradients/cut.rs`.

use super::{ScanCouplingGradient, ScanInputs, ScanShape, SelectiveScan};
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
    /// rank than the first; and [`Error::Device`] if ranks differ in more than their steps, or if
    /// one fails or does not come in time.
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
            let what =
                format!("initial states on rank {number} in forward_into: only rank 0 has any");
            return Err(Error::Unsupported { engine: "selective scan over ranks".into(), what });
        }
        scan.check_forward(inputs, out, shape, &options)?;
        self.agree("forward pass", inputs, shape)?;
        let rows = shape.batch * shape.channels;
        let states = rows * shape.states;
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
        rank.gather(&state, &mut all)?;
        rank.gather(&sum, &mut sums)?;
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
    /// As [`SelectiveScan::backward_into`]; and [`Error::Device`] if ranks differ in more than
    /// their steps, or if one fails or does not come in time.
    pub fn backward_into(
        &self,
        inputs: &ScanInputs<S>,
        d_out: &Buffer<S>,
        checkpoints: &Buffer<f32>,
        mut gradients: ScanGradients<S>,
        shape: ScanShape,
        options: ScanBackwardOptions,
    ) -> Result<(), Error> {
        let ScanOver { scan, rank } = self;
        let (device, number, size) = (scan.device(), rank.number(), rank.size());
        scan.check_backward(inputs, d_out, checkpoints, &gradients, shape, options)?;
        self.agree("backward pass", inputs, shape)?;
        let states = shape.batch * shape.channels * shape.states;
        if size == 1 || states == 0 {
            let launched =
                scan.backward_into(inputs, d_out, checkpoints, gradients, shape, options);
            return launched.map(drop);
        }
        let mut d_initial = match &gradients.initial {
            Some(d_initial) => d_initial.slice(..)?,
            None => device.allocate(states)?,
        };
        let d_first = d_initial.slice(..)?;
        let mut pass = |d_last: Option<&Buffer<f32>>| -> Result<(), Error> {
            let gradients = gradients.again(&mut d_initial);
            let options = ScanBackwardOptions { d_last, ..options };
            scan.backward_into(inputs, d_out, checkpoints, gradients, shape, options).map(drop)
        };
        // The pair is the gradient that leaves for the rank before, and the decays of the one that
        // arrives. None leaves the first rank, and none arrives at the last one.
        let mut pair = vec![0.0; 2 * states];
        if number > 0 {
            pass(options.d_last)?;
            self.finish(options.stream)?;
            pair[..states].copy_from_slice(&d_first.download()?);
        }
        if number > 0 && number + 1 < size {
            pair[states..].copy_from_slice(&self.decays(inputs, shape, options.stream)?);
        }
        let mut all = device.allocate(size * 2 * states)?;
        rank.gather(&device.upload(&pair)?, &mut all)?;
        if number + 1 == size {
            return Ok(());
        }
        let mut arriving = vec![0.0_f32; states];
        for pair in all.download()?.chunks(2 * states).skip(number + 1).rev() {
            let (leaving, decays) = pair.split_at(states);
            for ((arriving, leaving), decay) in arriving.iter_mut().zip(leaving).zip(decays) {
                // Nothing comes through a beginning of a sequence, no infinite number either.
                *arriving =
                    if decay.is_nan() { *leaving } else { decay.mul_add(*arriving, *leaving) };
            }
        }
        if let Some(d_last) = options.d_last {
            let own = d_last.download()?;
            arriving.iter_mut().zip(own).for_each(|(arriving, own)| *arriving += own);
        }
        pass(Some(&device.upload(&arriving)?))
    }

    /// Returns an error on all ranks unless all make the same call, apart from their steps.
    fn agree(&self, pass: &str, inputs: &ScanInputs<S>, shape: ScanShape) -> Result<(), Error> {
        if self.rank.size() == 1 {
            return Ok(());
        }
        let ScanShape { batch, channels, states, groups, .. } = shape;
        let exponential = self.scan.exponential();
        let mut what = format!(
            "{pass} of a selective scan of {} [{batch}, {channels}, steps] by {exponential:?}, \
             {states} states, {groups} groups",
            S::ELEMENT
        );
        let more = [
            (inputs.b.varies(), ", B in time"),
            (inputs.c.varies(), ", C in time"),
            (inputs.d.is_some(), ", with D"),
            (inputs.z.is_some(), ", with z"),
            (inputs.delta_bias.is_some(), ", with delta_bias"),
            (inputs.softplus, ", with softplus"),
        ];
        more.iter().filter(|(is, _)| *is).for_each(|(_, text)| what += text);
        self.rank.agree(&what)
    }

    /// Returns for each state the product of its decays over the rank's stretch: NaN if a sequence
    /// begins there, since nothing comes through.
    fn decays(
        &self,
        inputs: &ScanInputs<S>,
        shape: ScanShape,
        stream: Option<&Stream>,
    ) -> Result<Vec<f32>, Error> {
        let (scan, device) = (self.scan, self.scan.device());
        let [_, sizes] = scan.leaving(inputs, shape, None, stream)?;
        self.finish(stream)?;
        let rows = shape.batch * shape.channels;
        let sum = sum_of_parts(&sizes.download()?, rows);
        // In a stretch without inputs, a state of one becomes the product of the decays.
        let end = |sum: &f32| vec![if sum.is_nan() { *sum } else { 0.0 }; shape.states];
        let ends: Vec<f32> = sum.iter().flat_map(end).collect();
        let mut both = device.upload(&[vec![1.0; ends.len()], ends].concat())?;
        let sums = device.upload(&[vec![0.0; rows], sum].concat())?;
        scan.compose(inputs.a, &sums, &mut both, shape, 2, &device.stream())?;
        both.slice(both.len() / 2..)?.download()
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

impl<S> ScanGradients<'_, S> {
    /// Borrows the arrays for one of several calls, with this array for the initial states.
    fn again<'a>(&'a mut self, initial: &'a mut Buffer<f32>) -> ScanGradients<'a, S> {
        fn coupling<'a, S>(of: &'a mut ScanCouplingGradient<'_, S>) -> ScanCouplingGradient<'a, S> {
            match of {
                ScanCouplingGradient::Varying(buffer) => ScanCouplingGradient::Varying(buffer),
                ScanCouplingGradient::Constant(buffer) => ScanCouplingGradient::Constant(buffer),
            }
        }
        ScanGradients {
            u: self.u,
            delta: self.delta,
            a: self.a,
            b: coupling(&mut self.b),
            c: coupling(&mut self.c),
            d: self.d.as_deref_mut(),
            z: self.z.as_deref_mut(),
            delta_bias: self.delta_bias.as_deref_mut(),
            initial: Some(initial),
        }
    }
}
