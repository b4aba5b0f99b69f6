//! Random scans, and their results on a device.
//!
//! [`draw`] makes a problem whose numbers the storage type holds exactly, so that the reference and
//! the device see the same numbers. [`Arrays`] keeps its inputs on a device, possibly at an odd
//! address; [`computed`] runs the forward pass, and [`judge`] compares its results with the bounds
//! of `reference`. The tests of the gradients and the probe use this module too.

use linrec::Error;
use linrec::device::{
    Buffer, Device, Exponential, Launched, ScanCoupling, ScanForwardOptions, ScanInputs, ScanShape,
    SelectiveScan, Storage,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::reference::{Bounded, Coupling, Problem, Sizes};

/// The options of a scan.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    pub d: bool,
    pub z: bool,
    pub bias: bool,
    pub softplus: bool,
    pub initial: bool,
    pub restarts: bool,
    /// True if the loss depends on the last states.
    pub d_last: bool,
    /// True if decays are near one, so that a state lost between tiles shows.
    pub slow: bool,
    /// True for B and C that are constant.
    pub constant: [bool; 2],
}

impl Options {
    pub const ALL: Options = Options {
        d: true,
        z: true,
        bias: true,
        softplus: true,
        initial: true,
        restarts: true,
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

/// Draws a scan whose numbers are exact in `S` or, for arrays without an axis of time, in f32. Step
/// sizes are positive and rates are not, so decays are in (0, 1]; each seventh rate is zero, and
/// its decay one.
pub fn draw<S: Storage<Accum = f32>>(sizes: Sizes, options: Options) -> Problem {
    let Sizes { batch, channels, groups, states, len } = sizes;
    let mut rng = StdRng::seed_from_u64((len * 31 + channels * 7 + states) as u64);
    let mut numbers = |count: usize, low: f32, high: f32| -> Vec<f32> {
        (0..count).map(|_| rng.random_range(low..high)).collect()
    };
    let stored = |numbers: Vec<f32>| -> Vec<f64> {
        numbers.into_iter().map(|number| S::narrow(number).widen().into()).collect()
    };
    let wide = |numbers: Vec<f32>| -> Vec<f64> { numbers.into_iter().map(f64::from).collect() };
    let (rows, couplings) = (batch * channels * len, batch * groups * states * len);
    let (least, most) = if options.softplus { (-5.0, 3.0) } else { (0.001, 0.3) };
    let mut a = wide(numbers(channels * states, if options.slow { -0.02 } else { -3.0 }, 0.0));
    a.iter_mut().step_by(7).for_each(|a| *a = 0.0);
    let u = stored(numbers(rows, -2.0, 2.0));
    let [b, c] = options.constant.map(|constant| Coupling {
        values: match constant {
            true => wide(numbers(channels * states, -2.0, 2.0)),
            false => stored(numbers(couplings, -2.0, 2.0)),
        },
        varies: !constant,
    });
    Problem {
        sizes,
        u,
        delta: stored(numbers(rows, least, most)),
        a,
        b,
        c,
        d: options.d.then(|| wide(numbers(channels, -2.0, 2.0))),
        z: options.z.then(|| stored(numbers(rows, -6.0, 6.0))),
        bias: options.bias.then(|| wide(numbers(channels, 0.0, 0.5))),
        softplus: options.softplus,
        initial: options.initial.then(|| wide(numbers(batch * channels * states, -2.0, 2.0))),
        restarts: options.restarts.then(|| {
            let drawn = numbers(batch * len, 0.0, 1.0);
            drawn.into_iter().map(|number| if number < 0.04 { 3 } else { 0 }).collect()
        }),
        chunks: None,
        cuts: Vec::new(),
        d_out: stored(numbers(rows, -2.0, 2.0)),
        d_last: options.d_last.then(|| wide(numbers(batch * channels * states, -2.0, 2.0))),
        additions: None,
    }
}

/// `B` or `C` on a device, or the gradient with respect to it.
pub enum OneOf<S> {
    Varying(Buffer<S>),
    Constant(Buffer<f32>),
}

impl<S> OneOf<S> {
    fn given(&self) -> ScanCoupling<'_, S> {
        match self {
            OneOf::Varying(buffer) => ScanCoupling::Varying(buffer),
            OneOf::Constant(buffer) => ScanCoupling::Constant(buffer),
        }
    }
}

pub struct Arrays<S> {
    pub shape: ScanShape,
    softplus: bool,
    rows: [Buffer<S>; 2],
    a: Buffer<f32>,
    couplings: [OneOf<S>; 2],
    z: Option<Buffer<S>>,
    per_channel: [Option<Buffer<f32>>; 2],
    initial: Option<Buffer<f32>>,
    restarts: Option<Buffer<u8>>,
}

/// The results of a scan; the last states and checkpoints are empty if they are not wanted.
#[derive(Debug, Clone)]
pub struct Computed {
    pub out: Vec<f32>,
    pub last: Vec<f32>,
    pub checkpoints: Vec<f32>,
    pub launched: Launched,
}

impl Computed {
    pub fn bits(&self) -> Vec<u32> {
        let all = self.out.iter().chain(&self.last).chain(&self.checkpoints);
        all.map(|number| number.to_bits()).collect()
    }
}

/// Uploads numbers, which begin `skip` elements into their memory.
pub fn stored<S: Storage<Accum = f32>>(
    device: &Device,
    numbers: &[f64],
    skip: usize,
) -> Result<Buffer<S>, Error> {
    let numbers = std::iter::repeat_n(0.0, skip).chain(numbers.iter().copied());
    let numbers: Vec<S> = numbers.map(|number| S::narrow(number as f32)).collect();
    device.upload(&numbers)?.slice(skip..)
}

impl<S: Storage<Accum = f32>> Arrays<S> {
    /// Uploads a scan. Arrays with an axis of time begin `skip` elements into their memory.
    pub fn new(device: &Device, scan: &Problem, skip: usize) -> Result<Arrays<S>, Error> {
        let stored = |numbers: &[f64]| stored::<S>(device, numbers, skip);
        let wide = |numbers: &[f64]| {
            device.upload(&numbers.iter().map(|&number| number as f32).collect::<Vec<f32>>())
        };
        let coupling = |given: &Coupling| -> Result<OneOf<S>, Error> {
            Ok(match given.varies {
                true => OneOf::Varying(stored(&given.values)?),
                false => OneOf::Constant(wide(&given.values)?),
            })
        };
        let any = |numbers: &Option<Vec<f64>>| numbers.as_deref().map(wide).transpose();
        let Sizes { batch, channels, groups, states, len } = scan.sizes;
        Ok(Arrays {
            shape: ScanShape { batch, channels, seq_len: len, states, groups },
            softplus: scan.softplus,
            rows: [stored(&scan.u)?, stored(&scan.delta)?],
            a: wide(&scan.a)?,
            couplings: [coupling(&scan.b)?, coupling(&scan.c)?],
            z: scan.z.as_deref().map(stored).transpose()?,
            per_channel: [any(&scan.d)?, any(&scan.bias)?],
            initial: any(&scan.initial)?,
            restarts: scan.restarts.as_ref().map(|all| device.upload(all)).transpose()?,
        })
    }

