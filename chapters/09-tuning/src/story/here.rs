//! What can be found out on this machine.

use linrec::device::Device;
use linrec::kernels::{ElementType, KernelChoice, Pass};
use linrec::lesson::{self, Kind, Lesson, Table};

use crate::field::{Field, Roof, Runner};

/// Runs of each.
const RUNS: usize = 9;

/// On a GPU the library's choice beside the roof; elsewhere, how to count.
pub fn here(lesson: &mut Lesson, device: &Device) -> lesson::Result {
    lesson.step("here", "On this machine")?;
    if device.is_simt() {
        lesson.say(
            "There is no GPU here. `cargo run --release -- tune pipe` counts instructions and sectors, and \
             `cargo run --release -- bench` measures the processor.",
        );
        return Ok(());
    }
    let num_seqs = 100 * device.attributes().multiprocessors as usize;
    lesson.say(&format!(
        "{} with {num_seqs} sequences of f32: what the library would take of the shipped kernels, beside the roof. \
         Medians of {RUNS} runs.",
        device.name()
    ));
    let mut field = Field::<f32>::new(device, num_seqs * 4096)?;
    let mut table = Table::new(["pass", "length", "kernel", "ms", "/ roof"]);
    for pass in Pass::ALL {
        for len in [64, 1024, 4096] {
            let choice =
                KernelChoice::best(ElementType::F32, pass, num_seqs as u64, len as u64, true, true);
            let kernel = Runner::Kernel(Box::new(linrec::device::Recurrence::new(device, choice)?));
            let roof = Runner::Roof(Roof::Words);
            let (mut ours, mut ratios) = (Vec::new(), Vec::new());
            for run in 0..=RUNS {
                let theirs = field.time_ms(&roof, pass, (num_seqs, len))?;
                let ms = field.time_ms(&kernel, pass, (num_seqs, len))?;
                if run > 0 {
                    ours.push(ms);
                    ratios.push(theirs / ms);
                }
            }
            table.row([
                pass.name().to_owned(),
                len.to_string(),
                choice.spec(),
                format!("{:.4}", crate::median(ours)),
                format!("{:.2}", crate::median(ratios)),
            ]);
        }
    }
    lesson.table("here.csv", Kind::Timed, &table)
}
