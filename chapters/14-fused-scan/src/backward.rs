//! The gradients of the library's scan: computed with few and with many threads, and compared with
//! double precision.

use ch13_mamba::{Arguments, Gradients, selective_scan_backward};
use linrec::Error;
use linrec::cpu::Cpu;
use linrec::device::{
    Buffer, Device, Exponential, ScanBackwardOptions, ScanForwardOptions, ScanGradients,
    SelectiveScan,
};
use linrec::simt::Counters;
use ndarray::{Array1, Array2, Array3, Array4};

use crate::ladder::Arrays;
use crate::problem::{Problem, STATES, Sizes};

/// The names of the gradients, in the order of [`Computed::gradients`].
pub const NAMES: [&str; 7] = ["d_u", "d_delta", "d_z", "d_B", "d_C", "d_A", "d_D"];

/// The results of a backward pass.
#[derive(Debug, Clone)]
pub struct Computed {
    /// The gradients.
    pub gradients: [Vec<f32>; 7],
    /// The emulator's counters of the backward pass; empty on a GPU.
    pub counters: Counters,
    /// The number of bytes that the forward pass left for the backward pass.
    pub kept: usize,
}

impl Computed {
    /// Returns the bits of all gradients.
    pub fn bits(&self) -> Vec<u32> {
        self.gradients.iter().flatten().map(|number| number.to_bits()).collect()
    }
}

/// Runs the forward pass, and the backward pass from gradients of the outputs.
///
/// # Errors
///
/// Returns an error if the device fails.
pub fn compute(
    device: &Device,
    exponential: Exponential,
    problem: &Problem,
    d_out: &[f32],
) -> Result<Computed, Error> {
    let arrays = Arrays::upload(device, problem)?;
    let (inputs, shape) = arrays.for_the_library();
    let poisoned = |like: &[f32]| -> Result<Buffer<f32>, Error> {
        let mut buffer = device.allocate(like.len())?;
        buffer.poison()?;
        Ok(buffer)
    };
    let Problem { u, delta, z, b, c, a, d, .. } = problem;
    let scan = SelectiveScan::<f32>::new(device, exponential);
    // ANCHOR: passes
    let mut checkpoints = device.allocate(shape.checkpoints_len().unwrap_or(0))?;
    let mut out = device.allocate(u.len())?;
    let options = ScanForwardOptions { checkpoints: Some(&mut checkpoints), ..Default::default() };
    scan.forward_into(&inputs, &mut out, shape, options)?;

    let [mut d_u, mut d_delta, mut d_z] = [poisoned(u)?, poisoned(delta)?, poisoned(z)?];
    let [mut d_b, mut d_c, mut d_a, mut d_d] =
        [poisoned(b)?, poisoned(c)?, poisoned(a)?, poisoned(d)?];
    let gradients = ScanGradients {
        u: &mut d_u,
        delta: &mut d_delta,
        a: &mut d_a,
        b: (&mut d_b).into(),
        c: (&mut d_c).into(),
        d: Some(&mut d_d),
        z: Some(&mut d_z),
        delta_bias: None,
        initial: None,
    };
    let (d_out, options) = (device.upload(d_out)?, ScanBackwardOptions::default());
    let launched = scan.backward_into(&inputs, &d_out, &checkpoints, gradients, shape, options)?;
    // ANCHOR_END: passes
    let all = [d_u, d_delta, d_z, d_b, d_c, d_a, d_d].map(|gradient| gradient.download());
    let [d_u, d_delta, d_z, d_b, d_c, d_a, d_d] = all;
    Ok(Computed {
        gradients: [d_u?, d_delta?, d_z?, d_b?, d_c?, d_a?, d_d?],
        counters: launched.counters().cloned().unwrap_or_default(),
        kept: 4 * checkpoints.len(),
    })
}

/// Does the same as [`compute`] on the emulator, with its blocks spread over `threads` threads.
///
/// # Errors
///
/// Returns an error if the device fails, or if the threads cannot be started.
pub fn with_threads(
    threads: usize,
    exponential: Exponential,
    problem: &Problem,
    d_out: &[f32],
) -> Result<Computed, Error> {
    let device = Device::simt();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| Error::Device {
        device: device.label().to_owned(),
        message: error.to_string(),
    })?;
    pool.install(|| compute(&device, exponential, problem, d_out))
}

/// Computes the gradients of a problem in double precision, with chapter 13's scan.
///
/// # Errors
///
/// Returns an error if the arrays do not have the sizes of the problem.
pub fn exact(problem: &Problem, d_out: &[f32]) -> Result<[Vec<f64>; 7], Error> {
    let Sizes { batch, channels, len } = problem.sizes;
    let wide = |values: &[f32]| values.iter().copied().map(f64::from).collect::<Vec<f64>>();
    let mismatch = |_| Error::ShapeMismatch {
        operation: "gradients",
        arrays: vec![("outputs", vec![batch, channels, len])],
    };
    let rows = |values: &[f32]| {
        Array3::from_shape_vec((batch, channels, len), wide(values)).map_err(mismatch)
    };
    let couplings = |values: &[f32]| {
        Array4::from_shape_vec((batch, 1, STATES, len), wide(values)).map_err(mismatch)
    };
    let (u, delta, z, d_y) =
        (rows(&problem.u)?, rows(&problem.delta)?, rows(&problem.z)?, rows(d_out)?);
    let (b, c) = (couplings(&problem.b)?, couplings(&problem.c)?);
    let a = Array2::from_shape_vec((channels, STATES), wide(&problem.a)).map_err(mismatch)?;
    let d = Array1::from_vec(wide(&problem.d));
    let arguments = Arguments {
        u: u.view(),
        delta: delta.view(),
        a: a.view(),
        b: b.view().into(),
        c: c.view().into(),
        d: Some(d.view()),
        z: Some(z.view()),
        delta_bias: None,
        delta_softplus: true,
        initial: None,
    };
    let Gradients { d_u, d_delta, d_a, d_b, d_c, d_d, d_z, .. } =
        selective_scan_backward(&Cpu::new(), &arguments, d_y.view(), None)?;
    let coupling = |d: ch13_mamba::MixingArray<f64>| match d {
        ch13_mamba::Mixing::Varying(d) => d.iter().copied().collect(),
        ch13_mamba::Mixing::Fixed(d) => d.iter().copied().collect::<Vec<f64>>(),
    };
    Ok([
        d_u.iter().copied().collect(),
        d_delta.iter().copied().collect(),
        d_z.iter().copied().collect(),
        coupling(d_b),
        coupling(d_c),
        d_a.iter().copied().collect(),
        d_d.to_vec(),
    ])
}

/// Returns the largest error of each gradient, relative to its largest value.
pub fn relative(computed: &Computed, exact: &[Vec<f64>; 7]) -> [f64; 7] {
    std::array::from_fn(|i| {
        let largest = exact[i].iter().fold(0.0, |most: f64, value| most.max(value.abs()));
        let errors = computed.gradients[i].iter().zip(&exact[i]);
        // NaN counts as the worst.
        let errors = errors.map(|(&got, exact)| (f64::from(got) - exact).abs());
        let worst = errors.fold(0.0, |worst, error| if error <= worst { worst } else { error });
        if computed.gradients[i].len() == exact[i].len() { worst / largest } else { f64::INFINITY }
    })
}
