//! The kernels of the fused selective scan, launched as in the library, by a scan that uses the
//! kernel in question.

use linrec::Error;
use linrec::device::{
    Device, Exponential, Function, ScanCoupling, ScanForwardOptions, SelectiveScan, Storage,
};

use super::Ran;
// The parts from which the suite's tests of the scan are made.
use super::super::{given, oracle, problem, reference};

/// The number of channels, in two groups, neither of which fills a block.
const CHANNELS: usize = 10;
const GROUPS: usize = 2;
/// Several tiles of steps and a part of one.
const LEN: usize = 77;

/// Runs the forward pass of two batches, cut into `chunks` chunks of time.
pub fn forward<S: Storage<Accum = f32>>(
    device: &Device,
    exponential: Exponential,
    states: usize,
    chunks: usize,
) -> Result<Ran, Error> {
    let sizes = reference::Sizes { batch: 2, channels: CHANNELS, groups: GROUPS, states, len: LEN };
    let mut scan = given::draw::<S>(sizes, given::Options { slow: true, ..given::Options::ALL });
    scan.chunks = Some(chunks);
    outputs::<S>(device, exponential, &scan, false)
}

/// Runs the forward pass of a scan of common sizes with its own kernel: for the ends of chunks, for
/// outputs, or for outputs and states.
pub fn plain_forward<S: Storage<Accum = f32>>(
    device: &Device,
    states: usize,
    len: usize,
    wanted: &str,
) -> Result<Ran, Error> {
    let sizes = reference::Sizes { batch: 2, channels: 64, groups: 2, states, len };
    let options = given::Options { restarts: false, slow: true, ..given::Options::ALL };
    let mut scan = given::draw::<S>(sizes, options);
    scan.chunks = Some(if wanted == "0" { 2 } else { 1 });
    outputs::<S>(device, Exponential::Fast, &scan, wanted == "2")
}

fn outputs<S: Storage<Accum = f32>>(
    device: &Device,
    exponential: Exponential,
    scan: &reference::Problem,
    kept: bool,
) -> Result<Ran, Error> {
    let arrays = given::Arrays::<S>::new(device, scan, 0)?;
    let mut out = device.allocate(scan.u.len())?;
    out.poison()?;
    let kept = if kept { arrays.shape.checkpoints_len() } else { None };
    let mut checkpoints = kept.map(|len| device.allocate::<f32>(len)).transpose()?;
    let launched = SelectiveScan::<S>::new(device, exponential).forward_into(
        &arrays.inputs(),
        &mut out,
        arrays.shape,
        ScanForwardOptions {
            chunks: scan.chunks,
            checkpoints: checkpoints.as_mut(),
            ..Default::default()
        },
    )?;
    let out: Vec<f32> = out.download()?.into_iter().map(Storage::widen).collect();
    let verdict = given::verdict::<S>(&out, &scan.results().out);
    Ok(Ran { counters: launched.counters().cloned(), verdict })
}

/// Computes all gradients of two batches, by the kernel that walks and the one that adds up.
pub fn backward<S: Storage<Accum = f32>>(
    device: &Device,
    exponential: Exponential,
    states: usize,
) -> Result<Ran, Error> {
    let sizes = reference::Sizes { batch: 2, channels: CHANNELS, groups: GROUPS, states, len: LEN };
    all_gradients::<S>(device, exponential, sizes, true)
}

/// Computes all gradients of a scan of common sizes, by the kernel for these sizes.
pub fn plain_backward<S: Storage<Accum = f32>>(
    device: &Device,
    exponential: Exponential,
    states: usize,
    len: usize,
) -> Result<Ran, Error> {
    let sizes = reference::Sizes { batch: 2, channels: 64, groups: 1, states, len };
    all_gradients::<S>(device, exponential, sizes, false)
}

fn all_gradients<S: Storage<Accum = f32>>(
    device: &Device,
    exponential: Exponential,
    sizes: reference::Sizes,
    restarts: bool,
) -> Result<Ran, Error> {
    let options = given::Options { restarts, slow: true, ..given::Options::ALL };
    let given = given::draw::<S>(sizes, options);
    let scan = SelectiveScan::<S>::new(device, exponential);
    let mut here = problem::OnDevice::new(&scan, &given, 0)?;
    let launched = here.backward(&scan)?;
    let verdict = problem::verdict(&here, &oracle::gradients(&given))?;
    Ok(Ran { counters: launched.counters().cloned(), verdict })
}

/// Runs a rung of `fused/` with `threads` threads and `per_block` channels in a block.
pub fn rung(kernel: &Function, threads: u32, per_block: usize) -> Result<Ran, Error> {
    const BATCH: usize = 2;
    const CHANNELS: usize = 70;
    const LEN: usize = 76;
    let sizes =
        reference::Sizes { batch: BATCH, channels: CHANNELS, groups: 1, states: 16, len: LEN };
    let options =
        given::Options { d: true, z: true, softplus: true, slow: true, ..given::Options::NOTHING };
    let scan = given::draw::<f32>(sizes, options);
    let device = kernel.device();
    let arrays = given::Arrays::<f32>::new(device, &scan, 0)?;
    let inputs = arrays.inputs();
    let mut out = device.allocate::<f32>(scan.u.len())?;
    out.poison()?;
    let (ScanCoupling::Varying(b), ScanCoupling::Varying(c)) = (inputs.b, inputs.c) else {
        unreachable!("what is drawn varies");
    };
    let launched = kernel
        .launch((BATCH * CHANNELS.div_ceil(per_block)) as u32, threads)
        .arg(inputs.u)
        .arg(inputs.delta)
        .arg(inputs.a)
        .arg(b)
        .arg(c)
        .arg(inputs.d)
        .arg(inputs.z)
        .arg(&mut out)
        .arg(CHANNELS as i32)
        .arg(LEN as i64)
        .run(&device.stream())?;
    let verdict = given::verdict::<f32>(&out.download()?, &scan.results().out);
    Ok(Ran { counters: launched.counters().cloned(), verdict })
}
