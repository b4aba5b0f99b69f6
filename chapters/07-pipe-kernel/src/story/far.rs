//! The last row of an array that is larger than this machine's memory.

use linrec::device::{Device, KernelEngine};
use linrec::kernels::Pass;
use linrec::lesson::{self, Kind, Lesson};
use linrec::{Direction, Engine, Options};

use super::grouped;
use crate::PIPE;
use crate::far::{NUM_SEQS, SEQ_LEN, last_rows};

/// Bytes of an H200's memory (NVIDIA, data sheet).
const H200_BYTES: usize = 141_000_000_000;

/// Computes it, and compares with the same row alone.
pub fn far(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("far", "The last of many rows")?;
    let elements = NUM_SEQS * SEQ_LEN;
    let offset = elements - SEQ_LEN;
    lesson.say(&format!(
        "{NUM_SEQS} sequences of {SEQ_LEN} are {elements} elements, {:.1} GB in each of three arrays. The last row \
         begins at element {offset}. In 32 bits with a sign, that would be {}.",
        4.0 * elements as f64 / 1e9,
        offset as u32 as i32,
    ));
    let device = Device::simt();
    let engine = KernelEngine::<f32>::new(&device, PIPE)?;
    let (inputs, coeffs) = super::data((1, SEQ_LEN), 74);
    let alone = engine.forward(inputs.view(), coeffs.view(), &Options::default())?.outputs;
    let kernel = engine.recurrence().function(Pass::Forward, Direction::Forward)?;
    let (x, c) = (inputs.as_slice().unwrap_or(&[]), coeffs.as_slice().unwrap_or(&[]));
    let last = last_rows(kernel, x, c, 1)?;
    let differ = alone.iter().zip(&last).filter(|(a, b)| a.to_bits() != b.to_bits()).count();
    lesson.say(
        "The emulator keeps only what is touched, and runs the last block of the launch. The row's outputs are \
         compared with those of the same row alone in an array of its own.",
    );
    lesson.check("words that differ", differ as f64, 0.0);

    let most = H200_BYTES / 12;
    lesson.value("far_elements", grouped(elements), Kind::Computed);
    lesson.value("far_gb", format!("{:.1}", 4.0 * elements as f64 / 1e9), Kind::Computed);
    lesson.value("h200_elements", format!("{:.1}", most as f64 / 1e9), Kind::Computed);
    Ok(())
}
