//! Random problems, on a device and in double precision.
//!
//! [`draw`] makes a problem whose numbers the storage type holds exactly, so that the oracle and
//! the device see the same ones. [`OnDevice`] keeps its arrays on a device, possibly at an odd
//! address, and runs both passes; all gradients begin as NaN, so that an element that is not
//! written shows. [`judge`] compares with the oracle's bounds. The probe uses this module too.

use linrec::Error;
use linrec::device::{
    Buffer, Device, Exponential, Launched, ScanBackwardOptions, ScanCoupling, ScanCouplingGradient,
    ScanForwardOptions, ScanGradients, ScanInputs, ScanShape, SelectiveScan, Storage,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::oracle::{Bounded, Coupling, Gradients, Problem, Sizes};

/// The options of a problem.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    pub d: bool,
    pub z: bool,
    pub bias: bool,
    pub softplus: bool,
    pub initial: bool,
    pub restarts: bool,
    pub d_last: bool,
    /// True if states fade slowly, so that a loss between tiles shows.
    pub slow: bool,
    /// True for B and C that are the same at all steps.
    pub constant: [bool; 2],
}

impl Options {
    pub const ALL: Options = Options {
        d: true,
        z: true,
        bias: true,
        softplus: true,
        initial: true,
        restarts: false,
        d_last: true,
        slow: false,
        constant: [false; 2],
    };
    pub const NOTHING: Options = Options {
        d: false,
        z: false,
        bias: false,
        softplus: false,
        initial: false,
        restarts: false,
        d_last: false,
        slow: false,
        constant: [false; 2],
    };
}

/// Draws a problem whose numbers are exact in `S` or, for arrays without an axis of time, in f32.
pub fn draw<S: Storage<Accum = f32>>(sizes: Sizes, options: Options, seed: u64) -> Problem {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut draw = |len: usize, low: f32, high: f32| -> Vec<f32> {
        (0..len).map(|_| rng.random_range(low..high)).collect()
    };
    let stored = |numbers: Vec<f32>| -> Vec<f64> {
        numbers.into_iter().map(|number| S::narrow(number).widen().into()).collect()
    };
    let wide = |numbers: Vec<f32>| -> Vec<f64> { numbers.into_iter().map(f64::from).collect() };
    let Sizes { batch, channels, groups, states, len } = sizes;
    let (rows, couplings) = (batch * channels * len, batch * groups * states * len);
    let (sizes_from, sizes_to) = if options.softplus { (-4.0, 1.0) } else { (0.0, 0.3) };
    let fastest = if options.slow { -0.02 } else { -3.0 };
    let u = stored(draw(rows, -2.0, 2.0));
    let delta = stored(draw(rows, sizes_from, sizes_to));
    let a = wide(draw(channels * states, fastest, 0.0));
    let [b, c] = options.constant.map(|constant| Coupling {
        values: match constant {
            true => wide(draw(channels * states, -2.0, 2.0)),
            false => stored(draw(couplings, -2.0, 2.0)),
        },
        varies: !constant,
    });
    Problem {
        sizes,
        u,
        delta,
        a,
        b,
        c,
        d: options.d.then(|| wide(draw(channels, -2.0, 2.0))),
        z: options.z.then(|| stored(draw(rows, -4.0, 4.0))),
        bias: options.bias.then(|| wide(draw(channels, -0.05, 0.5))),
        softplus: options.softplus,
        initial: options.initial.then(|| wide(draw(batch * channels * states, -2.0, 2.0))),
        restarts: options.restarts.then(|| {
            draw(batch * len, 0.0, 1.0).into_iter().map(|number| u8::from(number < 0.05)).collect()
        }),
        d_out: stored(draw(rows, -2.0, 2.0)),
        d_last: options.d_last.then(|| wide(draw(batch * channels * states, -2.0, 2.0))),
    }
}

