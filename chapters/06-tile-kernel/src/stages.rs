//! The kernel, stopped after each of its levels.

use linrec::device::{Device, ForwardOptions, KernelEngine, Launched, Recurrence};
use linrec::kernels::{Algocode, KernelChoice, TileConfig};
use linrec::{Engine, Error, Options};
use ndarray::{Array2, ArrayView2};

/// The kernel of this chapter: up to 4 elements for each of up to 256 threads.
pub const CHOICE: KernelChoice = KernelChoice::Tile(TileConfig::DEFAULT);

/// The names of the four stages, in the order of [`Algocode::ALL`].
pub const STAGES: [&str; 4] = ["copies", "1: thread", "2: warp", "3: block"];

/// Returns the kernel that stops after a level: [`Algocode::Copy`] copies the inputs,
/// [`Algocode::Block`] computes the recurrence.
// ANCHOR: stage
pub fn stage(algocode: Algocode) -> KernelChoice {
    KernelChoice::Tile(TileConfig { algocode, ..TileConfig::DEFAULT })
}
// ANCHOR_END: stage

/// Returns the outputs of a stage, from a state of zero.
///
/// # Errors
///
/// Returns an error if the shapes do not match, or the device fails.
pub fn outputs(
    device: &Device,
    algocode: Algocode,
    inputs: ArrayView2<f32>,
    coeffs: ArrayView2<f32>,
) -> Result<Array2<f32>, Error> {
    let engine = KernelEngine::<f32>::new(device, stage(algocode))?;
    Ok(engine.forward(inputs, coeffs, &Options::default())?.outputs)
}

/// Runs a forward pass over ones on the emulator, which counts.
///
/// # Errors
///
/// Returns an error if the kernel does not support sequences of that length, or is not available.
pub fn counted(
    choice: KernelChoice,
    shape @ (num_seqs, seq_len): (usize, usize),
) -> Result<Launched, Error> {
    let device = Device::simt();
    let ones = device.upload(&vec![1.0_f32; num_seqs * seq_len])?;
    let mut outputs = device.allocate(ones.len())?;
    let recurrence = Recurrence::new(&device, choice)?;
    recurrence.forward_into(&ones, &ones, &mut outputs, shape, ForwardOptions::default())
}
