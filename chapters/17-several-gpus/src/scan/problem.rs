//! Whole arrays of a selective scan, distributed to ranks and joined, for story and tests.

use std::ops::Range;

use linrec::Error;
use linrec::device::{
    Buffer, Device, Exponential, Group, ScanBackwardOptions, ScanForwardOptions, ScanShape,
    SelectiveScan,
};

use super::{Stretch, gradients, outputs};

/// The arrays of a [`Stretch`] of the whole length, and a gradient of a loss with respect to the
/// outputs.
#[derive(Debug, Clone)]
pub struct Problem {
    /// The sizes of all arrays.
    pub shape: ScanShape,
    /// `u`, `[batch, channels, seq_len]`.
    pub u: Vec<f32>,
    /// The step sizes before the softplus.
    pub delta: Vec<f32>,
    /// The rates.
    pub a: Vec<f32>,
    /// `B`.
    pub b: Vec<f32>,
    /// `C`.
    pub c: Vec<f32>,
    /// The gradient with respect to the outputs.
    pub d_out: Vec<f32>,
}

/// The results along the whole length, regardless of the cuts.
#[derive(Debug, Clone)]
pub struct Computed {
    /// The outputs.
    pub out: Vec<f32>,
    /// The gradients with respect to `u`, `delta`, `B` and `C`.
    pub d: [Vec<f32>; 4],
    /// Each rank's gradient with respect to the rates.
    pub d_a: Vec<Vec<f32>>,
}

impl Problem {
    /// Makes numbers of either sign, without a pattern.
    pub fn drawn(shape: ScanShape) -> Problem {
        let all = |len: usize, low: f32, high: f32, seed: usize| -> Vec<f32> {
            let place = |index: usize| ((index * 7919 + seed * 104_729) % 9973) as f32 / 9973.0;
            (0..len).map(|index| low + (high - low) * place(index)).collect()
        };
        let ScanShape { batch, channels, seq_len, states, groups } = shape;
        let (rows, couplings) = (batch * channels * seq_len, batch * groups * states * seq_len);
        Problem {
            shape,
            u: all(rows, -1.0, 1.0, 1),
            delta: all(rows, -3.0, 0.0, 2),
            a: all(channels * states, -2.0, -0.01, 3),
            b: all(couplings, -1.0, 1.0, 4),
            c: all(couplings, -1.0, 1.0, 5),
            d_out: all(rows, -1.0, 1.0, 6),
        }
    }

    /// Computes everything by one call of the library, each sequence in one chunk.
    ///
    /// # Errors
    ///
    /// Returns an error if the device fails.
    pub fn alone(&self, exponential: Exponential) -> Result<Computed, Error> {
        let device = Device::simt();
        let scan = SelectiveScan::new(&device, exponential);
        let mine = self.stretch(&device, 0..self.shape.seq_len)?;
        let [mut out, mut checkpoints] = outputs_and_checkpoints(&device, self.shape)?;
        let options = ScanForwardOptions {
            checkpoints: Some(&mut checkpoints),
            chunks: Some(1),
            ..Default::default()
        };
        scan.forward_into(&mine.inputs(None), &mut out, self.shape, options)?;
        let (mut d, d_out) = (mine.filled_with_nan(&device)?, device.upload(&self.d_out)?);
        let mut d_a = d.a.slice(..)?;
        let (given, wanted) = (mine.inputs(None), d.gradients(&mut d_a, None));
        let options = ScanBackwardOptions { chunks: Some(1), ..Default::default() };
        scan.backward_into(&given, &d_out, &checkpoints, wanted, self.shape, options)?;
        Computed::download(&out, &d)
    }

    /// Computes everything with one rank for each stretch, each on an emulated device.
    ///
    /// # Errors
    ///
    /// Returns [`Error::ShapeMismatch`] if the stretches do not add up to all steps; and if a rank
    /// or a device fails.
    pub fn over(&self, stretches: &[usize], exponential: Exponential) -> Result<Computed, Error> {
        let seq_len = self.shape.seq_len;
        if stretches.iter().sum::<usize>() != seq_len {
            let arrays = vec![("steps", vec![seq_len]), ("stretches", stretches.to_vec())];
            return Err(Error::ShapeMismatch { operation: "over", arrays });
        }
        let group = Group::from_devices(&Device::emulated(stretches.len()))?;
        let all = group.run(|rank| {
            let device = rank.device();
            let first = stretches[..rank.number()].iter().sum();
            let steps = first..first + stretches[rank.number()];
            let shape = ScanShape { seq_len: steps.len(), ..self.shape };
            let scan = SelectiveScan::new(device, exponential);
            let mine = self.stretch(device, steps.clone())?;
            let [mut out, mut checkpoints] = outputs_and_checkpoints(device, shape)?;
            outputs(rank, &scan, &mine, shape, [&mut out, &mut checkpoints])?;
            let d_out = device.upload(&self.steps_of(&self.d_out, steps))?;
            let mut d = mine.filled_with_nan(device)?;
            gradients(rank, &scan, &mine, shape, [&d_out, &checkpoints], &mut d)?;
            Computed::download(&out, &d)
        })?;
        let [rows, couplings] = self.rows();
        // Joins the parts of the ranks, row by row.
        let join = |rows: usize, part: &dyn Fn(&Computed) -> &[f32]| -> Vec<f32> {
            let of_row = |row: usize| {
                let parts = all.iter().map(part).zip(stretches);
                parts.flat_map(move |(part, steps)| &part[row * steps..(row + 1) * steps])
            };
            (0..rows).flat_map(of_row).copied().collect()
        };
        Ok(Computed {
            out: join(rows, &|rank| &rank.out),
            d: [(0, rows), (1, rows), (2, couplings), (3, couplings)]
                .map(|(which, rows)| join(rows, &|rank| &rank.d[which])),
            d_a: all.iter().flat_map(|rank| rank.d_a.clone()).collect(),
        })
    }