    pub fn inputs(&self) -> ScanInputs<'_, S> {
        ScanInputs {
            u: &self.rows[0],
            delta: &self.rows[1],
            a: &self.a,
            b: self.couplings[0].given(),
            c: self.couplings[1].given(),
            d: self.per_channel[0].as_ref(),
            z: self.z.as_ref(),
            delta_bias: self.per_channel[1].as_ref(),
            softplus: self.softplus,
            initial: self.initial.as_ref(),
            restarts: self.restarts.as_ref(),
        }
    }
}

/// Computes all results of a scan.
pub fn computed<S: Storage<Accum = f32>>(
    device: &Device,
    exponential: Exponential,
    scan: &Problem,
    skip: usize,
) -> Result<Computed, Error> {
    wanted::<S>(device, exponential, scan, skip, [true, true])
}

/// Computes the outputs and, if they are wanted, the last states and the checkpoints; all results
/// begin as NaN.
pub fn wanted<S: Storage<Accum = f32>>(
    device: &Device,
    exponential: Exponential,
    scan: &Problem,
    skip: usize,
    [last_wanted, checkpoints_wanted]: [bool; 2],
) -> Result<Computed, Error> {
    let arrays = Arrays::<S>::new(device, scan, skip)?;
    let shape = arrays.shape;
    let mut out = device.allocate::<S>(scan.u.len() + skip)?;
    let mut last = device.allocate::<f32>(shape.batch * shape.channels * shape.states)?;
    let mut checkpoints = device.allocate::<f32>(shape.checkpoints_len().unwrap())?;
    out.poison()?;
    last.poison()?;
    checkpoints.poison()?;
    let mut out = out.slice(skip..)?;
    let options = ScanForwardOptions {
        last: last_wanted.then_some(&mut last),
        checkpoints: checkpoints_wanted.then_some(&mut checkpoints),
        chunks: scan.chunks,
        ..Default::default()
    };
    let scan = SelectiveScan::<S>::new(device, exponential);
    let launched = scan.forward_into(&arrays.inputs(), &mut out, shape, options)?;
    let states = |buffer: &Buffer<f32>, is_wanted: bool| {
        if is_wanted { buffer.download() } else { Ok(Vec::new()) }
    };
    Ok(Computed {
        out: out.download()?.into_iter().map(Storage::widen).collect(),
        last: states(&last, last_wanted)?,
        checkpoints: states(&checkpoints, checkpoints_wanted)?,
        launched,
    })
}

/// Asserts that numbers are within their bounds; `S` is their storage type.
pub fn judge<S: Storage>(computed: &[f32], expected: &[Bounded], what: &str) {
    verdict::<S>(computed, expected).unwrap_or_else(|wrong| panic!("{what} {wrong}"));
}

/// Returns the first number outside of its bound, as a sentence.
pub fn verdict<S: Storage>(computed: &[f32], expected: &[Bounded]) -> Result<(), String> {
    if computed.len() != expected.len() {
        return Err(format!("{} numbers, not {}", computed.len(), expected.len()));
    }
    for (index, (&got, expected)) in computed.iter().zip(expected).enumerate() {
        let (value, bound) = (expected.value, 1.001 * expected.bound);
        let narrowing = S::NARROWING;
        let bound = bound + narrowing.unit_roundoff * (value.abs() + bound) + narrowing.smallest;
        let error = (f64::from(got) - value).abs();
        if error.is_nan() || error > bound {
            return Err(format!("{index}: {got}, not {value} ± {bound:e}"));
        }
    }
    Ok(())
}
