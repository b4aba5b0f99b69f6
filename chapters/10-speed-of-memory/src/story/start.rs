//! Where the ladder begins.

use ch09_tuning::record;
use linrec::contract::{self, Domain};
use linrec::device::Device;
use linrec::kernels::Pass;
use linrec::lesson::{self, Kind, Lesson, Table};

use super::cell;
use crate::kernel::Kernel;
use crate::rung::{Idea, Rung};

/// The steps keep to the bound.
pub fn right(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("right", "First, is it right?")?;
    let device = Device::simt();
    let max_len = lesson.size(300, 4096);
    lesson.say(&format!(
        "Every step of the ladder on the emulator, through those cases of the test contract that go forward over rows \
         of whole words, up to {max_len} steps; the largest error in units of its bound:",
    ));
    let mut table = Table::new(["step", "cases", "failed", "largest error"]);
    let mut failed = 0;
    // The addition is no recurrence.
    for idea in Idea::ALL.into_iter().filter(|idea| *idea != Idea::Walk) {
        let kernel = Kernel::new(&device, Rung::shipped(idea))?;
        let report = contract::run::<f32>(&kernel, &Domain { max_len, ..kernel.domain() });
        failed += report.failures.len();
        let name = kernel.rung().name();
        let counts = [report.cases.to_string(), report.failures.len().to_string()];
        table.row([name].into_iter().chain(counts).chain([format!("{:.2}", report.worst)]));
    }
    lesson.table("right.csv", Kind::Computed, &table)?;
    lesson.check("cases outside the bound", failed as f64, 0.0);
    Ok(())
}

/// What the pipe kernel leaves.
pub fn start(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("start", "What is left")?;
    let race = record::race()?;
    lesson.say(
        "From chapter 9's record of an H200: the fastest pipe kernel at some lengths, in microseconds, and how many of \
         them the roof does not need.",
    );
    let mut table =
        Table::new(["length", "pass", "roof, µs", "pipe, µs", "too many", "pipe / roof"]);
    for len in [16, 128, 1024, 4096, 65_536] {
        for pass in Pass::ALL {
            let roof = race.median(pass, "roof", len);
            let pipe = race.kernel(pass, "pipe", len).map(|(_, run)| run);
            let us = [roof, pipe].map(|run| run.map(|run| 1e3 * run.ms));
            let more = us[0].zip(us[1]).map(|(roof, pipe)| pipe - roof);
            table.row([
                len.to_string(),
                pass.name().to_owned(),
                cell(us[0], 1),
                cell(us[1], 1),
                cell(more, 1),
                cell(pipe.map(|run| run.ratio), 3),
            ]);
        }
    }
    lesson.table("start.csv", Kind::Computed, &table)
}
