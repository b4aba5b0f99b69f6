//! Random problems and their gradients on a device.
//!
//! [`OnDevice`] keeps the arrays of a problem on a device, possibly at an odd address, and runs
//! both passes. All gradients begin as NaN, so that an element that is not written shows. [`judge`]
//! compares with the oracle's bounds. The probe uses this module too. `selective_scan/given.rs`
//! draws the problems.

use linrec::Error;
use linrec::device::{
    Buffer, Device, Exponential, Launched, ScanBackwardOptions, ScanCouplingGradient,
    ScanForwardOptions, ScanGradients, ScanInputs, ScanShape, SelectiveScan, Storage,
};

use super::given::{Arrays, OneOf, stored};
use super::oracle::Gradients;
use super::reference::{Bounded, Coupling, Problem, Sizes};

/// A gradient's name, true if it is rounded to the storage type, and its numbers.
pub type Named = (&'static str, bool, Vec<f32>);

impl<S: Storage<Accum = f32>> OneOf<S> {
    fn wanted(&mut self) -> ScanCouplingGradient<'_, S> {
        match self {
            OneOf::Varying(buffer) => ScanCouplingGradient::Varying(buffer),
            OneOf::Constant(buffer) => ScanCouplingGradient::Constant(buffer),
        }
    }

    /// Returns true if it is rounded to `S`, and its numbers.
    fn download(&self) -> Result<(bool, Vec<f32>), Error> {
        Ok(match self {
            OneOf::Varying(buffer) => {
                (true, buffer.download()?.into_iter().map(Storage::widen).collect())
            }
            OneOf::Constant(buffer) => (false, buffer.download()?),
        })
    }
}

/// A problem's arrays on a device, and all gradients, which begin as NaN.
pub struct OnDevice<S> {
    pub shape: ScanShape,
    given: Arrays<S>,
    has_z: bool,
    d_out: Buffer<S>,
    d_last: Option<Buffer<f32>>,
    pub checkpoints: Buffer<f32>,
    d_rows: [Buffer<S>; 3],
    d_couplings: [OneOf<S>; 2],
    d_rates: Buffer<f32>,
    d_per_channel: [Buffer<f32>; 2],
    d_initial: Buffer<f32>,
}

impl<S: Storage<Accum = f32>> OnDevice<S> {
    /// Uploads a problem, each array `skip` elements after the beginning of its memory, and runs
    /// the forward pass.
    pub fn new(
        scan: &SelectiveScan<S>,
        problem: &Problem,
        skip: usize,
    ) -> Result<OnDevice<S>, Error> {
        let device = scan.device();
        let nans = |len: usize| -> Result<Buffer<S>, Error> {
            let mut buffer = device.allocate::<S>(len + skip)?;
            buffer.poison()?;
            buffer.slice(skip..)
        };
        let wide = |numbers: &[f64]| {
            device.upload(&numbers.iter().map(|&number| number as f32).collect::<Vec<f32>>())
        };
        let wide_nans = |len: usize| -> Result<Buffer<f32>, Error> {
            let mut buffer = device.allocate::<f32>(len)?;
            buffer.poison()?;
            Ok(buffer)
        };
        let Sizes { batch, channels, states, len, .. } = problem.sizes;
        let given = Arrays::new(device, problem, skip)?;
        let shape = given.shape;
        let d_coupling = |given: &Coupling| -> Result<OneOf<S>, Error> {
            Ok(match given.varies {
                true => OneOf::Varying(nans(given.values.len())?),
                false => OneOf::Constant(wide_nans(given.values.len())?),
            })
        };
        let rows = problem.u.len();
        let kept = batch * len.div_ceil(ScanShape::CHECKPOINT_STEPS) * channels * states;
        let mut here = OnDevice {
            shape,
            given,
            has_z: problem.z.is_some(),
            d_out: stored(device, &problem.d_out, skip)?,
            d_last: problem.d_last.as_deref().map(wide).transpose()?,
            checkpoints: wide_nans(kept)?,
            d_rows: [nans(rows)?, nans(rows)?, nans(rows)?],
            d_couplings: [d_coupling(&problem.b)?, d_coupling(&problem.c)?],
            d_rates: wide_nans(channels * states)?,
            d_per_channel: [wide_nans(channels)?, wide_nans(channels)?],
            d_initial: wide_nans(batch * channels * states)?,
        };
        let mut out = device.allocate::<S>(rows + skip)?.slice(skip..)?;
        let mut checkpoints = here.checkpoints.slice(..)?;
        let options =
            ScanForwardOptions { checkpoints: Some(&mut checkpoints), ..Default::default() };
        let (inputs, ..) = here.parts();
        scan.forward_into(&inputs, &mut out, shape, options)?;
        Ok(here)
    }