    /// Bounds the distance of each rate's gradient, over these stretches, from the gradient of
    /// [`Problem::alone`].
    ///
    /// Both are sums of the same products p, of a step size and what its decay passes back. A
    /// product goes through k roundings, each with a relative error of at most u or an absolute
    /// error of half the smallest number. The sum is therefore off by at most k u / (1 - k u) times
    /// the sum of all |p|, and by k 2^-149. Products are added step by step, then over batches and
    /// over ranks. No |p| exceeds the same product in a scan of magnitudes, since larger numbers
    /// never round to smaller ones. That scan has no negative products, and so it computes their
    /// sum.
    ///
    /// # Errors
    ///
    /// Returns an error if the device fails.
    pub fn apart(&self, stretches: &[usize], exponential: Exponential) -> Result<Vec<f64>, Error> {
        let off = |steps: usize, ranks: usize| {
            let roundings = (steps + self.shape.batch + ranks) as f64;
            let relative = roundings * f64::from(f32::EPSILON) / 2.0;
            (relative / (1.0 - relative), roundings * f64::from(f32::from_bits(1)))
        };
        let (alone, tiny) = off(self.shape.seq_len, 0);
        let longest = stretches.iter().copied().max().unwrap_or(0);
        let (over, more) = off(longest, stretches.len());
        let magnitudes = self.magnitudes().alone(exponential)?.d_a.concat();
        let bound =
            |sum: f32| (alone + over) * (f64::from(sum) + tiny) / (1.0 - alone) + tiny + more;
        Ok(magnitudes.into_iter().map(bound).collect())
    }

    /// Returns the problem with magnitudes in place of its numbers, except for the rates and the
    /// step sizes, which make the decays.
    fn magnitudes(&self) -> Problem {
        let magnitudes = |array: &[f32]| array.iter().map(|number| number.abs()).collect();
        Problem {
            u: magnitudes(&self.u),
            b: magnitudes(&self.b),
            c: magnitudes(&self.c),
            d_out: magnitudes(&self.d_out),
            ..self.clone()
        }
    }

    /// Returns the numbers of rows of `u` and of `B`.
    fn rows(&self) -> [usize; 2] {
        let ScanShape { batch, channels, states, groups, .. } = self.shape;
        [batch * channels, batch * groups * states]
    }

    /// Copies some steps of an array with an axis of time.
    fn steps_of(&self, array: &[f32], steps: Range<usize>) -> Vec<f32> {
        let rows = array.chunks(self.shape.seq_len.max(1));
        rows.flat_map(|row| &row[steps.clone()]).copied().collect()
    }

    /// Uploads the stretch of a rank with these steps.
    fn stretch(&self, device: &Device, steps: Range<usize>) -> Result<Stretch, Error> {
        let mine = |array: &[f32]| device.upload(&self.steps_of(array, steps.clone()));
        Ok(Stretch {
            u: mine(&self.u)?,
            delta: mine(&self.delta)?,
            a: device.upload(&self.a)?,
            b: mine(&self.b)?,
            c: mine(&self.c)?,
        })
    }
}

impl Stretch {
    /// Allocates arrays for gradients, filled with NaN.
    fn filled_with_nan(&self, device: &Device) -> Result<Stretch, Error> {
        let filled = |array: &Buffer<f32>| nan(device, array.len());
        Ok(Stretch {
            u: filled(&self.u)?,
            delta: filled(&self.delta)?,
            a: filled(&self.a)?,
            b: filled(&self.b)?,
            c: filled(&self.c)?,
        })
    }
}

impl Computed {
    fn download(out: &Buffer<f32>, d: &Stretch) -> Result<Computed, Error> {
        let along = [d.u.download()?, d.delta.download()?, d.b.download()?, d.c.download()?];
        Ok(Computed { out: out.download()?, d: along, d_a: vec![d.a.download()?] })
    }
}

/// Allocates outputs and checkpoints, filled with NaN.
fn outputs_and_checkpoints(device: &Device, shape: ScanShape) -> Result<[Buffer<f32>; 2], Error> {
    let out = shape.batch * shape.channels * shape.seq_len;
    Ok([nan(device, out)?, nan(device, shape.checkpoints_len().unwrap_or(0))?])
}

fn nan(device: &Device, len: usize) -> Result<Buffer<f32>, Error> {
    let mut buffer = device.allocate(len)?;
    buffer.poison()?;
    Ok(buffer)
}
