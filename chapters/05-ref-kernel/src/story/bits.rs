//! The kernel's numbers against those of chapter 1, bit by bit.

use ch01_sequential_loop::Loop;
use linrec::device::{Device, KernelEngine};
use linrec::lesson::{self, Kind, Lesson, Table};
use linrec::reference::{self, Rounding};
use linrec::{Engine, Options};
use ndarray::Array2;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::by_hand::CHOICE;
use crate::fused::fused;

/// Compares with the loop, and with the loop that rounds once a step.
pub fn bits(lesson: &mut Lesson, device: &Device) -> lesson::Result {
    lesson.step("bits", "Against chapter 1, bit by bit")?;
    let shape = lesson.size((300, 1000), (13_200, 4096));
    let mut rng = StdRng::seed_from_u64(51);
    let mut draw =
        |low: f32, high: f32| Array2::from_shape_simple_fn(shape, || rng.random_range(low..high));
    let (inputs, coeffs) = (draw(-1.0, 1.0), draw(0.9, 1.0));
    let (x, c, options) = (inputs.view(), coeffs.view(), Options::default());

    let kernel = KernelEngine::<f32>::new(device, CHOICE)?.forward(x, c, &options)?.outputs;
    let once = fused(x, c, &options)?.outputs;
    let twice = Loop.forward(x, c, &options)?.outputs;
    let exact = reference::forward(x, c, &options)?.outputs;
    let bound = reference::forward_bound(x, c, &options, Rounding { levels: 0, exp_ulps: 0.0 })?;
    let worst = |outputs: &Array2<f32>| {
        let errors = outputs.iter().zip(&exact).zip(&bound.outputs);
        errors.fold(0.0_f64, |worst, ((&y, exact), bound)| {
            worst.max((f64::from(y) - exact).abs() / bound)
        })
    };
    let mean = |outputs: &Array2<f32>| {
        let errors = outputs.iter().zip(&exact).map(|(&y, exact)| (f64::from(y) - exact).abs());
        errors.sum::<f64>() / outputs.len() as f64
    };

    let (num_seqs, seq_len) = shape;
    lesson.say(&format!(
        "{num_seqs} sequences of {seq_len} in f32, coefficients in [0.9, 1). The kernel uses fma, which rounds \
         a multiplication and an addition once. Chapter 1's loop rounds each; `fused` is that loop with \
         mul_add, Rust's name for fma.",
    ));
    let header = ["on the host", "words that differ", "mean error", "largest error / bound"];
    let mut table = Table::new(header);
    let differ = |outputs: &Array2<f32>| {
        kernel.iter().zip(outputs).filter(|(a, b)| a.to_bits() != b.to_bits()).count()
    };
    let mut add = |name: &str, outputs: &Array2<f32>| {
        let (error, worst) = (mean(outputs), worst(outputs));
        let cells = [differ(outputs).to_string(), format!("{error:.2e}"), format!("{worst:.3}")];
        table.row([name.to_owned()].into_iter().chain(cells));
        worst
    };
    add("fused: one rounding a step", &once);
    add("chapter 1's loop: two", &twice);
    add("(the kernel itself)", &kernel);
    lesson.table("bits.csv", Kind::Computed, &table)?;
    lesson.check("words that differ from the fused loop", differ(&once) as f64, 0.0);
    lesson.check("the kernel, largest error / bound", worst(&kernel), 1.0);
    let share = 100.0 * differ(&twice) as f64 / kernel.len() as f64;
    lesson.value("outputs", kernel.len(), Kind::Computed);
    lesson.value("differ", format!("{share:.0} %"), Kind::Computed);
    lesson.value("gain", format!("{:.1}", mean(&twice) / mean(&kernel)), Kind::Computed);
    if !device.is_simt() {
        let emulated =
            KernelEngine::<f32>::new(&Device::simt(), CHOICE)?.forward(x, c, &options)?;
        let differing = differ(&emulated.outputs) as f64;
        lesson.check("words that differ between GPU and emulator", differing, 0.0);
    }
    Ok(())
}
