//! Four steps by hand, and the bits of chapter 4's way.

use ch04_gradient::ThroughForward;
use linrec::device::{Device, KernelEngine};
use linrec::lesson::{self, Kind, Lesson, Table};
use linrec::{Direction, Engine, Options};
use ndarray::{Array1, array};

use super::{data, differ};
use crate::pipe;

/// Chapter 4's example on a kernel, and a larger one.
pub fn ends(lesson: &mut Lesson, device: &Device) -> lesson::Result {
    lesson.step("ends", "The two ends")?;
    let engine = KernelEngine::<f32>::new(device, pipe(0))?;
    let (x, c) = (array![[1.0_f32, 1.0, 1.0, 1.0]], array![[7.0_f32, 2.0, 3.0, 5.0]]);
    let d_outputs = array![[1.0_f32, 0.0, 0.0, 1.0]];
    let options = Options { initial: Some(array![4.0]), ..Options::default() };
    let outputs = engine.forward(x.view(), c.view(), &options)?.outputs;
    let gradients = engine.backward(d_outputs.view(), c.view(), outputs.view(), &options)?;
    lesson.say(
        "Chapter 4's four steps, with all inputs 1 and the initial state 4, on the pipe kernel. The loss is y_0 + y_3:",
    );
    let mut table = Table::new(["l", "c", "y", "d_output", "d_input", "d_coeff"]);
    for l in 0..4 {
        let row = [&c, &outputs, &d_outputs, &gradients.d_inputs, &gradients.d_coeffs];
        let numbers = row.map(|array| array[[0, l]].to_string());
        table.row([l.to_string()].into_iter().chain(numbers));
    }
    lesson.table("ends.csv", Kind::Computed, &table)?;
    let d_initial = gradients.d_initial[0];
    lesson.say(&format!("And the gradient of the initial state: {d_initial}."));
    let by_hand = [array![[31.0, 15.0, 5.0, 1.0]], array![[31.0 * 4.0, 15.0 * 29.0, 295.0, 178.0]]];
    let off = differ(&gradients.d_inputs, &by_hand[0]) + differ(&gradients.d_coeffs, &by_hand[1]);
    let off = off + f64::from(d_initial - 7.0 * 31.0).abs();
    lesson.check("numbers that are not those by hand", off, 0.0);

    let shape @ (num_seqs, seq_len) = lesson.size((50, 1300), (13_200, 4096));
    lesson.say(&format!(
        "{num_seqs} sequences of {seq_len}, both directions. Chapter 4 makes a backward pass of this kernel's forward \
         pass, with arrays that are shifted in memory. Words that differ from the backward kernel's:",
    ));
    let mut table = Table::new(["direction", "d_inputs", "d_coeffs", "d_initial"]);
    let mut different = 0.0;
    let through = ThroughForward(KernelEngine::<f32>::new(device, pipe(0))?);
    for direction in [Direction::Forward, Direction::Reverse] {
        let (d_outputs, coeffs) = data(shape, 82);
        let (outputs, _) = data(shape, 83);
        let initial = Some(Array1::from_shape_fn(num_seqs, |row| (row as f32).sin()));
        let options = Options { direction, initial, ..Options::default() };
        let (d, c, y) = (d_outputs.view(), coeffs.view(), outputs.view());
        let kernel = engine.backward(d, c, y, &options)?;
        let shifted = through.backward(d, c, y, &options)?;
        let inputs = differ(&kernel.d_inputs, &shifted.d_inputs);
        let coeffs = differ(&kernel.d_coeffs, &shifted.d_coeffs);
        let initial = differ(&kernel.d_initial, &shifted.d_initial);
        different += inputs + coeffs;
        let name = format!("{direction:?}").to_lowercase();
        table.row([name, inputs.to_string(), coeffs.to_string(), initial.to_string()]);
    }
    lesson.table("words.csv", Kind::Computed, &table)?;
    lesson.check("gradients that differ from chapter 4's way", different, 0.0);
    Ok(())
}
