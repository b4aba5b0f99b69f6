//! Level 1: two neighbouring threads.

use linrec::device::Device;
use linrec::lesson::{self, Kind, Lesson, Table};
use ndarray::{Array2, ArrayView2};

use crate::levels::scan_thread;
use crate::stages;

/// Steps of the sequence: every thread of a warp has four.
const STEPS: usize = 128;

/// What the first two threads hold after level 1, beside the outputs.
pub fn thread(lesson: &mut Lesson, device: &Device) -> lesson::Result {
    lesson.step("thread", "Level 1: a thread")?;
    let inputs = Array2::from_shape_fn((1, STEPS), |(_, l)| (l + 1) as f32);
    let coeffs = Array2::from_elem((1, STEPS), 0.5_f32);
    let (x, c): (ArrayView2<f32>, ArrayView2<f32>) = (inputs.view(), coeffs.view());
    let (level_1, outputs) = (stages::outputs(device, 1, x, c)?, stages::outputs(device, 3, x, c)?);

    lesson.say(&format!(
        "{STEPS} steps with inputs 1, 2, 3 … and all coefficients 1/2: four steps for each of 32 threads. These are \
         the first two. `states` are what the kernel writes with algocode 1, `outputs` with algocode 3.",
    ));
    let header = ["thread", "step", "input", "states", "coeffs", "outputs"];
    let mut table = Table::new(header);
    let mut off = 0.0_f32;
    for thread in 0..2 {
        let steps = 4 * thread..4 * thread + 4;
        let mut products = vec![0.5_f32; 4];
        scan_thread(&mut products, &mut inputs.as_slice().unwrap_or(&[])[steps.clone()].to_vec());
        for (step, product) in steps.zip(products) {
            let (state, output) = (level_1[[0, step]], outputs[[0, step]]);
            let before = if thread == 0 { 0.0 } else { outputs[[0, 4 * thread - 1]] };
            off = off.max((before * product + state - output).abs());
            table.row([
                thread.to_string(),
                step.to_string(),
                inputs[[0, step]].to_string(),
                state.to_string(),
                format!("1/{}", 1.0 / product),
                output.to_string(),
            ]);
        }
    }
    lesson.table("thread.csv", Kind::Computed, &table)?;
    lesson.check("outputs - (state before the thread * coeffs + states)", f64::from(off), 0.0);
    Ok(())
}
