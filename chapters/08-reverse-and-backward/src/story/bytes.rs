//! What a backward pass has to move.

use linrec::kernels::Pass;
use linrec::lesson::{self, Kind, Lesson, Table};
use linrec::simt::Access;

use crate::count::{count, of};
use crate::pipe;
use crate::record::{self, times};

/// Rows that are counted.
const SHAPE: (usize, usize) = (10, 4096);

/// Counts the bytes, and shows the time that an H200 took for them.
pub fn bytes(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("bytes", "Three reads, two writes")?;
    lesson.say(&format!(
        "{} sequences of {} in f32, as the emulator counts them; and chapter 4's way, whose four operations each read \
         and write whole arrays:",
        SHAPE.0, SHAPE.1,
    ));
    let header = ["pass", "arrays read", "arrays written", "bytes per element, counted"];
    let mut table = Table::new(header);
    let elements = (SHAPE.0 * SHAPE.1) as f64;
    let mut beyond = 0.0_f64;
    for (pass, name, read, written) in
        [(Pass::Forward, "forward", 2, 1), (Pass::Backward, "backward", 3, 2)]
    {
        let counters = count::<f32>(pipe(0), pass, SHAPE)?;
        let loads = of(&counters, Access::GlobalLoad).bytes as f64 / elements;
        let stores = of(&counters, Access::GlobalStore).bytes as f64 / elements;
        let floor = f64::from(4 * (read + written));
        beyond += (loads + stores - floor).max(0.0);
        table.row([
            name.to_owned(),
            read.to_string(),
            written.to_string(),
            format!("{:.4}", loads + stores),
        ]);
    }
    table.row(["backward, chapter 4's way", "6", "4", "40"]);
    lesson.table("bytes.csv", Kind::Computed, &table)?;
    lesson.check("bytes per element beyond 12 and 20", beyond, 0.0);

    lesson.say(
        "From the record of an H200, 13200 sequences of 4096, medians. The roof of a pass reads and writes as many \
         arrays, and computes next to nothing:",
    );
    let header = ["pass", "kernel 4 x 128, ms", "roof, ms", "roof / kernel", "GB/s"];
    let mut table = Table::new(header);
    let mut ms = [0.0; 2];
    for (number, pass) in record::Pass::BOTH.into_iter().enumerate() {
        let runs = times(pass, "f32")?;
        let median = |engine| runs.median(engine, 4096).ok_or("a run is missing in the record");
        let (kernel, roof) = (median("pipe:4x128:0")?, median("roof")?);
        ms[number] = kernel.milliseconds;
        table.row([
            pass.name().to_owned(),
            format!("{:.3}", kernel.milliseconds),
            format!("{:.3}", roof.milliseconds),
            format!("{:.2}", roof.milliseconds / kernel.milliseconds),
            format!("{:.0}", kernel.gb_per_s),
        ]);
    }
    lesson.table("floor.csv", Kind::Computed, &table)?;
    lesson.value("times_longer", format!("{:.2}", ms[1] / ms[0]), Kind::Computed);
    Ok(())
}
