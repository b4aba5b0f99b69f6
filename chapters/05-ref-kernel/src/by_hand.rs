//! The host's side of a launch, one call after the other.

use linrec::device::{Buffer, Device, Function, Launched, Module, Storage};
use linrec::kernels::{self, ElementType, KernelChoice, Pass, RefConfig};
use linrec::{Direction, Error};

/// Threads in a block: two warps.
pub const THREADS: u32 = 64;

/// The kernel of this chapter.
pub const CHOICE: KernelChoice = KernelChoice::Ref(RefConfig { threads: THREADS });

/// Computes the recurrence forward from zero, for `num_seqs` sequences of `seq_len` elements each,
/// row after row; also returns what the emulator counted.
///
/// **Nothing is checked.** If the slices are shorter than the shape says, the kernel reads past
/// their end: the emulator reports that, a GPU may not.
///
/// # Errors
///
/// [`Error::Device`] if the device refuses or fails, [`Error::Kernel`] with what the emulator
/// found.
// ANCHOR: forward
pub fn forward(
    device: &Device,
    inputs: &[f32],
    coeffs: &[f32],
    (num_seqs, seq_len): (u32, u32),
) -> Result<(Vec<f32>, Launched), Error> {
    // The kernel.
    let program = CHOICE.program(ElementType::F32);
    let module = device.program(&program)?;
    let kernel = module.function("linrec_ref_fwd<float, false>")?;

    // The arrays, in the device's memory.
    let mut outputs = device.allocate_named::<f32>("outputs", inputs.len())?;
    let inputs = upload(device, "inputs", inputs)?;
    let coeffs = upload(device, "coeffs", coeffs)?;

    // The launch: as many blocks as it takes for one thread per sequence.
    let launch = kernel.launch(num_seqs.div_ceil(THREADS), THREADS);
    let launched = launch
        .arg(&inputs)
        .arg(&coeffs)
        .arg(&mut outputs)
        .arg(None::<&Buffer<f32>>) // initial: from zero
        .arg(None::<&Buffer<f32>>) // final_state: not wanted
        .arg(i64::from(num_seqs))
        .arg(i64::from(seq_len))
        .run(&device.stream())?;

    Ok((outputs.download()?, launched))
}
// ANCHOR_END: forward

/// The kernels of one shipped PTX: `access_patterns`, `broken/lost_carry`.
///
/// # Errors
///
/// [`Error::Device`] if there is no PTX of that name, or the device refuses it.
pub fn shipped(device: &Device, name: &str) -> Result<Module, Error> {
    match kernels::shipped().find(|&(shipped, _)| shipped == name) {
        Some((_, ptx)) => device.module(ptx.text()),
        None => {
            let message = format!("no PTX is shipped with the name `{name}`");
            Err(Error::Device { device: device.label().to_owned(), message })
        }
    }
}

/// An array on the device with a name, for the emulator's reports.
pub(crate) fn upload(device: &Device, name: &str, values: &[f32]) -> Result<Buffer<f32>, Error> {
    let mut buffer = device.allocate_named(name, values.len())?;
    buffer.upload(values)?;
    Ok(buffer)
}

/// The instance of the kernel for elements of type `T` and a direction, loaded on the device.
///
/// # Errors
///
/// [`Error::Device`] if it is not shipped and cannot be compiled, or the device refuses it.
// ANCHOR: instance
pub fn instance<T: Storage>(device: &Device, direction: Direction) -> Result<Function, Error> {
    // The source, its options, and the four instances that a type needs.
    let program = CHOICE.program(T::ELEMENT);
    // The name of one of them in C++: `linrec_ref_fwd<double, true>`.
    let entry = CHOICE.entry(T::ELEMENT, Pass::Forward, direction);
    device.program(&program)?.function(&entry)
}
// ANCHOR_END: instance