    /// Returns the arguments of the backward pass: inputs, the gradient with respect to the
    /// outputs, checkpoints, and the destinations of the results.
    pub fn parts(&mut self) -> (ScanInputs<'_, S>, &Buffer<S>, &Buffer<f32>, ScanGradients<'_, S>) {
        let [u, delta, z] = &mut self.d_rows;
        let [b, c] = &mut self.d_couplings;
        let [d, delta_bias] = &mut self.d_per_channel;
        let gradients = ScanGradients {
            u,
            delta,
            a: &mut self.d_rates,
            b: b.wanted(),
            c: c.wanted(),
            d: Some(d),
            z: self.has_z.then_some(z),
            delta_bias: Some(delta_bias),
            initial: Some(&mut self.d_initial),
        };
        (self.given.inputs(), &self.d_out, &self.checkpoints, gradients)
    }

    /// Returns the gradient with respect to the last states, if the problem has one.
    pub fn d_last(&self) -> Result<Option<Buffer<f32>>, Error> {
        self.d_last.as_ref().map(|d_last| d_last.slice(..)).transpose()
    }

    pub fn backward(&mut self, scan: &SelectiveScan<S>) -> Result<Launched, Error> {
        self.backward_in(None, scan)
    }

    /// Runs the backward pass in at most this number of chunks.
    pub fn backward_in(
        &mut self,
        chunks: Option<usize>,
        scan: &SelectiveScan<S>,
    ) -> Result<Launched, Error> {
        let (shape, d_last) = (self.shape, self.d_last()?);
        let (inputs, d_out, checkpoints, gradients) = self.parts();
        let options = ScanBackwardOptions { d_last: d_last.as_ref(), chunks, stream: None };
        scan.backward_into(&inputs, d_out, checkpoints, gradients, shape, options)
    }

    /// Returns all gradients with their names, and true for those that are rounded to `S`.
    pub fn gradients(&self) -> Result<Vec<Named>, Error> {
        let stored = |buffer: &Buffer<S>| -> Result<Vec<f32>, Error> {
            Ok(buffer.download()?.into_iter().map(Storage::widen).collect())
        };
        let [u, delta, z] = &self.d_rows;
        let [b, c] = &self.d_couplings;
        let ((b_is_stored, b), (c_is_stored, c)) = (b.download()?, c.download()?);
        let [d, bias] = &self.d_per_channel;
        let z = if self.has_z { stored(z)? } else { Vec::new() };
        Ok(vec![
            ("u", true, stored(u)?),
            ("delta", true, stored(delta)?),
            ("z", true, z),
            ("A", false, self.d_rates.download()?),
            ("B", b_is_stored, b),
            ("C", c_is_stored, c),
            ("D", false, d.download()?),
            ("delta_bias", false, bias.download()?),
            ("initial", false, self.d_initial.download()?),
        ])
    }

    pub fn bits(&self) -> Result<Vec<u32>, Error> {
        let gradients = self.gradients()?;
        Ok(gradients.into_iter().flat_map(|(.., numbers)| numbers).map(f32::to_bits).collect())
    }
}

pub fn computed<S: Storage<Accum = f32>>(
    device: &Device,
    exponential: Exponential,
    problem: &Problem,
    skip: usize,
) -> Result<OnDevice<S>, Error> {
    let scan = SelectiveScan::<S>::new(device, exponential);
    let mut here = OnDevice::new(&scan, problem, skip)?;
    here.backward(&scan)?;
    Ok(here)
}

pub fn judge<S: Storage<Accum = f32>>(
    here: &OnDevice<S>,
    expected: &Gradients,
    what: &str,
) -> Result<(), Error> {
    verdict(here, expected)?.unwrap_or_else(|wrong| panic!("{what}: {wrong}"));
    Ok(())
}

/// Returns the first gradient outside of its bound, as a sentence. Bounds are of first order, and a
/// thousandth more covers the higher orders.
pub fn verdict<S: Storage<Accum = f32>>(
    here: &OnDevice<S>,
    expected: &Gradients,
) -> Result<Result<(), String>, Error> {
    Ok(verdict_of::<S>(here.gradients()?, expected))
}

pub fn verdict_of<S: Storage<Accum = f32>>(
    gradients: Vec<Named>,
    expected: &Gradients,
) -> Result<(), String> {
    let Gradients { u, delta, z, a, b, c, d, bias, initial } = expected;
    let expected: [&Vec<Bounded>; 9] = [u, delta, z, a, b, c, d, bias, initial];
    for ((name, is_stored, computed), expected) in gradients.into_iter().zip(expected) {
        for (index, &got) in computed.iter().enumerate() {
            let Bounded { value, bound } = expected[index];
            let bound = 1.001 * bound;
            let narrowing = S::NARROWING;
            let stored = narrowing.unit_roundoff * (value.abs() + bound) + narrowing.smallest;
            let bound = if is_stored { bound + stored } else { bound };
            let error = (f64::from(got) - value).abs();
            if error.is_nan() || error > bound {
                return Err(format!(
                    "the gradient of {name}, number {index}, is {got}, not {value} ± {bound:e}"
                ));
            }
        }
    }
    Ok(())
}
