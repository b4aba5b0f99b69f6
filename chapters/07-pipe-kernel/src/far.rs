//! Computes rows of an array that is larger than this machine's memory.

use linrec::Error;
use linrec::device::{Buffer, Device, Function};
use linrec::kernels::{ElementType, Pass};

use crate::PIPE;

/// The number of sequences. In all there are 2.6 billion elements, 10.5 GB in each of the three
/// arrays.
pub const NUM_SEQS: usize = 40_000;
/// The length of each sequence.
pub const SEQ_LEN: usize = 65_536;

/// Runs the blocks of the last `rows` sequences of a launch over all [`NUM_SEQS`] on the emulator,
/// which allocates only the touched parts of an array. All rows get the same inputs and
/// coefficients, `SEQ_LEN` of each. Returns the rows' outputs, one after the other.
///
/// # Errors
///
/// Returns [`Error::Kernel`] if the kernel does not find its rows, or the device's own error.
// ANCHOR: last_rows
pub fn last_rows(
    kernel: &Function,
    inputs: &[f32],
    coeffs: &[f32],
    rows: usize,
) -> Result<Vec<f32>, Error> {
    let device = Device::simt();
    let array = |name| device.allocate_named::<f32>(name, NUM_SEQS * SEQ_LEN);
    let (x, c, mut y) = (array("inputs")?, array("coeffs")?, array("outputs")?);
    for row in NUM_SEQS - rows..NUM_SEQS {
        let row = row * SEQ_LEN..(row + 1) * SEQ_LEN;
        x.slice(row.clone())?.upload(inputs)?;
        c.slice(row)?.upload(coeffs)?;
    }

    let geometry = PIPE.geometry(ElementType::F32, Pass::Forward, NUM_SEQS as u64, SEQ_LEN as u64);
    let none = None::<&Buffer<f32>>;
    let launch = kernel.launch(geometry.blocks as u32, geometry.threads);
    let launch = launch.arg(&x).arg(&c).arg(&mut y).arg(none).arg(none);
    let launch = launch.arg(NUM_SEQS as i64).arg(SEQ_LEN as i64).arg(0_i32);
    launch.blocks((NUM_SEQS - rows) as u64..NUM_SEQS as u64).run(&device.stream())?;
    y.slice((NUM_SEQS - rows) * SEQ_LEN..)?.download()
}
// ANCHOR_END: last_rows
