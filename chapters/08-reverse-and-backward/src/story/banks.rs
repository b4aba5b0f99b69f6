//! Conflicts in shared memory, by the number of steps of a thread.

use linrec::kernels::Pass;
use linrec::lesson::{self, Kind, Lesson, Table};
use linrec::simt::Access;

use crate::count::{count, of_threads};
use crate::exercises::passes;
use crate::pipe;

/// Counts the passes of a warp that picks its elements.
pub fn banks(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("banks", "Meeting at the same bank")?;
    lesson.say(
        "One warp takes its elements from shared memory, lane l from word l * steps on. Passes over the banks for each \
         request, as the emulator counts them with memcode 1:",
    );
    let mut table =
        Table::new(["steps per thread", "passes per request", "with a free word after 32"]);
    let mut unlike = 0;
    for steps in 1..=8 {
        let counters = count::<f32>(pipe(1), Pass::Forward, (1, 32 * steps))?;
        let threads = of_threads(&counters, Access::SharedLoad);
        let counted = threads.wavefronts as f64 / threads.requests as f64;
        unlike += usize::from(counted != passes(steps, 0) as f64);
        table.row([steps.to_string(), counted.to_string(), passes(steps, 1).to_string()]);
    }
    lesson.table("banks.csv", Kind::Computed, &table)?;
    lesson.check("rows that the exercise's solution counts otherwise", unlike as f64, 0.0);
    Ok(())
}
