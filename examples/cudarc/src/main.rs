//! The recurrence in a program that drives its GPU by cudarc: linrec works on the program's stream
//! and in the program's memory.
//!
//! ```console
//! cargo run --release --manifest-path examples/cudarc/Cargo.toml
//! ```
//!
//! The two libraries know nothing of each other. What they share is the GPU's primary context, in
//! which a stream and an address mean the same to both. The program lends them to linrec by two
//! `unsafe` functions, whose conditions it keeps: see `on_gpu`.
//!
//! Without a GPU the program says why, and runs the same numbers on the emulator.

use std::error::Error;

use cudarc::driver::{CudaContext, DevicePtr, DevicePtrMut};
use linrec::Options;
use linrec::device::{Buffer, Choice, Device, ForwardOptions, Recurrence, Shape, Stream};
use ndarray::Array2;

const SHAPE: Shape = Shape { num_seqs: 8, seq_len: 1000 };
const LEN: usize = SHAPE.num_seqs * SHAPE.seq_len;

fn main() -> Result<(), Box<dyn Error>> {
    let inputs: Vec<f32> = (0..LEN).map(|step| (0.1 * step as f32).sin()).collect();
    let coeffs: Vec<f32> = inputs.iter().map(|input| 0.9 + 0.09 * input).collect();

    // linrec returns an error where there is no driver; cudarc would panic. So linrec looks first.
    let outputs = match Device::cuda(0) {
        Ok(device) => {
            println!("on {device:?}, on a stream and in memory of cudarc");
            on_gpu(&device, &inputs, &coeffs)?
        }
        Err(why) => {
            println!("there is no GPU for cudarc ({why}); on the emulator instead");
            on_emulator(&inputs, &coeffs)?
        }
    };
    let error = largest_error(&inputs, &coeffs, &outputs)?;
    println!("{LEN} outputs, the largest relative error is {error:.1e}");
    if error < 1e-4 { Ok(()) } else { Err("the outputs are wrong".into()) }
}

/// Computes the recurrence of a recurrence: the outputs of the first are the inputs of the second.
/// On a stream the second launch waits for the first, and the host waits for neither.
fn recur_twice(
    device: &Device,
    (inputs, coeffs): (&Buffer<f32>, &Buffer<f32>),
    (once, twice): (&mut Buffer<f32>, &mut Buffer<f32>),
    stream: Option<&Stream>,
) -> Result<(), linrec::Error> {
    let recurrence = Recurrence::<f32>::new(device, Choice::FastestShipped)?;
    let options = || ForwardOptions { stream, ..ForwardOptions::default() };
    recurrence.forward_into(inputs, coeffs, once, SHAPE, options())?;
    recurrence.forward_into(once, coeffs, twice, SHAPE, options())?;
    Ok(())
}

fn on_gpu(device: &Device, inputs: &[f32], coeffs: &[f32]) -> Result<Vec<f32>, Box<dyn Error>> {
    // What such a program has anyway: a context, a stream, and arrays that are copied on it.
    let context = CudaContext::new(0)?;
    let stream = context.new_stream()?;
    let (inputs, coeffs) = (stream.clone_htod(inputs)?, stream.clone_htod(coeffs)?);
    let (mut once, mut twice) = (stream.alloc_zeros::<f32>(LEN)?, stream.alloc_zeros::<f32>(LEN)?);
    {
        // Each address comes with a guard. When the guard is dropped, cudarc notes that the work
        // queued so far uses the array.
        let (inputs, _guard) = inputs.device_ptr(&stream);
        let (coeffs, _guard) = coeffs.device_ptr(&stream);
        let (once, _guard) = once.device_ptr_mut(&stream);
        let (twice, _guard) = twice.device_ptr_mut(&stream);
        // SAFETY, for the stream: (1) it is of the primary context of this GPU, which cudarc uses
        // as well, and outlives the block; (2) the lent arrays are used on this stream alone. For
        // the arrays: (1) each has `LEN` numbers, and cudarc frees it on this stream, after the
        // work queued there; (2) the guards order cudarc's own accesses with that work; (3) nothing
        // reads the two results before they are written.
        let (stream, inputs, coeffs, mut once, mut twice) = unsafe {
            (
                device.lent_stream(stream.cu_stream().cast())?,
                device.lent_buffer(inputs, LEN)?,
                device.lent_buffer(coeffs, LEN)?,
                device.lent_buffer(once, LEN)?,
                device.lent_buffer(twice, LEN)?,
            )
        };
        recur_twice(device, (&inputs, &coeffs), (&mut once, &mut twice), Some(&stream))?;
    }
    // This copy runs on the same stream, after the recurrences. It is the first call that waits.
    Ok(stream.clone_dtoh(&twice)?)
}

fn on_emulator(inputs: &[f32], coeffs: &[f32]) -> Result<Vec<f32>, linrec::Error> {
    let device = Device::simt();
    let (inputs, coeffs) = (device.upload(inputs)?, device.upload(coeffs)?);
    let (mut once, mut twice) = (device.allocate(LEN)?, device.allocate(LEN)?);
    recur_twice(&device, (&inputs, &coeffs), (&mut once, &mut twice), None)?;
    twice.download()
}

/// Returns the largest relative error of the outputs, against the CPU in double precision.
fn largest_error(inputs: &[f32], coeffs: &[f32], outputs: &[f32]) -> Result<f64, Box<dyn Error>> {
    let double = |array: &[f32]| {
        let numbers = array.iter().copied().map(f64::from).collect();
        Array2::from_shape_vec((SHAPE.num_seqs, SHAPE.seq_len), numbers)
    };
    let (inputs, coeffs) = (double(inputs)?, double(coeffs)?);
    let once = linrec::forward(inputs.view(), coeffs.view(), &Options::default())?.outputs;
    let twice = linrec::forward(once.view(), coeffs.view(), &Options::default())?.outputs;
    let errors = twice
        .iter()
        .zip(outputs)
        .map(|(&expected, &found)| (expected - f64::from(found)).abs() / (1.0 + expected.abs()));
    Ok(errors.fold(0.0, f64::max))
}