/// A gradient's name, true if it is rounded to the storage type, and its numbers.
type Named = (&'static str, bool, Vec<f32>);

/// B or C on a device, or the gradient with respect to it.
enum OneOf<S> {
    Varying(Buffer<S>),
    Constant(Buffer<f32>),
}

impl<S: Storage<Accum = f32>> OneOf<S> {
    fn given(&self) -> ScanCoupling<'_, S> {
        match self {
            OneOf::Varying(buffer) => ScanCoupling::Varying(buffer),
            OneOf::Constant(buffer) => ScanCoupling::Constant(buffer),
        }
    }

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
    softplus: bool,
    u: Buffer<S>,
    delta: Buffer<S>,
    a: Buffer<f32>,
    b: OneOf<S>,
    c: OneOf<S>,
    d: Option<Buffer<f32>>,
    z: Option<Buffer<S>>,
    bias: Option<Buffer<f32>>,
    initial: Option<Buffer<f32>>,
    restarts: Option<Buffer<u8>>,
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
        let stored = |numbers: &[f64]| -> Result<Buffer<S>, Error> {
            let skipped = std::iter::repeat_n(S::narrow(0.0), skip);
            let numbers: Vec<S> =
                skipped.chain(numbers.iter().map(|&number| S::narrow(number as f32))).collect();
            device.upload(&numbers)?.slice(skip..)
        };
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
        let all_wide = |numbers: &Option<Vec<f64>>| numbers.as_deref().map(wide).transpose();
        let Sizes { batch, channels, groups, states, len } = problem.sizes;
        let shape = ScanShape { batch, channels, seq_len: len, states, groups };
        let coupling = |given: &Coupling| -> Result<OneOf<S>, Error> {
            Ok(match given.varies {
                true => OneOf::Varying(stored(&given.values)?),
                false => OneOf::Constant(wide(&given.values)?),
            })
        };
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
            softplus: problem.softplus,
            u: stored(&problem.u)?,
            delta: stored(&problem.delta)?,
            a: wide(&problem.a)?,
            b: coupling(&problem.b)?,
            c: coupling(&problem.c)?,
            d: all_wide(&problem.d)?,
            z: problem.z.as_deref().map(stored).transpose()?,
            bias: all_wide(&problem.bias)?,
            initial: all_wide(&problem.initial)?,
            restarts: problem
                .restarts
                .as_deref()
                .map(|restarts| device.upload(restarts))
                .transpose()?,
            d_out: stored(&problem.d_out)?,
            d_last: all_wide(&problem.d_last)?,
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
        let inputs = ScanInputs {
            u: &self.u,
            delta: &self.delta,
            a: &self.a,
            b: self.b.given(),
            c: self.c.given(),
            d: self.d.as_ref(),
            z: self.z.as_ref(),
            delta_bias: self.bias.as_ref(),
            softplus: self.softplus,
            initial: self.initial.as_ref(),
            restarts: self.restarts.as_ref(),
        };
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
            z: self.z.is_some().then_some(z),
            delta_bias: Some(delta_bias),
            initial: Some(&mut self.d_initial),
        };
        (inputs, &self.d_out, &self.checkpoints, gradients)
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
        let z = if self.z.is_some() { stored(z)? } else { Vec::new() };
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
    let Gradients { u, delta, z, a, b, c, d, bias, initial } = expected;
    let expected: [&Bounded; 9] = [u, delta, z, a, b, c, d, bias, initial];
    for ((name, is_stored, computed), expected) in here.gradients()?.into_iter().zip(expected) {
        for (index, &got) in computed.iter().enumerate() {
            let (value, bound) = (expected.values[index], 1.001 * expected.bounds[index]);
            let narrowing = S::NARROWING;
            let stored = narrowing.unit_roundoff * (value.abs() + bound) + narrowing.smallest;
            let bound = if is_stored { bound + stored } else { bound };
            let error = (f64::from(got) - value).abs();
            if error.is_nan() || error > bound {
                return Ok(Err(format!(
                    "the gradient of {name}, number {index}, is {got}, not {value} ± {bound:e}"
                )));
            }
        }
    }
    Ok(Ok(()))
}
