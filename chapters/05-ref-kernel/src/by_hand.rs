//! The host's side of a launch, call by call.

use linrec::device::{Buffer, Device, Function, Launched, Module, Storage};
use linrec::kernels::{self, ElementType, KernelChoice, Pass, RefConfig};
use linrec::{Direction, Error};

/// The number of threads per block: two warps.
pub const THREADS: u32 = 64;

/// The kernel of this chapter.
pub const CHOICE: KernelChoice = KernelChoice::Ref(RefConfig { threads: THREADS });

/// Computes the recurrence forward from zero, for `num_seqs` sequences of `seq_len` elements each,
/// stored row by row. Also returns the emulator's counters.
///
/// **Nothing is checked.** If the slices are shorter than the shape, the kernel reads past their
/// end. The emulator reports that; a GPU may not.
///
/// # Errors
///
/// Returns [`Error::Device`] if the device refuses or fails, and [`Error::Kernel`] if the emulator
/// finds a mistake.
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

    // The launch: enough blocks for one thread per sequence.
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

/// Loads the kernels of a shipped PTX file: `access_patterns`, `broken/lost_carry`.
///
/// # Errors
///
/// Returns [`Error::Device`] if there is no PTX of that name, or the device refuses it.
pub fn shipped(device: &Device, name: &str) -> Result<Module, Error> {
    match kernels::shipped().find(|&(shipped, _)| shipped == name) {
        Some((_, ptx)) => device.module(ptx.text()),
        None => {
            let message = format!("no PTX is shipped with the name `{name}`");
            Err(Error::Device { device: device.label().to_owned(), message })
        }
    }
}

/// Uploads an array with a name for the emulator's reports.
pub(crate) fn upload(device: &Device, name: &str, values: &[f32]) -> Result<Buffer<f32>, Error> {
    let mut buffer = device.allocate_named(name, values.len())?;
    buffer.upload(values)?;
    Ok(buffer)
}

/// Loads the kernel's instance for elements of type `T` and a direction.
///
/// # Errors
///
/// Returns [`Error::Device`] if it is not shipped and cannot be compiled, or if the device refuses
/// it.
// ANCHOR: instance
pub fn instance<T: Storage>(device: &Device, direction: Direction) -> Result<Function, Error> {
    // The source, its options, and the four instances that a type needs.
    let program = CHOICE.program(T::ELEMENT);
    // The C++ name of one instance: `linrec_ref_fwd<double, true>`.
    let entry = CHOICE.entry(T::ELEMENT, Pass::Forward, direction);
    device.program(&program)?.function(&entry)
}
// ANCHOR_END: instance
